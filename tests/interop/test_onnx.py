"""Exported models in onnxruntime give what Shoal itself gives, within 1e-5."""
import numpy as np
import onnx
import onnxruntime

from common import DUMP, SHOAL, SOURCE, call, compare, folder, load_file, random_input, save_file
from test_torch import ACTIVATIONS, LAYERS, LOSSES


def check(text, count):
    with folder() as place:
        (place / "a.net").write_text(text)
        call(DUMP, "init", place / "a.net", place / "a.safetensors")
        call(SHOAL, "export", place / "a.safetensors", "--onnx", place / "a.onnx")
        onnx.checker.check_model(str(place / "a.onnx"), full_check=True)
        session = onnxruntime.InferenceSession(str(place / "a.onnx"), providers=["CPUExecutionProvider"])
        for n in (count, 1):  # the batch is left open
            data = random_input(text, n, np.random.default_rng(n))
            save_file(data, place / "in")
            call(DUMP, "predict", place / "a.safetensors", place / "in", place / "out")
            x = data["x"] if "x" in data else data["tokens"].astype(np.int64)
            (theirs,) = session.run(["output"], {"input": x})
            assert len(theirs) == n, f"the output is {theirs.shape}"
            compare("output", load_file(place / "out")["output"], theirs)


def check_agent(env, algorithm, tolerance):
    """What an agent does in onnxruntime follows from the numbers of its file; one that has hardly learned will do."""
    with folder() as place:
        call(SHOAL, "agent", "train", "--env", env, "--algorithm", algorithm, "--steps", "6000", "--full", "--threads", "1", "--out", place / "a")
        call(SHOAL, "export", place / "a", "--onnx", place / "a.onnx")
        onnx.checker.check_model(str(place / "a.onnx"), full_check=True)
        session = onnxruntime.InferenceSession(str(place / "a.onnx"), providers=["CPUExecutionProvider"])
        agent = load_file(place / "a")
        width = len(agent["policy.observation_mean"])
        seen = (20 * np.random.default_rng(1).standard_normal((64, width))).astype(np.float32)
        values = np.clip((seen - agent["policy.observation_mean"]) * agent["policy.observation_scale"], -10, 10)
        layers = sorted(name[:-7] for name in agent if name.startswith("policy.") and name.endswith(".weight"))
        for layer in layers:
            values = values @ agent[layer + ".weight"] + agent[layer + ".bias"]
            if layer != layers[-1]:
                values = np.tanh(values) if algorithm == "ppo" else np.maximum(values, 0)
        (action,) = session.run(["action"], {"observation": seen})
        choices = {"CartPole-v1": 2, "MountainCar-v0": 3}.get(env)
        if choices:
            assert action.shape == (64,) and (action == values[:, :choices].argmax(axis=1)).mean() > 0.95, env
        else:
            wanted = 2 * np.tanh(values[:, :1]) if algorithm == "sac" else values
            assert action.shape == wanted.shape and np.abs(action - wanted).max() < tolerance, env


def cases():
    for env, algorithm in (("CartPole-v1", "ppo"), ("MountainCar-v0", "dqn"), ("Pendulum-v1", "ppo"), ("Pendulum-v1", "sac")):
        yield f"agent of {algorithm} in {env}", lambda e=env, a=algorithm: check_agent(e, a, 1e-3)
    for path in sorted((SOURCE / "examples").glob("*.net")):
        yield "example " + path.stem, lambda t=path.read_text(): check(t, 3)
    for name, layers in LAYERS.items():
        yield "layer " + name, lambda t=layers + "\nloss mean-squared\n": check(t, 5)
    for kind in ACTIVATIONS:
        yield "activation " + kind, lambda t=f"input 6\ndense 5 {kind}\ndense 3\nloss mean-squared\n": check(t, 5)
    for name, text in LOSSES.items():
        yield "output of " + name, lambda t=text: check(t, 5)
    yield "dropout", lambda: check("input 6\ndense 5 tanh\ndropout 0.5\ndense 3\nloss mean-squared\n", 5)
    yield "names of any kind", lambda: check("input 6\noutput: dense 5\nx-1: dense 3\nloss mean-squared\n", 5)
