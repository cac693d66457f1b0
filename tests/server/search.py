#!/usr/bin/env python3
"""search.py SHOAL [TRIALS]: a search on a server, by workers that come and go, gives what it gives on one machine.

A table is uploaded, searched by two workers while workers and the server are killed -9, and every trial has exactly one
result: the one that `shoal search` comes to alone. Then the model predicts, the search is extended and deleted."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from server import PATIENCE_S, Server, Volunteer, wait_for

SHOAL = sys.argv[1]
TRIALS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
EPOCHS = 12


def table(path, rows=900):
    """Numbers, a category, gaps, and a class that follows from them but for some noise."""
    draw = random.Random(1)
    lines = ["age,city,income,visits,bought"]
    for _ in range(rows):
        age, city, income = draw.uniform(18, 80), draw.choice(["Rome", "Oslo", "Lima", "Kyoto"]), draw.gauss(50, 15)
        visits = draw.randrange(20)
        bought = (age - 40) / 20 + (city in ("Rome", "Lima")) + (income - 50) / 30 + visits / 15 + draw.gauss(0, 0.5) > 1
        lines.append(f"{age:.1f},{city},{'' if draw.random() < 0.1 else f'{income:.2f}'},{visits},{'yes' if bought else 'no'}")
    path.write_text("\n".join(lines) + "\n")


def ask(server, method, path, body=None, raw=None, token=None):
    data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(server.url + path, data, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def state(server, job):
    return ask(server, "GET", f"/api/v1/jobs/{job}")["state"]


def units_of(server, job):
    """How far a search is."""
    return ask(server, "GET", f"/api/v1/jobs/{job}")["search"]["units"]


def refused(server, method, path, body):
    """The status and the error of a request that is wrong."""
    try:
        ask(server, method, path, body)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]
    sys.exit(f"{method} {path} with {body} was taken")


def refuse_searches(server, folder):
    """What does not fit the table is said at once, by its field, without a folder of the server."""
    good = {"kind": "search", "data": "shoppers", "target": "bought", "trials": 4, "budget_s": 0}
    for change, field, words in (({"target": "bougt"}, "target", "did you mean 'bought'"), ({"metric": "rmse"}, "metric", "accuracy"),
                                 ({"space": "layers 1..4\nwidht 3\n"}, "space", "width"), ({"scheduler": "grid"}, "space", "without end"),
                                 ({"time_column": "city"}, "time_column", "a date or a number"), ({"data": "toy:wave", "name": "x"}, "data", "no table"),
                                 ({"columns": {"aeg": "number"}}, "columns", "did you mean 'age'"), ({"problem": "regression"}, "problem", "numbers"),
                                 ({"dialect": "delimiter ;", "target": "age"}, "target", "no column"),
                                 ({"dialect": "delimiter often"}, "dialect", "often")):
        status, error = refused(server, "POST", "/api/v1/jobs", {**good, **change})
        assert status == 422 and error["field"] == field and words in error["text"], (change, status, error)
        assert str(folder) not in error["text"], error
    assert ask(server, "GET", "/api/v1/jobs")["jobs"] == [], "a search that was refused is there"


def drop_states(server, folder):
    """Of networks that are trained to their end, the states of the best are kept and no others."""
    job = ask(server, "POST", "/api/v1/jobs", {"kind": "search", "data": "shoppers", "target": "bought", "scheduler": "random",
                                               "trials": 40, "budget_s": 0, "epochs": 2, "folds": 1})["id"]
    status, error = refused(server, "POST", f"/api/v1/jobs/{job}/predict", {"rows": []})
    assert status == 404 and "finished or stopped" in error["text"], error
    wait_for("the end of a random search", lambda: state(server, job) == "finished", lambda: units_of(server, job))
    states = list((folder / "server" / "jobs" / str(job) / "trials").glob("*.safetensors"))
    assert len(states) == 24, f"{len(states)} states are left"
    done = ask(server, "GET", f"/api/v1/jobs/{job}/workers")["workers"]
    rows = 900 * 0.8 * 0.8
    samples, units = sum(w["samples"] for w in done), sum(w["units"] for w in done)
    assert units == 40 and abs(samples / (40 * 2 * rows) - 1) < 0.01, done
    ask(server, "DELETE", f"/api/v1/jobs/{job}")


def predict(server, job):
    """Rows of JSON follow the rule of files: what the model uses must be there, other names do not matter."""
    path, row = f"/api/v1/jobs/{job}/predict", {"age": 70, "city": "Rome", "income": 90, "visits": 19}
    answer = ask(server, "POST", path, {"rows": [{**row, "colour": "blue"}, {"age": 20, "city": "Atlantis", "visits": 0}]})
    assert [p["class"] for p in answer["predictions"]] == ["yes", "no"], answer
    assert ask(server, "POST", path, {"rows": [{**row, "income": None}]})["predictions"][0]["class"] == "yes"
    assert ask(server, "POST", path, {"rows": []})["predictions"] == []
    lacks = {key: value for key, value in row.items() if key != "visits"}
    status, error = refused(server, "POST", path, {"rows": [{**lacks, "visit": 3}]})
    assert status == 422 and "'visits'" in error["text"] and "is it the one called 'visit'" in error["text"], (status, error)


def refuse_rows(server, folder):
    """What only the rows tell is said at once, too, as `shoal search` says it, without a folder of the server."""
    rows = [f"{i},{i % 7},{i % 2},same,{'rare' if i == 5 else 'often' if i % 2 else 'seldom'}" for i in range(60)]
    csv = folder / "odd.csv"
    csv.write_text("\n".join(["a,b,few,one,rare", *rows]) + "\n")
    upload(server, csv, name="odd")
    good = {"kind": "search", "data": "odd", "target": "few", "trials": 4, "budget_s": 0}
    before = len(ask(server, "GET", "/api/v1/jobs")["jobs"])
    for change, field, options in (({"metric": "rmse"}, "metric", ["--metric", "rmse"]), ({"target": "one"}, "target", []),
                                   ({"target": "one", "columns": {"one": "category"}}, "target", ["--columns", "one=category"]),
                                   ({"target": "rare", "folds": 5}, "target", ["--folds", "5"]),
                                   ({"target": "a", "columns": {"a": "text"}}, "target", ["--columns", "a=text"])):
        status, error = refused(server, "POST", "/api/v1/jobs", {**good, **change})
        assert status == 422 and error["field"] == field and str(folder) not in error["text"], (change, status, error)
        alone = subprocess.run([SHOAL, "search", csv, "--target", change.get("target", "few"), "--trials", "4", "--out",
                                folder / "odd.safetensors", *options], capture_output=True, text=True)
        assert alone.returncode != 0 and error["text"].removeprefix("odd/") in alone.stderr, (change, error, alone.stderr)
    assert len(ask(server, "GET", "/api/v1/jobs")["jobs"]) == before, "a search that was refused is there"
    ask(server, "DELETE", "/api/v1/datasets/odd")


def replace_set(server, folder):
    """A set that was deleted and came again with other rows goes to workers; who began with the other does not go on."""
    csv = folder / "again.csv"
    table(csv, rows=300)
    upload(server, csv, name="again")
    begin = lambda: ask(server, "POST", "/api/v1/jobs", {"kind": "search", "data": "again", "target": "bought", "trials": 4,
                                                         "budget_s": 0, "epochs": 2, "folds": 1})["id"]
    first = begin()
    end = lambda job: wait_for(f"the end of job {job}", lambda: state(server, job) == "finished", lambda: units_of(server, job))
    end(first)
    found = ask(server, "GET", f"/api/v1/jobs/{first}")
    assert found["search"]["members"] >= 1 and found["search"]["test_rows"] == 60 and found["search"]["test_score"] > 0, found
    status, error = refused(server, "POST", f"/api/v1/jobs/{first}/resume", {"trials": 3})
    assert status == 422 and "4 trials are done already" in error["text"], (status, error)
    ask(server, "DELETE", "/api/v1/datasets/again")
    status, error = refused(server, "POST", f"/api/v1/jobs/{first}/resume", {"trials": 8})
    assert status == 409 and "not there any more" in error["text"], (status, error)
    table(csv, rows=250)
    upload(server, csv, name="again")
    second = begin()
    end(second)
    status, error = refused(server, "POST", f"/api/v1/jobs/{first}/resume", {"trials": 8})
    assert status == 409 and "not the one" in error["text"], (status, error)
    assert ask(server, "GET", f"/api/v1/jobs/{first}") == found, "a job that could not go on has changed"
    file, = (folder / "server").rglob("again.csv")
    file.write_text(file.read_text() + "20,Rome,50,3,no\n")  # behind the server's back: it fails only when it has begun
    before = ask(server, "GET", f"/api/v1/jobs/{second}")["search"]
    ask(server, "POST", f"/api/v1/jobs/{second}/resume", {"trials": 8})
    wait_for("the failure", lambda: ask(server, "GET", f"/api/v1/jobs/{second}")["state"] == "failed")
    after = ask(server, "GET", f"/api/v1/jobs/{second}")["search"]
    assert all(after[key] == before[key] for key in ("trials", "best", "best_score", "metric", "members")), (before, after)


def wait_unpaid(server, folder):
    """The budget of a search stands still while nobody works for it."""
    job = ask(server, "POST", "/api/v1/jobs", {"kind": "search", "data": "shoppers", "target": "bought", "budget_s": 3600, "epochs": 2})["id"]
    look = lambda: ask(server, "GET", f"/api/v1/jobs/{job}")
    one = worker(server, folder, "dora")
    wait_for("the first trials", lambda: look()["search"]["units"] > 2)
    here = {w["name"]: w["here"] for w in ask(server, "GET", f"/api/v1/jobs/{job}/workers")["workers"]}
    assert here == {"dora": True}, here
    assert look()["search"]["spent_s"] > 0, look()
    one.end()
    wait_for("waiting", lambda: look()["state"] == "waiting")

    def stands():
        before = look()["search"]
        time.sleep(1)
        after = look()["search"]
        return after["spent_s"] - before["spent_s"] < 0.2 and before["left_s"] - after["left_s"] < 0.2

    wait_for("a budget that stands still", stands)
    assert ask(server, "POST", f"/api/v1/jobs/{job}/stop", {})["reason"] == "is being stopped"
    wait_for("the end", lambda: look()["state"] == "stopped")
    ask(server, "DELETE", f"/api/v1/jobs/{job}")


def keep_data(server):
    """The table of a search that was stopped, and could go on, stays."""
    job = ask(server, "POST", "/api/v1/jobs", {"kind": "search", "data": "shoppers", "target": "bought", "workers_min": 9})["id"]
    for _ in range(2):
        status, error = refused(server, "DELETE", "/api/v1/datasets/shoppers", None)
        assert status == 409 and f"job {job} " in error["text"], (status, error)
        if ask(server, "GET", f"/api/v1/jobs/{job}")["state"] == "waiting":
            ask(server, "POST", f"/api/v1/jobs/{job}/stop", {})
    ask(server, "DELETE", f"/api/v1/jobs/{job}")


def worker(server, folder, name):
    return Volunteer(SHOAL, server.url, name, folder)


def results(server, job, token=None):
    """The last result of every trial, and how many results each unit has."""
    rows, start = [], 0
    while start is not None:
        page = ask(server, "GET", f"/api/v1/jobs/{job}/trials?from={start}&limit=500", token=token)
        rows += page["trials"]
        start = page["next"]
    units = [row["unit"] for row in rows]
    assert len(units) == len(set(units)), "a unit has two results"
    assert units == list(range(len(units))), "a unit has no result"
    return {row["trial"]: row for row in rows}


def alone(csv, folder, trials=TRIALS):
    out = subprocess.run([SHOAL, "search", csv, "--target", "bought", "--trials", str(trials), "--epochs", str(EPOCHS), "--json",
                          "--out", folder / "alone.safetensors", "--test-share", "0.2"], check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in out.splitlines()]
    trials = [e for e in events if e["event"] == "trial"]
    return {e["trial"]: e for e in trials}, {**events[-1], "units": len(trials)}


def same(mine, theirs):
    assert mine.keys() == theirs.keys(), f"{len(mine)} trials against {len(theirs)}"
    for trial, row in mine.items():
        assert row["settings"] == theirs[trial]["settings"], f"trial {trial} has other settings"
        assert row["result"]["score"] == theirs[trial]["score"], \
            f"trial {trial}: {row['result']['score']} against {theirs[trial]['score']}"


def upload(server, csv, token=None, name="shoppers"):
    ask(server, "PUT", f"/api/v1/datasets/{name}/files/{csv.name}", raw=csv.read_bytes(), token=token)
    return ask(server, "POST", f"/api/v1/datasets/{name}", {"kind": "table"}, token=token)


def lose_states(server, folder):
    """States of trials are lost on the server: those trials are set aside at once, and the others make the model."""
    job = ask(server, "POST", "/api/v1/jobs", {"kind": "search", "name": "lossy", "data": "shoppers", "target": "bought",
                                               "trials": 24, "budget_s": 0, "epochs": EPOCHS, "folds": 1})["id"]
    states = folder / "server" / "jobs" / str(job) / "trials"

    def ended():
        for trial in range(1, 13):
            (states / f"{trial}.safetensors").unlink(missing_ok=True)
        return ask(server, "GET", f"/api/v1/jobs/{job}")["state"] in ("finished", "failed")

    wait_for("the end without some states", ended, lambda: units_of(server, job))
    errors = [row["result"]["error"] for row in results(server, job).values()]
    assert any("set aside" in error and "state" in error for error in errors), errors
    found = ask(server, "GET", f"/api/v1/jobs/{job}")
    assert found["state"] == "finished", found
    assert all(member["trial"] > 12 for member in ask(server, "GET", f"/api/v1/jobs/{job}/insight")["members"])


def main():
    with tempfile.TemporaryDirectory(prefix="shoal-search-") as name:
        folder = Path(name)
        csv = folder / "shoppers.csv"
        table(csv)
        expected, end = alone(csv, folder)
        server = Server(SHOAL, folder / "server")
        port = server.port
        described = upload(server, csv)
        kinds = {c["name"]: c["kind"] for c in described["profile"]["columns"]}
        assert kinds["city"] == "category" and kinds["income"] == "number", kinds
        assert str(folder) not in json.dumps(described), "a folder of the server is in the description"
        refuse_searches(server, folder)
        job = ask(server, "POST", "/api/v1/jobs", {"kind": "search", "name": "shoppers", "data": "shoppers", "target": "bought",
                                                   "trials": TRIALS, "budget_s": 0, "epochs": EPOCHS})["id"]
        workers = [worker(server, folder, "anna"), worker(server, folder, "ben")]
        done = lambda: len(ask(server, "GET", f"/api/v1/jobs/{job}/trials?limit=1000")["trials"])
        wait_for("a third of the trials", lambda: done() > TRIALS / 3)
        workers[0].end(signal.SIGKILL)
        workers[0] = worker(server, folder, "carl")
        server.end(signal.SIGKILL)
        server = Server(SHOAL, folder / "server", port=port)
        wait_for("the end", lambda: state(server, job) == "finished", lambda: units_of(server, job))
        same(results(server, job), expected)
        curve = ask(server, "GET", f"/api/v1/jobs/{job}/trials/1")["curve"]
        assert curve and len(curve[0]) == 3, curve
        predict(server, job)
        with urllib.request.urlopen(f"{server.url}/api/v1/jobs/{job}/model.onnx", timeout=PATIENCE_S) as file:
            assert b"probabilities" in file.read(), "the model as ONNX"
        insight = ask(server, "GET", f"/api/v1/jobs/{job}/insight")
        assert insight["confusion"]["classes"] == ["no", "yes"] and len(insight["columns"]) == 4, insight
        ask(server, "POST", f"/api/v1/jobs/{job}/resume", {"trials": TRIALS + 10})
        wait_for("the end of more", lambda: state(server, job) == "finished", lambda: units_of(server, job))
        assert len(results(server, job)) == TRIALS + 10
        lose_states(server, folder)
        drop_states(server, folder)
        refuse_rows(server, folder)
        replace_set(server, folder)
        for w in workers:
            w.end()
        wait_unpaid(server, folder)
        keep_data(server)
        ask(server, "DELETE", f"/api/v1/jobs/{job}")
        ask(server, "DELETE", "/api/v1/datasets/shoppers")
        server.end()
        print(f"{TRIALS} trials as on one machine; accuracy of the model {end['test_accuracy']:.3f}")


if __name__ == "__main__":
    main()
