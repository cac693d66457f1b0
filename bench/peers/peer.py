"""peer.py: what the peers share: how they talk with compare.py, and how a window is measured.

A peer is a process with one number of threads. When it can begin it prints one line of JSON,

    {"version": "2.15.0", "modes": {"lenet5": ["eager", "compile"], "mlp": ["eager"], ...}}

and then answers each line "NETWORK BATCH MODE SECONDS START" of its input with one line,

    {"batches_per_s": 23.1, "losses": [2.31, ...], "first_update_s": 3.2, "resident_mb": 512.0}
    {"failed": "why"}

START is the file that `shoal bench train --losses` wrote: the weights to begin with, and the batch. `losses` are those
of the first ten steps.

What a network and a mode need is built and warmed up when first asked for, and kept until the
network or the batch changes. Between two lines a peer waits for its input and computes nothing.

As in `shoal bench train`, a window has five parts and the median counts, and data lies in memory.
"""
import argparse
import gc
import json
import pathlib
import resource
import statistics
import sys
import time

import numpy as np

STARTED = time.perf_counter()
PARTS = 5
FIRST_STEPS = 10  # whose losses are compared; they are the warm-up, too


def parse_threads():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args().threads


# ---- what a network begins with ----


class Start:
    """The batch, and the network's arrays in the order of its layers; statistics are running means and variances."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        end = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:end])
        header.pop("__metadata__", None)
        arrays = {name: np.frombuffer(data, {"F32": np.float32, "I32": np.int32}[t["dtype"]], offset=end + t["data_offsets"][0],
                                      count=int(np.prod(t["shape"]))).reshape(t["shape"]) for name, t in header.items()}
        self.x = arrays.pop("batch.x" if "batch.x" in arrays else "batch.tokens")
        self.labels = arrays.pop("batch.labels").reshape(-1)
        of_statistics = [name for name in arrays if name.endswith((".mean", ".variance"))]
        self.statistics = [arrays.pop(name) for name in of_statistics]
        self.weights = list(arrays.items())

    def channels_last(self):
        """Turns images into batch x height x width x channels, and the weights that work on them."""
        if self.x.ndim < 4:
            return self
        self.x = self.x.transpose(0, 2, 3, 1)
        channels = None  # of the image that the next layer sees
        for i, (name, w) in enumerate(self.weights):
            if w.ndim == 4:
                channels = len(w)
                w = w.transpose(2, 3, 1, 0)
            elif w.ndim == 2 and channels:
                w = w.reshape(channels, -1, w.shape[1]).swapaxes(0, 1).reshape(w.shape)
                channels = None
            self.weights[i] = (name, w)
        return self


# ---- answering ----


def measure(run, seconds, step_s):
    """Steps a second; step_s is a guess at what one takes."""
    rates = []
    for _ in range(PARTS):
        steps = max(1, round(seconds / PARTS / step_s))
        start = time.perf_counter()
        run(steps)
        step_s = (time.perf_counter() - start) / steps
        rates.append(1 / step_s)
    return statistics.median(rates)


class Prepared:
    """A network in one mode: built, and warm."""

    def __init__(self, prepare, network, mode, start):
        self.run = prepare(network, mode, start)
        self.losses = [self.run(1)]
        self.first_update_s = time.perf_counter() - STARTED
        self.losses += [self.run(1) for _ in range(FIRST_STEPS - 1)]
        start = time.perf_counter()
        self.run(1)
        self.step_s = time.perf_counter() - start


def serve(version, modes, prepare, forget=lambda: None):
    """Answers requests until the input ends.

    prepare(network, mode, start) returns run; run(n) trains n steps and returns the last one's loss when all
    are done. forget() drops what the library itself keeps of the last network."""
    print(json.dumps({"version": version, "modes": modes}), flush=True)
    current, kept = None, {}
    for line in sys.stdin:
        network, batch, mode, seconds, start = line.split(maxsplit=4)
        try:
            if current != (network, batch):
                current, kept = (network, batch), {}
                gc.collect()
                forget()
            if mode not in kept:
                kept[mode] = Prepared(prepare, network, mode, Start(start.rstrip("\n")))
            made = kept[mode]
            answer = {"batches_per_s": measure(made.run, float(seconds), made.step_s),
                      "losses": made.losses,
                      "first_update_s": made.first_update_s,
                      "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)
