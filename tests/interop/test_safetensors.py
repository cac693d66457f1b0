"""The safetensors package reads what Shoal writes, and Shoal reads what it writes."""
import json

import numpy as np
from safetensors import safe_open

from common import DUMP, SOURCE, call, folder, load_file, save_file

KINDS = {"f": np.float32, "l": np.int64, "i": np.int32, "u": np.uint8}
META = {"text": 'line\nand "quotes"', "é": "", "": "x" * 1000}


def same(ours, theirs):
    assert ours.keys() == theirs.keys(), f"{sorted(ours)} and {sorted(theirs)}"
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype and ours[name].shape == theirs[name].shape, name
        assert ours[name].tobytes() == theirs[name].tobytes(), name


def metadata(path):
    with safe_open(path, "numpy") as file:
        return file.metadata()


def theirs_through_shoal():
    random = np.random.default_rng(1)
    tensors = {"scalar": np.array(3, np.float32), "none": np.zeros((0, 4), np.float32), "": np.zeros(3, np.uint8)}
    for key, kind in KINDS.items():
        for n, shape in enumerate([(1,), (7, 3), (2, 1, 5, 2), (1, 1, 1, 1, 1, 1, 1, 3)]):
            tensors[f"{key}.{n}"] = random.integers(0, 200, shape).astype(kind)
    with folder() as place:
        for meta in (META, {}):
            save_file(tensors, place / "theirs", meta)
            call(DUMP, "copy", place / "theirs", place / "ours")
            same(load_file(place / "ours"), tensors)
            assert (metadata(place / "ours") or {}) == meta


def a_checkpoint(path):
    with folder() as place:
        call(DUMP, "init", path, place / "a.safetensors")
        tensors, meta = load_file(place / "a.safetensors"), metadata(place / "a.safetensors")
        assert len(tensors) >= 2 and all(t.dtype == np.float32 for t in tensors.values())
        assert json.loads(meta["shoal.position"])["epoch"] == 0
        assert "loss" in meta["shoal.model"] and len(meta["shoal.weights_sha256"]) == 64
        save_file(tensors, place / "b.safetensors", meta)  # in their layout, and back
        call(DUMP, "copy", place / "b.safetensors", place / "c.safetensors")
        same(load_file(place / "c.safetensors"), tensors)


def other_types_are_refused():
    with folder() as place:
        save_file({"half": np.zeros(2, np.float16)}, place / "a")
        try:
            call(DUMP, "copy", place / "a", place / "b")
        except AssertionError as refused:
            assert "type 'F16'" in str(refused), refused
            return
        raise AssertionError("a type that Shoal does not know was read")


def cases():
    yield "theirs through Shoal", theirs_through_shoal
    yield "types that Shoal does not know", other_types_are_refused
    for path in sorted((SOURCE / "examples").glob("*.net")):
        yield "checkpoint of " + path.stem, lambda p=path: a_checkpoint(p)
