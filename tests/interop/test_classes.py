"""What shoal eval says of every class is what scikit-learn says of the same answers, and its pictures are the images."""
import csv
import json

import numpy as np
from sklearn import metrics

from common import SHOAL, call, compare, folder
from test_events import write_images

MODEL = "input 4\ndense 8 relu\ndense {outputs}\nloss {loss}\nepochs 3\nbatch 16\n"


def write_table(path, classes, random):
    """Rows whose class is hard to tell; one class is rare."""
    labels = random.choice(classes, 400, p=[0.02] + [0.98 / (len(classes) - 1)] * (len(classes) - 1))
    place = np.array([classes.index(label) for label in labels])[:, None]
    rows = np.round(random.standard_normal((400, 4)) + place * [0.8, 0, -0.3, 0.1], 3)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "d", "kind"]] + [[*row, label] for row, label in zip(rows, labels)])


def check(evaluation, truth, said, names):
    matrix = metrics.confusion_matrix(truth, said, labels=names)
    assert evaluation["matrix"] == matrix.tolist(), evaluation["matrix"]
    found = evaluation["classes"]
    assert [row["class"] for row in found] == names
    scores = metrics.precision_recall_fscore_support(truth, said, labels=names, zero_division=0)
    for key, wanted in zip(("precision", "recall", "f1", "support"), scores):
        compare(key, [row[key] for row in found], wanted, 1e-12)
    mean = metrics.precision_recall_fscore_support(truth, said, average="macro", zero_division=0)
    compare("macro", [evaluation["macro"][key] for key in ("precision", "recall", "f1")], mean[:3], 1e-12)
    compare("accuracy", evaluation["accuracy"], metrics.accuracy_score(truth, said), 1e-12)
    pairs = sorted((-matrix[i, j], i, j) for i in range(len(names)) for j in range(len(names)) if i != j and matrix[i, j])
    assert [(row["label"], row["class"], row["count"]) for row in evaluation["confused"]] == \
        [(names[i], names[j], -n) for n, i, j in pairs[:20]]


def a_training(classes, loss, outputs):
    with folder() as here:
        write_table(here / "t.csv", classes, np.random.default_rng(len(classes)))
        (here / "m.net").write_text(MODEL.format(outputs=outputs, loss=loss))
        data = ("--data", here / "t.csv")
        call(SHOAL, "train", here / "m.net", *data, "--out", here / "m.safetensors", "--quiet")
        answers = [json.loads(line) for line in
                   call(SHOAL, "predict", here / "m.safetensors", *data, "--split", "train", "--json").splitlines()]
        evaluation = json.loads(call(SHOAL, "eval", here / "m.safetensors", *data, "--split", "train", "--json"))
        check(evaluation, [a["label"] for a in answers], [a["class"] for a in answers], sorted(classes))
        wrong = sorted((w["label_probability"], w["sample"]) for w in evaluation["worst"])
        assert [w["sample"] for w in evaluation["worst"]] == [sample for _, sample in wrong]
        for row in evaluation["worst"]:
            answer = answers[row["sample"]]
            assert not answer["correct"] and (answer["label"], answer["class"]) == (row["label"], row["class"])
            compare("probability", row["probability"], answer["probability"], 1e-6)


def each_output_for_itself():
    """Binary cross-entropy with several outputs: scores of every output, no matrix."""
    with folder() as here:
        write_images(here, 200, 8, np.random.default_rng(5))
        (here / "m.net").write_text("input 1x8x8\nflatten\ndense 2\nloss binary-cross-entropy\noptimizer sgd rate 0.001\nepochs 1\n")
        call(SHOAL, "train", here / "m.net", "--data", here, "--out", here / "m.safetensors", "--quiet")
        evaluation = json.loads(call(SHOAL, "eval", here / "m.safetensors", "--data", here, "--json"))
        answers = [json.loads(line) for line in
                   call(SHOAL, "predict", here / "m.safetensors", "--data", here, "--json").splitlines()]
        truth = np.array([answer["targets"] for answer in answers]) > 0.5
        said = np.array([answer["values"] for answer in answers]) > 0.5
        scores = metrics.precision_recall_fscore_support(truth, said, zero_division=0)
        for key, wanted in zip(("precision", "recall", "f1", "support"), scores):
            compare(key, [row[key] for row in evaluation["classes"]], wanted, 1e-12)
        compare("accuracy", evaluation["accuracy"], metrics.accuracy_score(truth, said), 1e-12)
        assert "matrix" not in evaluation and "confused" not in evaluation


def a_search():
    with folder() as here:
        classes = ["low", "middle", "high"]
        write_table(here / "t.csv", classes, np.random.default_rng(9))
        call(SHOAL, "search", here / "t.csv", "--target", "kind", "--trials", 3, "--out", here / "m.safetensors")
        data = here / "t.csv"
        evaluation = json.loads(call(SHOAL, "eval", here / "m.safetensors", "--data", data, "--json"))
        said = list(csv.DictReader(call(SHOAL, "predict", here / "m.safetensors", "--input", data).splitlines()))
        lines = data.read_text().splitlines()
        truth = [line.split(",")[-1] for line in lines[1:]]
        check(evaluation, truth, [row["kind"] for row in said], sorted(classes))
        for row in evaluation["worst"]:
            assert lines[row["line"] - 1].endswith(row["label"])


def cases():
    yield "three classes", lambda: a_training(["low", "middle", "high"], "cross-entropy", 3)
    yield "twelve classes", lambda: a_training([f"c{i:02}" for i in range(12)], "cross-entropy", 12)
    yield "two classes, one output", lambda: a_training(["no", "yes"], "binary-cross-entropy", 1)
    yield "each output for itself", each_output_for_itself
    yield "a model of a search", a_search
