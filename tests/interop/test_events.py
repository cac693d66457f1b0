"""TensorBoard's own reader finds the tags, steps and values that Shoal wrote."""
import io
import json
import time

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard import context
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups
from tensorboard.util import tensor_util

from common import DUMP, SHOAL, SOURCE, call, compare, folder, load_file


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


def events(place):
    """The graph, and {plugin: {tag: [(step, value)]}} of all other values, as TensorBoard's own loader reads them."""
    graph, found = None, {}
    for path in sorted(place.glob("events.out.tfevents.*")):
        for event in EventFileLoader(str(path)).Load():
            if event.graph_def:
                graph = GraphDef.FromString(event.graph_def)
            for value in event.summary.value:
                plugin = found.setdefault(value.metadata.plugin_data.plugin_name, {})
                plugin.setdefault(value.tag, []).append((event.step, tensor_util.make_ndarray(value.tensor)))
    return graph, found


def check_histogram(buckets, values):
    """The same as NumPy's, but for values that lie on an edge."""
    assert buckets.shape == (30, 3) and buckets[:, 2].sum() == values.size
    compare("edges", [buckets[0, 0], buckets[-1, 1]], [values.min(), values.max()])
    if values.min() < values.max():
        counts, _ = np.histogram(values.astype(np.float64), 30)
        assert np.abs(counts - buckets[:, 2]).sum() <= max(4, values.size // 1000), (counts, buckets[:, 2])


def write_images(place, count, side, random):
    """IDX files of two classes, dark and bright, and the test images."""
    for name, n in (("train", 10 * count), ("t10k", count)):
        labels = (np.arange(n) % 2).astype(np.uint8)
        images = (random.integers(0, 100, (n, side, side)) + 120 * labels[:, None, None]).astype(np.uint8)
        (place / f"{name}-images-idx3-ubyte").write_bytes(np.array([2051, n, side, side], ">i4").tobytes() + images.tobytes())
        (place / f"{name}-labels-idx1-ubyte").write_bytes(np.array([2049, n], ">i4").tobytes() + labels.tobytes())
    return images, labels


def weights_gradients_images_and_the_graph_read_back():
    with folder() as place:
        images, labels = write_images(place, 24, 8, np.random.default_rng(1))
        (place / "m.net").write_text("input 1x8x8\nconv 4 3x3 relu\npool max 2x2\nname: dense 6 tanh\ndense 2\nloss cross-entropy\n"
                                     "optimizer sgd rate 0.05\nbatch 240\nepochs 3\n")
        call(SHOAL, "train", place / "m.net", "--data", place, "--log-dir", place / "runs", "--out", place / "m.safetensors",
             "--quiet")
        call(SHOAL, "train", place / "m.net", "--data", place, "--out", place / "b.safetensors", "--epochs", 2, "--quiet")
        weights, before = load_file(place / "m.safetensors"), load_file(place / "b.safetensors")
        graph, found = events(place / "runs")
        steps = [1, 2, 3]  # a round is an epoch here
        nodes = {node.name: node for node in graph.node}
        assert list(nodes["name/tanh"].input) == ["name/dense"] and nodes["name/tanh"].op == "tanh"
        conv = next(node for node in graph.node if node.op == "conv")
        layer = conv.name.split("/")[0]
        assert list(conv.input) == ["input/input", f"{layer}/weight", f"{layer}/bias"], conv
        assert [d.size for d in conv.attr["_output_shapes"].list.shape[0].dim] == [-1, 4, 6, 6], conv
        assert [d.size for d in nodes[f"{layer}/weight"].attr["_output_shapes"].list.shape[0].dim] == [4, 1, 3, 3]
        # Groups, the layers, lead from one to the next and never back, though the engine pools before it activates.
        edges = {(name.split("/")[0], node.name.split("/")[0]) for node in graph.node for name in node.input}
        assert "pool1/relu" in nodes and not any((b, a) in edges for a, b in edges if a != b), edges
        assert all(name in nodes for node in graph.node for name in node.input) and len(nodes) == len(graph.node)
        assert nodes["loss/cross-entropy"].input[0] in nodes
        names = [name for name in weights if not name.startswith("optimizer") and name in
                 {tag.split("/", 1)[1] for tag in found["histograms"]}]
        assert len(names) == 6 and len(found["histograms"]) == 12, found["histograms"].keys()
        for name in names:
            logged = found["histograms"][f"weights/{name}"]
            assert [step for step, _ in logged] == steps
            check_histogram(logged[-1][1], weights[name])
            # Plain descent: the last step was the rate times the gradient.
            gradient = found["histograms"][f"gradients/{name}"]
            stepped = (before[name] - weights[name]) / 0.05
            assert [step for step, _ in gradient] == steps and gradient[-1][1][:, 2].sum() == stepped.size
            compare("gradient", gradient[-1][1][[0, -1], [0, 1]], [stepped.min(), stepped.max()], 1e-3)
        shown = range(0, 24, 3)  # eight, from all over the test set
        assert set(found["images"]) == {f"samples/{i} is {i % 2}" for i in shown}, found["images"].keys()
        for i in shown:
            (step, (width, height, png)), = found["images"][f"samples/{i} is {i % 2}"]
            assert step == 0 and (width, height) == (b"8", b"8")
            assert (np.asarray(Image.open(io.BytesIO(png))) == images[i]).all()
        table = found["text"]["samples"][-1][1].item().decode()
        said = [json.loads(line) for line in
                call(SHOAL, "predict", place / "m.safetensors", "--data", place, "--json").splitlines()]
        for row, wanted in zip(table.splitlines()[2:], [said[i] for i in shown], strict=True):
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            assert cells[:2] == [str(wanted["sample"]), wanted["label"]], row
            assert cells[2] == wanted["class"] + ("" if wanted["correct"] else " (wrong)"), row
            assert abs(float(cells[3]) - wanted["probability"]) < 1e-4
        assert "conv" in found["text"]["model"][0][1].item().decode()


def a_text_model_writes():
    with folder() as place:
        (place / "t.txt").write_text("to be or not to be that is the question\n" * 200)
        (place / "m.net").write_text("input tokens 8 carry\nembed 30 8\nlstm 16\ndense 30\nloss cross-entropy\n"
                                     "optimizer adam\nbatch 4\nepochs 2\n")
        call(SHOAL, "train", place / "m.net", "--data", f"text:{place}/t.txt", "--log-dir", place / "runs",
             "--out", place / "m.safetensors", "--quiet")
        _, found = events(place / "runs")
        writes = [text.item().decode() for _, text in found["text"]["writes"]]
        assert len(writes) == 2 and all(set(text.strip("`\n").split()) <= set("to be or not that is the question <unk>".split())
                                        for text in writes), writes


def hparams(place):
    """The experiment and its groups of sessions, as the backend of TensorBoard's page HParams has them."""
    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(place))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(place))
    asked = context.RequestContext(), backend_context.Context(base_plugin.TBContext(data_provider=provider)), ""
    experiment = get_experiment.Handler(*asked, api_pb2.GetExperimentRequest()).run()
    every = [api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING, api_pb2.STATUS_UNKNOWN]
    request = api_pb2.ListSessionGroupsRequest(allowed_statuses=every, start_index=0, slice_size=1000)
    return experiment, list_session_groups.Handler(*asked, request).run().session_groups


def plain(value):
    return getattr(value, value.WhichOneof("kind"))


def a_search_reads_back():
    with folder() as place:
        random = np.random.default_rng(3)
        x = random.standard_normal((300, 3))
        labels = np.where(x[:, 0] + 0.3 * x[:, 1] > 0, "yes", "no")
        rows = [f"{a:.4f},{b:.4f},{c:.4f},{label}" for (a, b, c), label in zip(x, labels)]
        (place / "t.csv").write_text("\n".join(["a,b,c,kind"] + rows) + "\n")
        words = ("search", place / "t.csv", "--out", place / "m.safetensors", "--log-dir", place / "runs", "--json")
        said = call(SHOAL, *words, "--target", "kind", "--trials", 4)
        check_trials(place / "runs", [json.loads(line) for line in said.splitlines()])
        more = call(SHOAL, *words, "--resume", "--trials", 6)
        check_trials(place / "runs", [json.loads(line) for line in (said + more).splitlines()])


def check_trials(place, said):
    trials = {line["trial"]: line for line in said if line["event"] == "trial"}  # the last of each
    experiment, groups = hparams(place)
    kinds = {info.name: info.type for info in experiment.hparam_infos}
    assert kinds["rate"] == api_pb2.DATA_TYPE_FLOAT64 and kinds["activation"] == api_pb2.DATA_TYPE_STRING, kinds
    assert "accuracy/best" in [metric.name.tag for metric in experiment.metric_infos]
    assert len(groups) == len(trials), (len(groups), trials.keys())
    for group in groups:
        trial = trials[int(group.name.removeprefix("trial "))]
        assert {name: plain(value) for name, value in group.hparams.items() if value.WhichOneof("kind")} == trial["settings"]
        metrics = {value.name.tag: value for value in group.metric_values}
        assert metrics["accuracy/best"].value == np.float32(trial["score"]), trial
        assert metrics["accuracy/best"].training_step == trial["epochs"], trial
        assert metrics["weights"].value == trial["weights"]
        (session,) = group.sessions
        assert session.status == api_pb2.STATUS_SUCCESS and session.end_time_secs >= session.start_time_secs > 1e9
        curve, _ = scalars(place / f"trial-{trial['trial']}")
        assert [step for step, _ in curve["loss/train"]] == list(range(1, trial["epochs"] + 1)), curve["loss/train"]
        assert max(score for _, score in curve["accuracy/valid"]) <= metrics["accuracy/best"].value + 1e-6


def an_agent_reads_back():
    with folder() as place:
        said = call(SHOAL, "agent", "train", "--env", "CartPole-v1", "--seed", 1, "--log-dir", place / "runs", "--out",
                    place / "a.safetensors", "--json")
        scores = [line for line in map(json.loads, said.splitlines()) if line["event"] in ("score", "end")]
        scores = list({line["steps"]: line for line in scores}.values())  # the end may be the last score's
        found, _ = scalars(place / "runs")
        for tag in ("return/played", "loss/policy", "loss/value", "policy/entropy", "rate", "steps per second"):
            steps = [step for step, _ in found[tag]]
            assert steps == sorted(set(steps)) and all(np.isfinite(value) for _, value in found[tag]), tag
        assert [(line["steps"], float(np.float32(line["return_mean"]))) for line in scores] == found["return/scored"]
        assert [(line["steps"], float(np.float32(line["length_mean"]))) for line in scores] == found["length/scored"]


def cases():
    yield "a search reads back", a_search_reads_back
    yield "an agent reads back", an_agent_reads_back
    yield "weights, gradients, images and the graph read back", weights_gradients_images_and_the_graph_read_back
    yield "a text model writes", a_text_model_writes
    yield "a training reads back", a_training_reads_back
    yield "everything reads back", everything_reads_back
