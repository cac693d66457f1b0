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


def cases():
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
