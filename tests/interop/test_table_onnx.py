"""Exported models of `shoal search` answer in onnxruntime, on raw rows, as `shoal predict` does."""
import csv
import datetime
import json
import re

import numpy as np
import onnx
import onnxruntime

from common import SHOAL, SOURCE, call, folder

BOUND = 1e-4
MISSING = {"", "?", "na", "n/a", "nan", "null", "none", "-"}
NUMBERS = ("standard", "robust", "quantile", "pieces")
CATEGORIES = ("one-hot", "label", "lookup")
DAYS = ("1600-02-29", "1600-03-01", "1899-12-31", "1900-02-28", "1900-03-01", "1969-12-31", "1970-01-01",
        "1999-12-31", "2000-02-29", "2000-03-01", "2100-02-28", "2100-03-01", "2399-12-31", "2400-02-29", "9999-12-31")


# ---- tables ----

def table(random, rows, target, unseen=0.0, missing=0.1):
    """Rows of every kind of column; the answer follows from most of them."""
    words = [f"town {i}" for i in range(300)]
    colours = ["red", "green", "blue", "Ünder, the \"sea\"", "x" * 40]
    out = []
    for _ in range(rows):
        age, ratio = int(random.integers(18, 90)), random.normal()
        amount = round(float(np.exp(random.normal(6, 2))), 2)
        stamp = int(random.integers(-2_000_000_000, 4_000_000_000))
        big = 1_700_000_000 + int(random.integers(0, 1_000_000))
        few = int(random.choice([0, 0, 0, 0, 1, 2, 7]))
        colour = str(random.choice(colours))
        town = words[int(random.integers(0, 300) ** 2 / 300)]
        day = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=stamp)
        score = (age - 50) / 20 + ratio * (colour == "red") + len(town) % 3 + np.log(amount) / 3
        score += day.month / 6 + few / 3 + 0.2 * random.normal() + (big - 1_700_500_000) / 500_000
        answer = {"two": "yes" if score > 5 else "no", "four": "abcd"[int(np.clip(score / 2.5, 0, 3))],
                  "number": f"{100_000 + 12_345 * score:.2f}"}[target]
        row = {"age": age, "ratio": f"{ratio:.7g}", "amount": amount, "big": big, "few": few, "colour": colour,
               "town": town, "day": day.strftime("%Y-%m-%d"), "moment": day.strftime("%Y-%m-%d %H:%M:%S"),
               "value": f"{random.normal(1e6, 1):.9g}"}
        for name in row:
            if random.random() < missing and name not in ("age", "big"):
                row[name] = str(random.choice(["", "NA", "?", "null"]))
        if random.random() < unseen:
            row["colour"], row["town"] = "never seen", "Town 1"
            row["age"], row["amount"], row["ratio"] = 1000, 1e300, "-1e15"
        if random.random() < 2 * unseen:
            row["day"], row["moment"] = str(random.choice(DAYS)), f"{random.choice(DAYS)} 23:59:59"
        row["answer"] = answer
        out.append(row)
    return out


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


# ---- raw rows for onnxruntime ----

def as_number(cell):
    return np.nan if cell.lower() in MISSING else float(cell)


def as_seconds(cell):
    if cell.lower() in MISSING:
        return np.nan
    return datetime.datetime.fromisoformat(cell).replace(tzinfo=datetime.timezone.utc).timestamp()


def hashing():
    """The function that docs/formats.md gives for texts."""
    names = {"re": re}
    exec((SOURCE / "docs" / "formats.md").read_text().split("```python\n")[1].split("```")[0], names)
    return names["hashed"]


def feed(session, rows):
    """What the file's own metadata says that it wants."""
    inputs = json.loads(session.get_modelmeta().custom_metadata_map["shoal.inputs"])
    assert [i["input"] for i in inputs] == [i.name for i in session.get_inputs()]
    out, hashed = {}, hashing()
    for about in inputs:
        cells = [row[about["column"]].strip() for row in rows]
        if about["kind"] == "category":
            value = np.array(cells, object)
        elif about["kind"] == "text":
            value = np.array([hashed(cell) for cell in cells], np.int64)
        else:
            read = as_seconds if about["kind"] == "date" else as_number
            value = np.array([read(cell) for cell in cells], np.float64)
        out[about["input"]] = value.reshape(len(rows), -1)
    return out


def compare(place, rows_file, largest):
    """Row by row; the largest difference is kept."""
    call(SHOAL, "export", place / "m.safetensors", "--onnx", place / "m.onnx")
    onnx.checker.check_model(str(place / "m.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(str(place / "m.onnx"), providers=["CPUExecutionProvider"])
    meta = session.get_modelmeta().custom_metadata_map
    ours = [json.loads(line) for line in
            call(SHOAL, "predict", place / "m.safetensors", "--input", rows_file, "--json").splitlines()]
    with open(rows_file, newline="") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    raw = feed(session, rows)
    assert len(ours) == len(rows)
    if meta["shoal.problem"] == "regression":
        (values,) = session.run(["value"], raw)
        right = np.array([line["value"] for line in ours])
        worst = np.abs(values[:, 0] - right).max() / np.abs(right).max()
    else:
        classes = json.loads(meta["shoal.classes"])
        labels, values = session.run(["label", "probabilities"], raw)
        right = np.array([[line["probabilities"][name] for name in classes] for line in ours])
        worst = np.abs(values - right).max()
        top = np.sort(right, axis=1)
        for i, line in enumerate(ours):
            tie = top[i, -1] - top[i, -2] < BOUND
            assert tie or labels[i] == line["class"], f"row {i}: {labels[i]} and {line['class']}"
    assert np.isfinite(values).all() and right.std() > 0
    assert worst <= BOUND, f"differs by {worst:.3g}"
    largest.append(worst)
    (one,) = session.run([session.get_outputs()[-1].name], {name: value[:1] for name, value in raw.items()})
    assert np.allclose(one[0], values[0], rtol=BOUND, atol=BOUND)


def search(place, file, target, space, *more):
    (place / "space.txt").write_text(space)
    call(SHOAL, "search", file, "--target", target, "--trials", 12, "--epochs", 4, "--space", place / "space.txt",
         "--out", place / "m.safetensors", *more)


def check(target, space, largest, folds=1):
    random = np.random.default_rng(len(space) + len(target))
    with folder() as place:
        write(place / "train.csv", table(random, 900, target))
        write(place / "new.csv", table(random, 400, target, unseen=0.1, missing=0.2))
        search(place, place / "train.csv", "answer", space, "--folds", folds)
        compare(place, place / "new.csv", largest)


def texts(random, rows):
    """A text whose words tell the answer, mostly, and a number that does the rest."""
    words = ["good", "Bad", "tram-way", "straße", "x" * 80, "NA-x", "3.14", "und", "Ärger", "it's", "a", "123456789"]
    out = []
    for _ in range(rows):
        some = [str(word) for word in random.choice(words, int(random.integers(1, 30)))]
        number = random.normal()
        answer = "up" if some.count("good") - some.count("Bad") + number > 0 else "down"
        note = "" if random.random() < 0.05 else "!!" if random.random() < 0.05 else " ".join(some) + f" {number:.3f}"
        out.append({"note": note, "number": f"{number:.6f}", "second": " ".join(some[:3]), "answer": answer})
    return out


def check_texts(largest):
    random = np.random.default_rng(5)
    with folder() as place:
        write(place / "train.csv", texts(random, 900))
        write(place / "new.csv", texts(random, 400))
        search(place, place / "train.csv", "answer", "", "--folds", 2, "--columns", "note=text,second=text")
        compare(place, place / "new.csv", largest)


def check_adult(largest):
    data = SOURCE.parent / "shared" / "data" / "csv"
    with folder() as place:
        for name, count in (("train", 4000), ("test", 2000)):
            lines = (data / f"adult-{name}.csv").read_text().splitlines()
            (place / f"{name}.csv").write_text("\n".join(lines[:count + 1]) + "\n")
        search(place, place / "train.csv", "income", "")
        compare(place, place / "test.csv", largest)


def report(largest):
    print(f"table onnx: {len(largest)} models, the largest difference is {max(largest, default=0):.2g}", flush=True)


def cases():
    largest = []
    for numbers in NUMBERS:
        for categories in CATEGORIES:
            space = f"numbers {numbers}\ncategories {categories}\n"
            target = ("two", "four", "number")[(NUMBERS.index(numbers) + CATEGORIES.index(categories)) % 3]
            yield f"{numbers}, {categories}, {target}", lambda t=target, s=space: check(t, s, largest)
    for target in ("two", "four", "number"):
        yield f"the usual space, {target}", lambda t=target: check(t, "", largest)
    yield "folds", lambda: check("number", "", largest, 3)
    yield "texts", lambda: check_texts(largest)
    if (SOURCE.parent / "shared" / "data" / "csv" / "adult-test.csv").exists():
        yield "adult", lambda: check_adult(largest)
    yield "the largest difference", lambda: report(largest)
