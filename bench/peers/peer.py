"""peer.py: what the peers share: how they talk with compare.py, and how a window is measured.

A peer is a process with one number of threads. When it can begin it prints one line of JSON,

    {"version": "2.15.0", "modes": {"lenet5": ["eager", "compile"], "mlp": ["eager"], ...}}

and then answers each line "NETWORK BATCH MODE SECONDS" of its input with one line,

    {"batches_per_s": 23.1, "weights": 431080, "first_update_s": 3.2, "resident_mb": 512.0}
    {"failed": "why"}

What a network and a mode need is built and warmed up when first asked for, and kept until the
network or the batch changes. Between two lines a peer waits for its input and computes nothing.

As in `shoal bench train`, a window has five parts and the median counts, and data lies in memory.
"""
import argparse
import gc
import json
import resource
import statistics
import sys
import time

STARTED = time.perf_counter()
PARTS = 5
WARM_UP_STEPS = 3


def parse_threads():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args().threads


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

    def __init__(self, prepare, network, batch, mode):
        self.run, self.weights = prepare(network, batch, mode)
        self.run(1)
        self.first_update_s = time.perf_counter() - STARTED
        self.run(WARM_UP_STEPS)
        start = time.perf_counter()
        self.run(1)
        self.step_s = time.perf_counter() - start


def serve(version, modes, prepare, forget=lambda: None):
    """Answers requests until the input ends.

    prepare(network, batch, mode) returns run and the number of weights; run(n) trains n steps and
    returns when all are done. forget() drops what the library itself keeps of the last network."""
    print(json.dumps({"version": version, "modes": modes}), flush=True)
    current, kept = None, {}
    for line in sys.stdin:
        network, batch, mode, seconds = line.split()
        try:
            if current != (network, batch):
                current, kept = (network, batch), {}
                gc.collect()
                forget()
            if mode not in kept:
                kept[mode] = Prepared(prepare, network, int(batch), mode)
            made = kept[mode]
            answer = {"batches_per_s": measure(made.run, float(seconds), made.step_s),
                      "weights": made.weights,
                      "first_update_s": made.first_update_s,
                      "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)
