"""Every layer, activation, loss and optimiser against PyTorch in double precision (twin.py):
outputs, loss, gradients, and the weights after ten rounds, within 1e-5 of the largest value."""
import zlib

import numpy as np
import torch

from common import DUMP, call, compare, folder, load_file, random_input, save_file
from twin import Twin

SGD = "optimizer sgd rate 0.02\nbatch 8\n"

# The layers of a net each; the loss and the settings below follow.
LAYERS = {
    "dense": "input 7\ndense 5 tanh\ndense 3",
    "dense on a sequence": "input sequence 4x3\ndense 5 tanh\ndense 2",
    "dense on an image": "input 2x3x4\ndense 5",
    "dense no-bias": "input 7\ndense 5 no-bias tanh\ndense 3 no-bias",
    "dense wide": "input 100\ndense 70 relu\ndense 33",
    "conv": "input 2x7x6\nconv 3 3x2 tanh\nconv 2 2x2\nflatten",
    "conv stride": "input 2x9x8\nconv 3 3x3 stride 2 tanh\ndense 2",
    "conv stride of two kinds": "input 1x9x8\nconv 3 2x3 stride 2x1 tanh\ndense 2",
    "conv pad": "input 2x5x5\nconv 3 3x3 pad 1 tanh\nconv 2 3x3 pad 2\nflatten",
    "conv pad of two kinds": "input 2x5x6\nconv 3 3x5 pad 1x2 no-bias tanh\ndense 2",
    "conv pad same": "input 3x6x5\nconv 4 5x3 pad same tanh\nconv 4 3x3 stride 2 pad same\nflatten",
    "conv many channels 3x3": "input 8x9x7\nconv 13 3x3 pad same tanh\nconv 9 3x3 tanh\ndense 2",
    "conv many channels 5x5": "input 9x7x9\nconv 8 5x5 pad same tanh\nconv 11 5x5 pad 1 relu\npool max 2x2\ndense 2",
    "conv 1x1": "input 5x4x4\nconv 3 1x1 tanh\nconv 2 1x1\nflatten",
    "conv many channels": "input 1x12x12\nconv 20 5x5 tanh\nconv 50 5x5 tanh\ndense 2",
    "pool max": "input 2x6x6\nconv 3 3x3 pad 1 tanh\npool max 2x2\ndense 2",
    "pool max overlapping": "input 2x7x7\nconv 3 3x3 pad 1 tanh\npool max 3x3 stride 2 pad 1\ndense 2",
    "pool min": "input 2x6x6\nconv 3 3x3 pad 1 tanh\npool min 2x3 stride 1x2 pad 1\ndense 2",
    "pool average": "input 2x6x6\nconv 3 3x3 pad 1 tanh\npool average 2x2\ndense 2",
    "pool average with a border": "input 2x6x7\nconv 3 3x3 pad 1 tanh\npool average 3x3 stride 2 pad 1\ndense 2",
    "global-pool max": "input 2x5x6\nconv 4 3x3 tanh\nglobal-pool max\ndense 2",
    "global-pool min": "input 2x5x6\nconv 4 3x3 tanh\nglobal-pool min\ndense 2",
    "global-pool average": "input 2x5x6\nconv 4 3x3 tanh\nglobal-pool average\ndense 2",
    "flatten an image": "input 2x4x3\nconv 3 2x2 tanh\nflatten\ndense 2",
    "flatten a sequence": "input sequence 4x3\ndense 2 tanh\nflatten\ndense 3",
    "reshape to an image": "input 24\ndense 24 tanh\nreshape 2x3x4\nconv 2 2x2\nflatten",
    "reshape to a sequence": "input 2x3x4\nconv 2 1x1 tanh\nreshape sequence 4x6\ndense 2",
    "reshape to a vector": "input sequence 4x6\ndense 3 tanh\nreshape 12\ndense 2",
    "reshape a sequence to an image": "input sequence 4x6\nreshape 2x3x4\nconv 2 2x2\nflatten",
    "embed": "input tokens 5\nembed 11 4\ndense 3",
    "lookup": "input 7\nlookup 5 4 of 3\ndense 6 tanh\ndense 3",
    "lookup of all": "input 3\nlookup 11 17 of 3\ndense 3",
    "lookup one value a row": "input 4\nlookup 6 1 of 2 tanh\ndense 3",
    "rnn": "input sequence 5x3\nrnn 4\ndense 2",
    "rnn relu": "input sequence 5x3\nrnn 4 relu\ndense 2",
    "rnn stacked bidirectional last": "input sequence 5x3\nrnn 4 layers 2 bidirectional last\ndense 2",
    "lstm": "input sequence 5x3\nlstm 4\ndense 2",
    "lstm last": "input sequence 5x3\nlstm 4 last\ndense 2",
    "lstm stacked": "input sequence 5x3\nlstm 4 layers 3\ndense 2",
    "lstm bidirectional": "input sequence 5x3\nlstm 4 bidirectional\ndense 2",
    "lstm stacked bidirectional last": "input sequence 5x3\nlstm 4 layers 2 bidirectional last\ndense 2",
    "lstm wide": "input sequence 6x40\nlstm 50\ndense 20",
    "lstm then an activation": "input sequence 5x3\nlstm 4 relu\ndense 2",
    "gru": "input sequence 5x3\ngru 4\ndense 2",
    "gru last": "input sequence 5x3\ngru 4 last\ndense 2",
    "gru stacked bidirectional": "input sequence 5x3\ngru 4 layers 2 bidirectional\ndense 2",
    "gru stacked bidirectional last": "input sequence 5x3\ngru 4 layers 2 bidirectional last\ndense 2",
    "lstm on tokens": "input tokens 6\nembed 9 5\nlstm 7 last\ndense 3",
    "repeat": "input 4\ndense 3 tanh\nrepeat 5\ngru 3\ndense 2",
    "encoder and decoder": "input tokens 4\nembed 6 5\nlstm 6 last\nrepeat 4\nlstm 6\ndense 6",
    "batchnorm on a vector": "input 5\ndense 6 no-bias\nbatchnorm tanh\ndense 2",
    "batchnorm on an image": "input 2x5x5\nconv 3 3x3 no-bias\nbatchnorm relu\ndense 2",
    "batchnorm on a sequence": "input sequence 4x3\ndense 5 no-bias\nbatchnorm tanh\ndense 2",
    "batchnorm on the input": "input 3x4x4\nbatchnorm\nconv 2 2x2\nflatten",
    "layernorm on a vector": "input 5\ndense 6\nlayernorm tanh\ndense 2",
    "layernorm on an image": "input 2x5x5\nconv 3 3x3\nlayernorm tanh\ndense 2",
    "layernorm on a sequence": "input sequence 4x3\ndense 5\nlayernorm tanh\ndense 2",
    "add": "input 4\na: dense 5 tanh\nb: dense 5 tanh\ndense 5\nadd a b tanh\ndense 2",
    "add on an image": "input 2x5x5\na: conv 3 3x3 pad 1 tanh\nconv 3 3x3 pad 1\nadd a relu\ndense 2",
    "add from": "input 4\na: dense 5 tanh\ndense 5 tanh\nb: dense 5\ndense 5 from a\nadd b\ndense 2",
    "concat vectors": "input 4\na: dense 3 tanh\nb: dense 5 tanh\nc: dense 2 tanh\nconcat a b\ndense 2",
    "concat images": "input 2x5x5\na: conv 3 3x3 pad 1 tanh\nconv 4 3x3 pad 1 tanh\nconcat a\nconv 2 2x2\nflatten",
    "concat sequences": "input sequence 4x3\na: dense 3 tanh\nlstm 5\nconcat a\ndense 2",
    "one value used three times": "input 4\na: dense 4 tanh\nb: dense 4 tanh\nadd a\nconcat a b\ndense 2",
    "residual block": "input 2x6x6\na: conv 4 3x3 pad same tanh\nconv 4 3x3 pad same no-bias\nbatchnorm relu\n"
                      "conv 4 3x3 pad same no-bias\nb: batchnorm\nconv 4 1x1 no-bias from a\nbatchnorm\nadd b relu\n"
                      "global-pool average\ndense 2",
}
ACTIVATIONS = "identity sigmoid tanh relu leaky-relu elu gelu silu softplus softmax".split()
LOSSES = {
    "cross-entropy": "input 5\ndense 4 tanh\ndense 6\nloss cross-entropy",
    "cross-entropy after softmax": "input 5\ndense 4 tanh\ndense 6 softmax\nloss cross-entropy",
    "cross-entropy on an image": "input 2x4x4\nconv 3 2x2\nglobal-pool max\nloss cross-entropy",
    "cross-entropy of steps": "input sequence 4x3\nlstm 5\ndense 6\nloss cross-entropy",
    "cross-entropy sum-steps": "input sequence 4x3\nlstm 5\ndense 6\nloss cross-entropy sum-steps",
    "cross-entropy class-weights": "input 5\ndense 4\nloss cross-entropy\nclass-weights 0.5 2 1 0.1",
    "cross-entropy padded": "input sequence 4x3\ngru 5\ndense 6\nloss cross-entropy",
    "binary-cross-entropy": "input 5\ndense 4 tanh\ndense 3\nloss binary-cross-entropy",
    "binary-cross-entropy after sigmoid": "input 5\ndense 4 tanh\ndense 3 sigmoid\nloss binary-cross-entropy",
    "binary-cross-entropy of an image": "input 2x4x4\nconv 3 2x2 tanh\nconv 1 1x1\nflatten\nsigmoid\nloss binary-cross-entropy",
    "mean-squared": "input 5\ndense 4 tanh\ndense 3\nloss mean-squared",
    "mean-squared of steps": "input sequence 4x3\nrnn 5\ndense 3\nloss mean-squared",
    "mean-squared sum-steps": "input sequence 4x3\nrnn 5\ndense 3\nloss mean-squared sum-steps",
    "mean-squared of an image": "input 2x4x4\nconv 3 2x2\nflatten\nloss mean-squared",
    "mean-absolute": "input 5\ndense 4 tanh\ndense 3\nloss mean-absolute",
    "huber": "input 5\ndense 4 tanh\ndense 3\nloss huber",
    "huber delta": "input 5\ndense 4 tanh\ndense 3\nloss huber delta 0.3",
}
OPTIMIZERS = {
    "sgd": "optimizer sgd rate 0.1",
    "sgd l2": "optimizer sgd rate 0.1\nl2 0.05",
    "momentum": "optimizer momentum rate 0.05",
    "momentum 0.5 l2": "optimizer momentum rate 0.05 momentum 0.5\nl2 0.05",
    "nesterov": "optimizer nesterov rate 0.05",
    "nesterov 0.7 l2": "optimizer nesterov rate 0.05 momentum 0.7\nl2 0.05",
    "adagrad": "optimizer adagrad rate 0.01",
    "adagrad eps l2": "optimizer adagrad rate 0.01 eps 0.001\nl2 0.05",
    "rmsprop": "optimizer rmsprop rate 0.001",
    "rmsprop beta2 eps l2": "optimizer rmsprop rate 0.001 beta2 0.9 eps 0.001\nl2 0.05",
    "adam": "optimizer adam rate 0.002",
    "adam betas eps l2": "optimizer adam rate 0.002 beta1 0.8 beta2 0.99 eps 0.0001\nl2 0.05",
    "adamw": "optimizer adamw rate 0.002",
    "adamw l2": "optimizer adamw rate 0.002\nl2 0.5",
    "clip": "optimizer momentum rate 0.05\nclip 0.1",
    "clip l2": "optimizer sgd rate 0.1\nclip 0.1\nl2 0.05",
    "four shards": "optimizer sgd rate 0.1\nshards 4",
    "schedule step": "optimizer sgd rate 0.1\nschedule step from 2 every 2 factor 0.5",
    "schedule exponential": "optimizer sgd rate 0.1\nschedule exponential 0.8",
    "schedule cosine": "optimizer sgd rate 0.1\nschedule cosine to 0.01\nepochs 5",
    "warmup": "optimizer sgd rate 0.1\nwarmup 2.5 scale 4",
}


def random_targets(twin, count, random):
    steps = twin.shape[:1] if len(twin.shape) == 2 else ()
    if twin.loss_kind == "cross-entropy":
        return {"labels": random.integers(0, twin.shape[-1], (count,) + steps, dtype=np.int32)}
    shape = (count,) + steps + twin.shape[-1:]
    if twin.loss_kind == "binary-cross-entropy":
        return {"targets": random.integers(0, 2, shape).astype(np.float32)}
    return {"targets": random.standard_normal(shape).astype(np.float32)}


def for_twin(data, twin):
    """The same samples as tensors: batch x steps, where the twin wants steps."""
    steps = twin.shape[0] if len(twin.shape) == 2 else 1
    count = len(next(iter(data.values())))
    x = torch.tensor(data["x"] if "x" in data else data["tokens"].astype(np.int64))
    made = {"x": x, "weight": torch.tensor(data["weight"].reshape(count, steps))}
    if "labels" in data:
        made["labels"] = torch.tensor(data["labels"].astype(np.int64).reshape(count, steps))
    else:
        made["targets"] = torch.tensor(data["targets"].reshape(count, steps, -1))
    return made


def check(text, count=24, padded=False, **bound):
    random = np.random.default_rng(zlib.crc32(text.encode()))
    torch.set_num_threads(1)
    twin = Twin(text, random)
    size = int(twin.settings["batch"][0])
    data = random_input(text, count, random) | random_targets(twin, count, random)
    rows = (count,) + (twin.shape[:1] if len(twin.shape) == 2 else ())
    data["weight"] = np.ones(rows, np.float32)
    if padded:
        data["weight"][random.random(rows) < 0.3] = 0
    start = {k: v.detach().numpy().astype(np.float32) for k, v in (twin.parameters | twin.statistics).items()}
    with folder() as place:
        (place / "a.net").write_text(text)
        save_file(data | start, place / "in")
        call(DUMP, "train", place / "a.net", place / "in", place / "out")
        ours = load_file(place / "out")

    theirs = for_twin(data, twin)
    first = {k: v[:size] for k, v in theirs.items()}
    compare("output", ours["output"], twin.predict(first["x"]).numpy(), **bound)
    kept = {k: v.clone() for k, v in twin.statistics.items()}
    reported, objective = twin.loss(first)
    objective.backward()
    compare("loss", ours["loss"], reported.item(), **bound)
    for name, value in twin.parameters.items():
        compare("gradient of " + name, ours["gradient." + name], value.grad.numpy(), **bound)
    for name, value in kept.items():
        twin.statistics[name].copy_(value)
    compare("losses", ours["losses"], twin.train(theirs, len(ours["losses"])), **bound)
    for name, value in (twin.parameters | twin.statistics).items():
        compare("ten rounds later: " + name, ours["after." + name], value.detach().numpy(), **bound)


def cases():
    for name, layers in LAYERS.items():
        shards = "shards 1\n" if "batchnorm" in layers else ""
        yield "layer " + name, lambda t=f"{layers}\nloss mean-squared\n{SGD}{shards}": check(t)
    for kind in ACTIVATIONS:
        yield f"activation {kind}", lambda t=f"input 6\ndense 5 {kind}\ndense 3\nloss mean-squared\n{SGD}": check(t)
        if kind != "softmax":
            yield f"activation {kind} on an image", lambda t=(
                f"input 2x4x4\nconv 3 2x2\n{kind}\ndense 3\nloss mean-squared\n{SGD}"): check(t)
    yield "activation softmax on a sequence", lambda: check(
        f"input sequence 4x3\ndense 5 softmax\ndense 3\nloss mean-squared\n{SGD}")
    for name, text in LOSSES.items():
        yield "loss " + name, lambda t=f"{text}\n{SGD}", p="padded" in name: check(t, padded=p)
    for name, text in OPTIMIZERS.items():
        yield "optimizer " + name, lambda t=(
            f"input 6\ndense 5 tanh\ndense 4\nloss cross-entropy\nbatch 8\n{text}\n"): check(t)
    yield "a last batch that is not full", lambda: check(
        f"input 6\ndense 5 tanh\ndense 4\nloss cross-entropy\n{SGD}", count=20)
    yield "an image batch of many tiles", lambda: check(
        "input 1x6x6\nconv 3 3x3 tanh\ndense 4\nloss cross-entropy\noptimizer sgd rate 0.1\nbatch 77\n", count=200)
    yield "batchnorm over a batch of many shards", lambda: check(
        "input 2x6x6\nconv 3 3x3 no-bias\nbatchnorm batch relu\ndense 5 no-bias\nbatchnorm tanh batch\ndense 4\n"
        "loss cross-entropy\noptimizer sgd rate 0.05\nbatch 96\n", count=240)
    for cell in ("rnn", "lstm", "gru"):
        yield f"carry {cell}", lambda t=(
            f"input tokens 5 carry\nembed 7 4\n{cell} 5 layers 2\ndense 7\nloss cross-entropy\n{SGD}"): check(t)
