"""TensorBoard's own reader finds the tags, steps and values that Shoal wrote."""
import json
import time

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common import DUMP, SHOAL, SOURCE, call, folder


def scalars(place):
    """{tag: [(step, value)]}, and the times, of the event files in a folder."""
    reader = EventAccumulator(str(place), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    tags = {tag: reader.Scalars(tag) for tag in reader.Tags()["scalars"]}
    return ({tag: [(e.step, e.value) for e in events] for tag, events in tags.items()},
            [e.wall_time for events in tags.values() for e in events])


def everything_reads_back():
    with folder() as place:
        before = time.time()
        call(DUMP, "events", place / "runs")
        found, times = scalars(place / "runs")
        assert found.keys() == {"train/loss", "valid/accuracy"}, found.keys()
        assert found["train/loss"] == [(s * s, float(np.float32(1 / (s + 1)))) for s in range(1000)]
        assert found["valid/accuracy"] == [(s, float(np.float32(s / 1000))) for s in range(0, 1000, 100)]
        assert all(before - 1 <= t <= time.time() + 1 for t in times)


def a_training_reads_back():
    with folder() as place:
        said = call(SHOAL, "train", SOURCE / "examples/vector-to-sequence.net", "--data", "toy:wave", "--epochs", 2,
                    "--log-dir", place / "runs", "--out", place / "a.safetensors", "--json")
        epochs = [line for line in map(json.loads, said.splitlines()) if line["event"] == "epoch"]
        found, _ = scalars(place / "runs")
        assert [step for step, _ in found["loss/round"]] == list(range(1, epochs[-1]["step"] + 1))
        for tag, key in (("loss/train", "loss"), ("loss/test", "test_loss"), ("rmse/test", "test_rmse")):
            wanted = [(line["step"], float(np.float32(line[key]))) for line in epochs]
            assert found[tag][:len(wanted)] == wanted, tag  # the end repeats the last of a test


def cases():
    yield "a training reads back", a_training_reads_back
    yield "everything reads back", everything_reads_back
