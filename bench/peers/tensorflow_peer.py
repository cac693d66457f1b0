"""tensorflow_peer.py: the networks of `make bench` in TensorFlow; peer.py says how it is spoken with.

Modes: graph, a step as tf.function; xla, the same with jit_compile; for the LSTM also block, its
steps in the one operation that TensorFlow has for that (which XLA does not know). Images are
batch x height x width x channels, the only order that TensorFlow's convolution takes on a CPU.
The network is written in plain operations and updates in the library's own kernels: quicker than
through Keras, never slower."""
import peer
import tensorflow as tf

STEPS, WORDS, HIDDEN = 30, 10000, 200


class Weights:
    """The variables of a network, made as its layers first ask for them."""

    def __init__(self):
        self.all, self.next = [], 0

    def get(self, shape, scale):
        """The next variable: `scale` is of its random start, or the constant that a vector has."""
        if self.next == len(self.all):
            start = tf.random.normal(shape, stddev=scale) if len(shape) > 1 else tf.fill(shape, float(scale))
            self.all.append(tf.Variable(start))
        self.next += 1
        return self.all[self.next - 1]


def dense(weights, x, width):
    w = weights.get([x.shape[-1], width], x.shape[-1] ** -0.5)
    return tf.nn.bias_add(tf.matmul(x, w), weights.get([width], 0))


def conv(weights, x, channels, size, stride=1, padding="VALID"):
    w = weights.get([size, size, x.shape[-1], channels], (size * size * x.shape[-1]) ** -0.5)
    return tf.nn.conv2d(x, w, stride, padding)


def lenet5(weights, averages, x):
    for channels in (20, 50):
        x = tf.tanh(tf.nn.bias_add(conv(weights, x, channels, 5), weights.get([channels], 0)))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.tanh(dense(weights, tf.reshape(x, [x.shape[0], 800]), 500))
    return dense(weights, x, 10)


def conv_norm(weights, averages, x, channels, size, stride=1):
    # Not "SAME", which at stride 2 has another border than ours.
    border = size // 2
    x = conv(weights, x, channels, size, stride, [[0, 0], [border, border], [border, border], [0, 0]])
    mean, variance = averages.get([channels], 0), averages.get([channels], 1)
    y, new_mean, new_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=weights.get([channels], 1), offset=weights.get([channels], 0), mean=mean,
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
        i, g, f, o = tf.split(gates + tf.matmul(h, w[HIDDEN:]), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return tf.stack(outputs)


def lstm_block(x, w, b):
    zeros, none = tf.zeros([x.shape[1], HIDDEN]), tf.zeros([HIDDEN])
    return tf.raw_ops.BlockLSTMV2(seq_len_max=tf.constant(STEPS, tf.int64), x=x, cs_prev=zeros, h_prev=zeros,
                                  w=w, wci=none, wcf=none, wco=none, b=b, cell_clip=-1).h


def lstm(layer):
    def network(weights, averages, x):
        x = tf.gather(weights.get([WORDS, HIDDEN], 0.1), x)
        for _ in range(2):
            x = layer(x, weights.get([2 * HIDDEN, 4 * HIDDEN], 0.05), weights.get([4 * HIDDEN], 0))
        return dense(weights, tf.reshape(x, [-1, HIDDEN]), WORDS)
    return network


def perceptron(widths, activation):
    def network(weights, averages, x):
        for width in widths[:-1]:
            x = activation(dense(weights, x, width))
        return dense(weights, x, widths[-1])
    return network


def make(network, batch, mode):
    """The network as a function, its input and its labels."""
    def labels(count, classes):
        return tf.random.uniform([count], 0, classes, tf.int32)
    if network == "lenet5":
        return lenet5, tf.random.normal([batch, 28, 28, 1]), labels(batch, 10)
    if network == "resnet":
        return resnet, tf.random.normal([batch, 32, 32, 3]), labels(batch, 10)
    if network == "lstm-ptb":
        return (lstm(lstm_block if mode == "block" else lstm_steps),
                tf.random.uniform([STEPS, batch], 0, WORDS, tf.int32), labels(STEPS * batch, WORDS))
    if network == "mlp":
        return perceptron([100, 10], tf.sigmoid), tf.random.normal([batch, 784]), labels(batch, 10)
    if network == "dense":
        return perceptron([512, 512, 512, 2], tf.nn.relu), tf.random.normal([batch, 100]), labels(batch, 2)
    raise ValueError(f"no network {network}")


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


def prepare(network, batch, mode):
    tf.random.set_seed(1)
    forward, x, labels = make(network, batch, mode)
    weights, averages, update = Weights(), Weights(), UPDATES[network]
    forward(weights, averages, x)  # makes the variables
    velocities = [tf.Variable(tf.zeros_like(w)) for w in weights.all] if network == "resnet" else weights.all

    @tf.function(jit_compile=mode == "xla")
    def step():
        weights.next = averages.next = 0
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, forward(weights, averages, x))
            loss = tf.reduce_mean(losses)
        for one in zip(weights.all, tape.gradient(loss, weights.all), velocities):
            update(*one)
        return loss

    def run(steps):
        for _ in range(steps):
            loss = step()
        loss.numpy()

    return run, sum(int(tf.size(w)) for w in weights.all)


MODES = {network: ["graph", "xla"] for network in UPDATES}
MODES["lstm-ptb"] = ["graph", "block", "xla"]

if __name__ == "__main__":
    threads = peer.parse_threads()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    peer.serve(tf.__version__, MODES, prepare, forget=tf.keras.backend.clear_session)
