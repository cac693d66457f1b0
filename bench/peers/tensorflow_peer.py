"""tensorflow_peer.py: the networks of `make bench` in TensorFlow; peer.py says how it is spoken with.

Modes: graph, a step as tf.function; xla, the same with jit_compile; for the LSTM also block, its
steps in the one operation that TensorFlow has for that (which XLA does not know). Images are
batch x height x width x channels, the only order that TensorFlow's convolution takes on a CPU.
The network is written in plain operations and updates in the library's own kernels: quicker than
through Keras, never slower."""
import numpy as np
import peer
import tensorflow as tf

STEPS, WORDS, HIDDEN = 30, 10000, 200


class Weights:
    """The variables of a network, in the order in which its layers ask for them."""

    def __init__(self, arrays):
        self.all, self.next = [tf.Variable(a) for a in arrays], 0

    def get(self, *shape):
        self.next += 1
        assert tuple(self.all[self.next - 1].shape) == shape
        return self.all[self.next - 1]


def dense(weights, x, width):
    w = weights.get(x.shape[-1], width)
    return tf.nn.bias_add(tf.matmul(x, w), weights.get(width))


def conv(weights, x, channels, size, stride=1, padding="VALID"):
    return tf.nn.conv2d(x, weights.get(size, size, x.shape[-1], channels), stride, padding)


def lenet5(weights, averages, x):
    for channels in (20, 50):
        x = tf.tanh(tf.nn.bias_add(conv(weights, x, channels, 5), weights.get(channels)))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.tanh(dense(weights, tf.reshape(x, [x.shape[0], 800]), 500))
    return dense(weights, x, 10)


def conv_norm(weights, averages, x, channels, size, stride=1):
    # Not "SAME", which at stride 2 has another border than ours.
    border = size // 2
    x = conv(weights, x, channels, size, stride, [[0, 0], [border, border], [border, border], [0, 0]])
    mean, variance = averages.get(channels), averages.get(channels)
    y, new_mean, new_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=weights.get(channels), offset=weights.get(channels), mean=mean,
        variance=variance, epsilon=1e-5, exponential_avg_factor=0.1, is_training=True)
    mean.assign(new_mean)
    variance.assign(new_variance)
    return y


def resnet(weights, averages, x):
    x = tf.nn.relu(conv_norm(weights, averages, x, 16, 3))
    for channels in (16, 16, 32, 32, 64, 64):
        stride = 1 if channels == x.shape[-1] else 2
        y = tf.nn.relu(conv_norm(weights, averages, x, channels, 3, stride))
        y = conv_norm(weights, averages, y, channels, 3)
        x = tf.nn.relu(y + (x if stride == 1 else conv_norm(weights, averages, x, channels, 1, stride)))
    return dense(weights, tf.reduce_mean(x, [1, 2]), 10)


def lstm_steps(x, w, b):
    """x is steps x batch x features; the input's product is made for all steps at once."""
    from_x = tf.reshape(tf.matmul(tf.reshape(x, [-1, HIDDEN]), w[:HIDDEN]) + b, [STEPS, -1, 4 * HIDDEN])
    h = c = tf.zeros([x.shape[1], HIDDEN])
    outputs = []
    for gates in tf.unstack(from_x):
        i, f, g, o = tf.split(gates + tf.matmul(h, w[HIDDEN:]), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return tf.stack(outputs)


def lstm_block(x, w, b):
    """Not BlockLSTMV2, whose gradient takes its gates in another order than the operation itself."""
    zeros, none = tf.zeros([x.shape[1], HIDDEN]), tf.zeros([HIDDEN])
    return tf.raw_ops.BlockLSTM(seq_len_max=tf.constant(STEPS, tf.int64), x=x, cs_prev=zeros, h_prev=zeros, w=w,
                                wci=none, wcf=none, wco=none, b=b, forget_bias=0, cell_clip=-1).h


def lstm(layer):
    def network(weights, averages, x):
        x = tf.gather(weights.get(WORDS, HIDDEN), x)
        for _ in range(2):
            x = layer(x, weights.get(2 * HIDDEN, 4 * HIDDEN), weights.get(4 * HIDDEN))
        return dense(weights, tf.reshape(x, [-1, HIDDEN]), WORDS)
    return network


def perceptron(widths, activation):
    def network(weights, averages, x):
        for width in widths[:-1]:
            x = activation(dense(weights, x, width))
        return dense(weights, x, widths[-1])
    return network


NETWORKS = {"lenet5": lenet5, "resnet": resnet, "mlp": perceptron([100, 10], tf.sigmoid),
            "dense": perceptron([512, 512, 512, 2], tf.nn.relu)}


def arrays_of(start, mode):
    """An LSTM has the input's and the recurrent matrix in one. Its gates are i, f, g, o; in a block i, g, f, o."""
    arrays = []
    for name, a in start.weights:
        if name.startswith("lstm") and mode == "block":
            i, f, g, o = np.split(a, 4, axis=-1)
            a = np.concatenate([i, g, f, o], axis=-1)
        if name.endswith("recurrent"):
            a = np.concatenate([arrays.pop(), a])
        arrays.append(a)
    return arrays


def sgd(rate):
    def update(variable, gradient, _):
        if isinstance(gradient, tf.IndexedSlices):  # an embedding: only the rows that were used
            variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
        else:
            tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient)
    return update


def nesterov(variable, gradient, velocity):
    if len(variable.shape) > 1:
        gradient += 0.0005 * variable
    tf.raw_ops.ResourceApplyMomentum(var=variable.handle, accum=velocity.handle, lr=0.1, grad=gradient,
                                     momentum=0.9, use_nesterov=True)


UPDATES = {"lenet5": sgd(0.025), "resnet": nesterov, "lstm-ptb": sgd(0.05), "mlp": sgd(0.5), "dense": sgd(0.05)}


def prepare(network, mode, start):
    start.channels_last()
    x, labels = tf.constant(start.x), tf.constant(start.labels)
    forward = lstm(lstm_block if mode == "block" else lstm_steps) if network == "lstm-ptb" else NETWORKS[network]
    weights, averages, update = Weights(arrays_of(start, mode)), Weights(start.statistics), UPDATES[network]
    velocities = [tf.Variable(tf.zeros_like(w)) for w in weights.all] if network == "resnet" else weights.all

    @tf.function(jit_compile=mode == "xla")
    def step():
        weights.next = averages.next = 0
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, forward(weights, averages, x))
            loss = tf.reduce_mean(losses)
        assert weights.next == len(weights.all) and averages.next == len(averages.all)
        for one in zip(weights.all, tape.gradient(loss, weights.all), velocities):
            update(*one)
        return loss

    def run(steps):
        for _ in range(steps):
            loss = step()
        return float(loss)

    return run


MODES = {network: ["graph", "xla"] for network in UPDATES}
MODES["lstm-ptb"] = ["graph", "block", "xla"]

if __name__ == "__main__":
    threads = peer.parse_threads()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    peer.serve(tf.__version__, MODES, prepare, forget=tf.keras.backend.clear_session)
