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
from jax import lax

HIDDEN = 200


def dense(p, x):
    return x @ p["weight"] + p["bias"]


def conv(w, x, stride=1, border=0):
    return lax.conv_general_dilated(x, w, (stride, stride), [(border, border)] * 2,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    """The largest of 2x2: written so, the gradient is several times quicker than reduce_window's."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))


def lenet5(p, averages, x):
    for layer in p[:2]:
        x = pool(jnp.tanh(conv(layer["weight"], x) + layer["bias"]))
    x = jnp.tanh(dense(p[2], x.reshape(len(x), 800)))
    return dense(p[3], x), averages


def norm(p, average, x):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    y = (x - mean) * (lax.rsqrt(variance + 1e-5) * p["gamma"]) + p["beta"]
    count = x.size // x.shape[-1]
    now = {"mean": mean, "variance": variance * count / (count - 1)}
    return y, jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, average, now)


def resnet(p, averages, x):
    """Layers come in the order in which they are asked for; so do their running averages."""
    layers, old, new = iter(p), iter(averages), []

    def conv_norm(x, stride=1):
        w = next(layers)["weight"]
        y, average = norm(next(layers), next(old), conv(w, x, stride, w.shape[0] // 2))
        new.append(average)
        return y

    x = jax.nn.relu(conv_norm(x))
    for channels in (16, 16, 32, 32, 64, 64):
        stride = 1 if channels == x.shape[-1] else 2
        y = conv_norm(jax.nn.relu(conv_norm(x, stride)))
        x = jax.nn.relu(y + (x if stride == 1 else conv_norm(x, stride)))
    return dense(next(layers), x.mean((1, 2))), new


def lstm(unroll):
    def layer(p, x):  # steps x batch x features; the input's product is made for all steps at once
        def step(carry, from_x):
            h, c = carry
            i, f, g, o = jnp.split(from_x + h @ p["recurrent"], 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zeros = jnp.zeros(x.shape[1:])
        return lax.scan(step, (zeros, zeros), dense(p, x), unroll=unroll)[1]

    def network(p, averages, x):
        x = p[0]["table"][x]
        for one in p[1:3]:
            x = layer(one, x)
        return dense(p[3], x.reshape(-1, HIDDEN)), averages
    return network


def perceptron(activation):
    def network(p, averages, x):
        for layer in p[:-1]:
            x = activation(dense(layer, x))
        return dense(p[-1], x), averages
    return network


NETWORKS = {"lenet5": lenet5, "resnet": resnet, "mlp": perceptron(jax.nn.sigmoid), "dense": perceptron(jax.nn.relu)}


def layers_of(start):
    """A dictionary a layer, by the roles of its arrays."""
    layers = {}
    for name, array in start.weights:
        layer, _, role = name.rpartition(".")
        layers.setdefault(layer, {})[role] = jnp.array(array)
    return list(layers.values())


def sgd(rate):
    def update(p, gradients, velocities):
        return jax.tree.map(lambda w, g: w - rate * g, p, gradients), velocities
    return update


def nesterov(p, gradients, velocities):
    gradients = jax.tree.map(lambda w, g: g + 0.0005 * w if w.ndim > 1 else g, p, gradients)
    velocities = jax.tree.map(lambda v, g: 0.9 * v + g, velocities, gradients)
    return jax.tree.map(lambda w, g, v: w - 0.1 * (g + 0.9 * v), p, gradients, velocities), velocities


UPDATES = {"lenet5": sgd(0.025), "resnet": nesterov, "lstm-ptb": sgd(0.05), "mlp": sgd(0.5), "dense": sgd(0.05)}


def prepare(network, mode, start):
    start.channels_last()
    forward = lstm(unroll=mode == "unrolled") if network == "lstm-ptb" else NETWORKS[network]
    p, x, labels = layers_of(start), jnp.asarray(start.x), jnp.asarray(start.labels)
    statistics = [jnp.asarray(a) for a in start.statistics]
    averages = [{"mean": m, "variance": v} for m, v in zip(statistics[::2], statistics[1::2])]
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
        return float(value)

    return run


MODES = {network: ["jit"] for network in UPDATES}
MODES["lstm-ptb"] = ["jit", "unrolled"]

if __name__ == "__main__":
    peer.serve(jax.__version__, MODES, prepare, forget=jax.clear_caches)
