"""What the tests share: running programs, random inputs for a model, comparing."""
import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

SHOAL = os.environ["SHOAL"]
DUMP = os.environ["DUMP"]
SOURCE = Path(os.environ["SOURCE_DIR"])
TOLERANCE = 1e-5


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}\nexit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def folder():
    """An empty folder that goes away again."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def compare(what, ours, theirs, tolerance=TOLERANCE, floor=1e-12):
    """Fails when two arrays differ by more than the tolerance times the largest magnitude, or
    times the floor where all values are smaller still."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.size != theirs.size:
        raise AssertionError(f"{what}: shapes {ours.shape} and {theirs.shape}")
    ours = ours.reshape(theirs.shape)
    largest = np.abs(theirs).max() if theirs.size else 0
    if not np.isfinite(ours).all() or not np.isfinite(theirs).all():
        raise AssertionError(f"{what}: not finite")
    worst = np.abs(ours - theirs).max() if theirs.size else 0
    if worst > tolerance * max(largest, floor):
        at = np.unravel_index(np.abs(ours - theirs).argmax(), theirs.shape)
        raise AssertionError(f"{what}: {ours[at]:.9g} here, {theirs[at]:.9g} there, at {tuple(map(int, at))}; "
                             f"the largest magnitude is {largest:.3g}")


def input_of(text):
    """The words of a model's input line, and of its embed and lookup lines if any."""
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    lines = [words[1:] if words and words[0].endswith(":") else words for words in lines]
    vocabulary = [int(words[1]) for words in lines if words and words[0] == "embed"]
    lookups = [(int(words[1]), int(words[4])) for words in lines if words and words[0] == "lookup"]
    return next(words[1:] for words in lines if words and words[0] == "input"), vocabulary, lookups


def row_numbers(rows, shape, random):
    """Numbers of rows of a table, and among them what is none and counts as 0."""
    numbers = random.integers(0, rows, shape).astype(np.float32)
    none = np.array([-1, rows, 0.5, rows - 0.5, 1e30, -np.inf, np.nan], np.float32)
    return np.where(random.random(shape) < 0.2, random.choice(none, shape), numbers)


def random_input(text, count, random):
    """({"x": ...} or {"tokens": ...}) for so many samples, as Shoal's safetensors want them."""
    words, vocabulary, lookups = input_of(text)
    if words[0] == "tokens":
        return {"tokens": random.integers(0, vocabulary[0], (count, int(words[1])), dtype=np.int32)}
    shape = [int(size) for size in words[-1].split("x")]
    x = random.standard_normal([count] + shape).astype(np.float32)
    if lookups:
        rows, columns = lookups[0]
        x[:, -columns:] = row_numbers(rows, (count, columns), random)
    return {"x": x}
