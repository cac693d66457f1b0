"""shoal search against scikit-learn's own multi-layer perceptron after a random search of its own: the same rows,
five folds, the same seconds, in the same run. Titanic and wine quality, or where those files are not at hand two
tables that scikit-learn brings along.

Of each the five-fold score of what it leaves: scikit-learn's best network, and shoal's model, which is some of its best
trials together, each row predicted by networks that have not learned from it. Both were chosen by these same folds."""
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import KFold, ParameterSampler, StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline

import tables

SECONDS = float(os.environ.get("SEARCH_SECONDS", "20"))
DATA = Path(os.environ["SOURCE_DIR"]).parent / "shared/data/csv"
SPACE = {
    "hidden_layer_sizes": [(32,), (64,), (128,), (256,), (32, 32), (64, 64), (128, 128), (256, 128), (64, 64, 64)],
    "activation": ["relu", "tanh"],
    "alpha": loguniform(1e-5, 1e-1),
    "learning_rate_init": loguniform(3e-4, 1e-2),
    "batch_size": [32, 64, 128, 256],
    "max_iter": [50, 100, 200],
}


def theirs(path, target, skip, classes):
    """The best mean of five folds that a random search finds in SECONDS, both processors in use."""
    x, y, numbers = tables.read(path, target, skip)
    if not classes:
        y = y.astype(float)
    folds = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=1)
    scoring = "accuracy" if classes else "neg_root_mean_squared_error"
    scale = 1.0 if classes else y.std()
    end, best, tried = time.time() + SECONDS, -np.inf, 0
    for settings in ParameterSampler(SPACE, 10**6, random_state=1):
        net = (MLPClassifier if classes else MLPRegressor)(random_state=1, **settings)
        model = make_pipeline(tables.preparation(numbers), net)
        scores = cross_val_score(model, x, y if classes else y / scale, cv=folds, scoring=scoring, n_jobs=2)
        if time.time() > end:
            break
        best = max(best, scores.mean() * scale)
        tried += 1
    return (best if classes else -best), tried


def ours(path, target, metric):
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run([os.environ["SHOAL"], "search", path, "--target", target, "--folds", "5", "--test-share", "0",
                              "--metric", metric, "--problem", "classes" if metric == "accuracy" else "regression",
                              "--budget", f"{SECONDS}s", "--json", "--out", f"{folder}/best.safetensors"],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    end = json.loads(out.splitlines()[-1])
    return end["valid_score"], end["best"]["score"], end["trials"]


def compare(path, target, skip, classes):
    metric = "accuracy" if classes else "rmse"
    (other, tried), (own, alone, trials) = theirs(path, target, skip, classes), ours(path, target, metric)
    print(f"  {path.name}: {metric} over five folds: shoal {own:.4f} ({trials} trials, the best alone {alone:.4f}), "
          f"scikit-learn {other:.4f} ({tried})", flush=True)
    assert own >= other if classes else own <= other, f"{metric} {own:.4f} against scikit-learn's {other:.4f}"


def write_bundled(folder):
    """Breast cancer (classes) and diabetes (a number) as scikit-learn brings them."""
    for name, load in (("cancer", load_breast_cancer), ("diabetes", load_diabetes)):
        table = load()
        header = ",".join([*(f"x{i}" for i in range(table.data.shape[1])), "target"])
        rows = np.column_stack([table.data, table.target])
        np.savetxt(Path(folder) / f"{name}.csv", rows, delimiter=",", header=header, comments="", fmt="%.9g")


def with_bundled(name, classes):
    with tempfile.TemporaryDirectory() as folder:
        write_bundled(folder)
        compare(Path(folder) / f"{name}.csv", "target", (), classes)


def cases():
    import warnings
    from sklearn.exceptions import ConvergenceWarning
    warnings.simplefilter("ignore", ConvergenceWarning)
    os.environ["PYTHONWARNINGS"] = "ignore"
    if not DATA.exists():
        yield "breast cancer", lambda: with_bundled("cancer", True)
        yield "diabetes", lambda: with_bundled("diabetes", False)
        return
    yield "titanic", lambda: compare(DATA / "titanic.csv", "Survived", ("PassengerId", "Name", "Ticket"), True)
    yield "wine quality as classes", lambda: compare(DATA / "winequality-white.csv", "quality", (), True)
    yield "wine quality as a number", lambda: compare(DATA / "winequality-white.csv", "quality", (), False)
