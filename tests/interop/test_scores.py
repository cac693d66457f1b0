"""Every score is scikit-learn's, on random predictions with ties, classes that are rare or never said, and sure mistakes."""
import json

import numpy as np
from sklearn import metrics

from common import DUMP, call, compare, folder, save_file


def ours(tensors):
    with folder() as here:
        save_file(tensors, here / "in")
        return json.loads(call(DUMP, "scores", here / "in"))


def random_classes(random, rows, classes):
    """Every class stands in the labels; some probabilities are equal, some are 0 and 1."""
    probability = random.dirichlet(np.full(classes, 0.5), rows)
    probability = np.where(random.random((rows, 1)) < 0.3, np.round(probability, 1), probability)
    probability /= probability.sum(1, keepdims=True)
    labels = np.where(random.random(rows) < 0.5, probability.argmax(1), random.integers(0, classes, rows))
    labels[:classes] = np.arange(classes)
    return probability.astype(np.float32), labels.astype(np.int32)


def check_classes(seed, rows, classes, positive=1):
    probability, labels = random_classes(np.random.default_rng(seed), rows, classes)
    found = ours({"probability": probability, "labels": labels, "positive": np.array([positive], np.int32)})
    said = probability.argmax(1)
    two = classes == 2
    wanted = {
        "accuracy": metrics.accuracy_score(labels, said),
        "balanced-accuracy": metrics.balanced_accuracy_score(labels, said),
        "f1": metrics.f1_score(labels, said, pos_label=positive, average="binary" if two else "macro"),
        "auc": np.mean([metrics.roc_auc_score(labels == c, probability[:, c]) for c in ([1] if two else range(classes))]),
        "log-loss": metrics.log_loss(labels, probability, labels=range(classes)),
    }
    for name, value in wanted.items():
        compare(name, found[name], value, 1e-6 if name == "log-loss" else 1e-12)


def check_numbers(seed, rows):
    random = np.random.default_rng(seed)
    right = random.standard_normal(rows).astype(np.float32) * 100 + 1000
    predicted = right + random.standard_normal(rows).astype(np.float32) * 10
    found = ours({"predicted": predicted, "right": right})
    right, predicted = right.astype(np.float64), predicted.astype(np.float64)
    compare("rmse", found["rmse"], np.sqrt(metrics.mean_squared_error(right, predicted)), 1e-12)
    compare("mae", found["mae"], metrics.mean_absolute_error(right, predicted), 1e-12)
    compare("r2", found["r2"], metrics.r2_score(right, predicted), 1e-12)


def cases():
    for classes in (2, 3, 7):
        for rows in (10, 500):
            yield f"{classes} classes, {rows} rows", lambda r=rows, c=classes: check_classes(r + c, r, c)
    yield "the first class is the positive one", lambda: check_classes(9, 300, 2, positive=0)
    for rows in (2, 500):
        yield f"numbers, {rows} rows", lambda r=rows: check_numbers(r, r)
