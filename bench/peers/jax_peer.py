"""jax_peer.py: the networks of `make bench` in JAX; peer.py says how it is spoken with.

Modes: jit, a step compiled as a whole, its weights updated in place; for the LSTM jit runs its
steps in a loop (scan) and unrolled writes them out.
The number of threads is that of the processors the process may run on, so it must be set before
JAX is loaded."""
import os

import peer

THREADS = peer.parse_threads()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

STEPS, WORDS, HIDDEN = 30, 10000, 200
RANDOM = np.random.default_rng(1)


def normal(*shape, scale=1.0):
    return jnp.asarray(RANDOM.normal(0, scale, shape), jnp.float32)


def whole(limit, *shape):
    return jnp.asarray(RANDOM.integers(0, limit, shape), jnp.int32)


def dense_weights(before, after):
    return {"w": normal(before, after, scale=before ** -0.5), "b": jnp.zeros(after)}


def dense(p, x):
    return x @ p["w"] + p["b"]


def conv_weights(before, after, size):
    return normal(size, size, before, after, scale=(size * size * before) ** -0.5)


def conv(w, x, stride=1, border=0):
    return lax.conv_general_dilated(x, w, (stride, stride), [(border, border)] * 2,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    """The largest of 2x2: written so, the gradient is several times quicker than reduce_window's."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))


def lenet5(p, averages, x):
    for layer in p["convs"]:
        x = pool(jnp.tanh(conv(layer["w"], x) + layer["b"]))
    x = jnp.tanh(dense(p["dense1"], x.reshape(len(x), 800)))
    return dense(p["dense2"], x), averages


def lenet5_weights():
    convs = [{"w": conv_weights(before, after, 5), "b": jnp.zeros(after)} for before, after in ((1, 20), (20, 50))]
    return {"convs": convs, "dense1": dense_weights(800, 500), "dense2": dense_weights(500, 10)}


def norm(p, average, x):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    y = (x - mean) * (lax.rsqrt(variance + 1e-5) * p["scale"]) + p["offset"]
    count = x.size // x.shape[-1]
    now = {"mean": mean, "variance": variance * count / (count - 1)}
    return y, jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, average, now)


def resnet(p, averages, x):
    """Layers come in the order in which they are asked for; so do their running averages."""
    layers, old, new = iter(p["convs"]), iter(averages), []

    def conv_norm(x, stride=1):
        layer = next(layers)
        y, average = norm(layer, next(old), conv(layer["w"], x, stride, layer["w"].shape[0] // 2))
        new.append(average)
        return y

    x = jax.nn.relu(conv_norm(x))
    for channels in (16, 16, 32, 32, 64, 64):
        stride = 1 if channels == x.shape[-1] else 2
        y = conv_norm(jax.nn.relu(conv_norm(x, stride)))
        x = jax.nn.relu(y + (x if stride == 1 else conv_norm(x, stride)))
    return dense(p["dense"], x.mean((1, 2))), new


def resnet_weights():
    convs, before = [(3, 16, 3)], 16
    for channels in (16, 16, 32, 32, 64, 64):
        convs += [(before, channels, 3), (channels, channels, 3)]
        if channels != before:
            convs.append((before, channels, 1))
        before = channels
    return {"dense": dense_weights(64, 10),
            "convs": [{"w": conv_weights(a, b, size), "scale": jnp.ones(b), "offset": jnp.zeros(b)}
                      for a, b, size in convs]}


def resnet_averages(p):
    return [{"mean": jnp.zeros_like(c["scale"]), "variance": jnp.ones_like(c["scale"])} for c in p["convs"]]


def lstm(unroll):
    def layer(p, x):  # steps x batch x features; the input's product is made for all steps at once
        def step(carry, from_x):
            h, c = carry
            i, g, f, o = jnp.split(from_x + h @ p["u"], 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zeros = jnp.zeros(x.shape[1:])
        return lax.scan(step, (zeros, zeros), dense(p, x), unroll=unroll)[1]

    def network(p, averages, x):
        x = p["embed"][x]
        for one in p["lstm"]:
            x = layer(one, x)
        return dense(p["dense"], x.reshape(-1, HIDDEN)), averages
    return network


def lstm_weights():
    return {"embed": normal(WORDS, HIDDEN, scale=0.1),
            "lstm": [dense_weights(HIDDEN, 4 * HIDDEN) | {"u": normal(HIDDEN, 4 * HIDDEN, scale=0.05)}
                     for _ in range(2)],
            "dense": dense_weights(HIDDEN, WORDS)}


def perceptron(activation):
    def network(p, averages, x):
        for layer in p[:-1]:
            x = activation(dense(layer, x))
        return dense(p[-1], x), averages
    return network


def perceptron_weights(*widths):
    return [dense_weights(before, after) for before, after in zip(widths, widths[1:])]


def make(network, batch, mode):
    """The network as a function, its weights, its input and its labels."""
    if network == "lenet5":
        return lenet5, lenet5_weights(), normal(batch, 28, 28, 1), whole(10, batch)
    if network == "resnet":
        return resnet, resnet_weights(), normal(batch, 32, 32, 3), whole(10, batch)
    if network == "lstm-ptb":
        return (lstm(unroll=mode == "unrolled"), lstm_weights(), whole(WORDS, STEPS, batch),
                whole(WORDS, STEPS * batch))
    if network == "mlp":
        return perceptron(jax.nn.sigmoid), perceptron_weights(784, 100, 10), normal(batch, 784), whole(10, batch)
    if network == "dense":
        return (perceptron(jax.nn.relu), perceptron_weights(100, 512, 512, 512, 2), normal(batch, 100),
                whole(2, batch))
    raise ValueError(f"no network {network}")


def sgd(rate):
    def update(p, gradients, velocities):
        return jax.tree.map(lambda w, g: w - rate * g, p, gradients), velocities
    return update


def nesterov(p, gradients, velocities):
    gradients = jax.tree.map(lambda w, g: g + 0.0005 * w if w.ndim > 1 else g, p, gradients)
    velocities = jax.tree.map(lambda v, g: 0.9 * v + g, velocities, gradients)
    return jax.tree.map(lambda w, g, v: w - 0.1 * (g + 0.9 * v), p, gradients, velocities), velocities


UPDATES = {"lenet5": sgd(0.025), "resnet": nesterov, "lstm-ptb": sgd(0.05), "mlp": sgd(0.5), "dense": sgd(0.05)}


def prepare(network, batch, mode):
    forward, p, x, labels = make(network, batch, mode)
    averages = resnet_averages(p) if network == "resnet" else []
    velocities = jax.tree.map(jnp.zeros_like, p) if network == "resnet" else []

    def loss(p, averages, x, labels):
        outputs, averages = forward(p, averages, x)
        chosen = jnp.take_along_axis(outputs, labels[:, None], axis=1)[:, 0]
        return (jax.nn.logsumexp(outputs, axis=1) - chosen).mean(), averages

    def step(state, x, labels):
        p, averages, velocities = state
        (value, averages), gradients = jax.value_and_grad(loss, has_aux=True)(p, averages, x, labels)
        p, velocities = UPDATES[network](p, gradients, velocities)
        return (p, averages, velocities), value

    compiled = jax.jit(step, donate_argnums=0)
    state = (p, averages, velocities)

    def run(steps):
        nonlocal state
        for _ in range(steps):
            state, value = compiled(state, x, labels)
        jax.block_until_ready((state, value))

    return run, sum(w.size for w in jax.tree.leaves(p))


MODES = {network: ["jit"] for network in UPDATES}
MODES["lstm-ptb"] = ["jit", "unrolled"]

if __name__ == "__main__":
    peer.serve(jax.__version__, MODES, prepare, forget=jax.clear_caches)
