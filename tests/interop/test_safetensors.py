"""The safetensors package reads what Shoal writes, and Shoal reads what it writes."""
import json

import numpy as np
from safetensors import safe_open

from common import DUMP, SHOAL, SOURCE, call, folder, load_file, save_file

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


def pole_falls_after(choose, seed):
    """Steps of a CartPole-v1 in NumPy, 500 at most."""
    x, speed, angle, turn = np.random.default_rng(seed).uniform(-0.05, 0.05, 4)
    for step in range(500):
        force = 10.0 if choose(np.array([x, speed, angle, turn], np.float32)) else -10.0
        push = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        turning = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        moving = push - 0.05 * turning * np.cos(angle) / 1.1
        x, speed, angle, turn = x + 0.02 * speed, speed + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning
        if abs(x) > 2.4 or abs(angle) > 24 * np.pi / 360:
            return step + 1
    return 500


def an_agent_plays_elsewhere():
    """What is in an agent's file is enough to play, for who knows nothing of Shoal."""
    with folder() as place:
        call(SHOAL, "agent", "train", "--env", "CartPole-v1", "--algorithm", "ppo", "--seed", "2", "--out", place / "agent")
        agent = load_file(place / "agent")

        def choose(seen):
            values = np.clip((seen - agent["policy.observation_mean"]) * agent["policy.observation_scale"], -10, 10)
            for layer in ("dense1", "dense2"):
                values = np.tanh(values @ agent[f"policy.{layer}.weight"] + agent[f"policy.{layer}.bias"])
            return np.argmax(values @ agent["policy.dense3.weight"] + agent["policy.dense3.bias"])

        assert np.mean([pole_falls_after(choose, seed) for seed in range(10)]) >= 475


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
    yield "an agent plays in NumPy", an_agent_plays_elsewhere
    for path in sorted((SOURCE / "examples").glob("*.net")):
        yield "checkpoint of " + path.stem, lambda p=path: a_checkpoint(p)
