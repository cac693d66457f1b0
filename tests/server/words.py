#!/usr/bin/env python3
"""words.py SHOAL MODEL: what a server says to those who run it and to those who host.

Its log is lines of plain words; the error of a job names the set and not a folder of the server; a job without workers has
no rate, nor has a worker that rests; who is paused is not idle; counters are counters; its folder is nobody else's."""
import atexit
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from server import PATIENCE_S, Process, Volunteer, wait_for

SHOAL, MODEL = sys.argv[1:3]
SMALL = "input 4\ndense 3\nloss cross-entropy\nepochs 2\nbatch 8\n"
TABLE = "a,b,c,d,kind\n" + "".join(f"{i % 7},{i % 5},{i % 3},{i % 2},{'xyz'[i % 3]}\n" for i in range(90))


def ask(url, path, body=None, method=None, headers=None):
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = urllib.request.Request(f"{url}/{path}", data, headers or {}, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


def job(url, number):
    return json.loads(ask(url, f"api/v1/jobs/{number}"))


def workers(url):
    return json.loads(ask(url, "api/v1/workers"))["workers"]


def check_errors(url, folder):
    ask(url, "api/v1/datasets/iris/files/t.csv", TABLE.encode(), "PUT")
    ask(url, "api/v1/datasets/iris", {"kind": "csv"})
    check_fit(url, folder)
    ask(url, "api/v1/jobs", {"name": "right at first", "model": SMALL, "data": "iris"})
    wait_for("its end", lambda: job(url, 1)["state"] == "finished")
    with open(os.path.join(folder, "server/data/sets/iris/t.csv"), "w") as file:
        file.write(TABLE.replace("kind", "sort"))
    ask(url, "api/v1/jobs/1/resume", {"epochs": 4})
    wait_for("the wrong job's end", lambda: job(url, 1)["state"] == "failed")
    assert job(url, 1)["reason"].startswith("iris/t.csv: no column"), job(url, 1)
    lines = json.loads(ask(url, "api/v1/jobs/1/log"))["lines"]
    assert lines[-1]["text"] == job(url, 1)["reason"] and folder not in str(lines), lines


def check_fit(url, folder):
    """A model that does not fit its data is refused before it is a job, in the words of `shoal train`, and told as one types."""
    table, images = os.path.join(folder, "server/data/sets/iris/t.csv"), "fashion-mnist"
    for field, model, data, more in (("data", SMALL.replace("input 4", "input 5"), "iris", {}), ("data", SMALL.replace("dense 3", "dense 2"), "iris", {}),
                                     ("target", SMALL, "iris", {"target": "nope"}), ("early_stop", SMALL, "iris", {"early_stop": 3}),
                                     ("data", SMALL, images, {})):
        with open(os.path.join(folder, "wrong.net"), "w") as file:
            file.write(model + ("early-stop 3\n" if field == "early_stop" else ""))
        command = [SHOAL, "train", file.name, "--data", table if data == "iris" else data]
        train = subprocess.run(command + (["--target", more["target"]] if field == "target" else []), capture_output=True, text=True)
        sentence = train.stderr.split("shoal train: ")[-1].split("\n")[0].replace(table, "iris/t.csv")
        try:
            ask(url, "api/v1/jobs", {"name": "wrong", "model": model, "data": data, **more})
            sys.exit(f"words: taken: {model} {data} {more}")
        except urllib.error.HTTPError as refusal:
            said, code = json.loads(refusal.read())["error"], refusal.code
        assert code == 422 and said["field"] == field, said
        if field == "early_stop":
            continue  # it is said with flags there, and how much is held out is no matter of the text
        assert train.returncode and said["text"] == sentence, (said, train.stderr)
        checked = json.loads(ask(url, "api/v1/models/check", {"text": model, "data": data, **more}))
        assert not checked["ok"] and checked["error"] == {"field": field, "text": sentence}, checked
    assert json.loads(ask(url, "api/v1/models/check", {"text": SMALL, "data": "iris"}))["ok"]
    assert json.loads(ask(url, "api/v1/jobs"))["jobs"] == []


def check_rate(url, worker):
    ask(url, "api/v1/jobs", {"name": "left", "model": open(MODEL).read(), "data": "fashion-mnist", "epochs": 50})
    wait_for("a rate", lambda: job(url, 2)["progress"]["samples_per_s"] > 0)
    wait_for("a worker's rate", lambda: workers(url)[0]["samples_per_s"] > 0)
    ask(url, "api/v1/jobs/2/stop", {})
    wait_for("a worker that rests", lambda: workers(url)[0]["state"] == "idle")
    assert workers(url)[0]["samples_per_s"] == 0, workers(url)
    wait_for("its stop", lambda: job(url, 2)["state"] == "stopped")
    ask(url, "api/v1/jobs/2/resume", {})
    wait_for("a rate again", lambda: job(url, 2)["progress"]["samples_per_s"] > 0)
    worker.end(signal.SIGKILL)
    wait_for("a job that waits", lambda: job(url, 2)["state"] == "waiting")
    assert job(url, 2)["progress"]["samples_per_s"] == 0, job(url, 2)
    assert json.loads(ask(url, "api/v1/server"))["samples_per_s"] == 0


def check_paused(url, folder):
    hour = time.localtime().tm_hour
    worker = Process([SHOAL, "work", url, "--name", "bob", "--yes", "--no-pause", "--on-battery", "--hours", f"{(hour + 2) % 24}-{(hour + 3) % 24}", "--json",
                      "--cache", os.path.join(folder, "bob")])
    wait_for("one that is paused", lambda: [one["state"] for one in workers(url)] == ["paused"])
    server = json.loads(ask(url, "api/v1/server"))
    assert (server["workers"], server["idle"], server["paused"]) == (1, 0, 1), server
    assert job(url, 2)["reason"] == "waits for a worker: none has joined, 1 is paused", job(url, 2)
    status = subprocess.run([SHOAL, "status", "--server", url], capture_output=True, text=True, check=True).stdout
    assert "workers: 1, 0 of them idle, 1 paused; 0 samples/s\n" in status, status
    hours = f"outside the hours {(hour + 2) % 24}-{(hour + 3) % 24 or 24}"
    wait_for("why it is paused", lambda: workers(url)[0]["text"] == hours)
    worker.end()
    wait_for("its leave", lambda: not workers(url))
    assert job(url, 2)["reason"] == "waits for a worker: none has joined", job(url, 2)


def check_busy(url, folder):
    """One that had a job and pauses since another program is busy says so, with the figures, wherever one looks."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    atexit.register(busy.kill)
    worker = Process([SHOAL, "work", url, "--name", "cleo", "--yes", "--on-battery", "--pause-load", "0.05", "--cores", "1", "--json",
                      "--cache", os.path.join(folder, "ann")])  # how fast the machine is was measured there
    why = re.compile(r"load \d+\.\d, more than 0\.05")
    wait_for("the figures", lambda: [(one["state"], bool(why.fullmatch(one["text"]))) for one in workers(url)] == [("paused", True)])
    say = lambda *more: subprocess.run([SHOAL, "status", "--server", url, *more], capture_output=True, text=True, check=True).stdout
    assert why.search(next(line for line in say().splitlines() if line.startswith("cleo "))), say()
    assert why.fullmatch(json.loads(say("--json"))["workers"][0]["text"]), say("--json")
    busy.kill()
    worker.end()
    wait_for("its leave", lambda: not workers(url))


def check_metrics(url):
    text = ask(url, "metrics")
    names = set(re.findall(r"^(shoal_\w+)", text, re.M))
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    helps = set(re.findall(r"^# HELP (\w+) \S", text, re.M))
    assert names <= helps and names <= set(kinds), (names, helps, kinds)
    assert kinds["shoal_sent_bytes"] == kinds["shoal_job_units_leased_again"] == "counter", kinds


def check_log(text):
    lines = text.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d \S", line) for line in lines), text
    for wanted in ("local: POST /api/v1/jobs: 201", "local: POST /api/v1/datasets/none: 404", "job 1: iris/t.csv: no column",
                   "job 2: ann is here"):
        assert any(line[9:].startswith(wanted) for line in lines), (wanted, text)


def main():
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "log"), "w+") as log:
        home = os.path.join(folder, "server")
        server = subprocess.Popen([SHOAL, "serve", "--listen", "127.0.0.1:0", "--data-dir", home], stdout=subprocess.PIPE, stderr=log, text=True)
        url = re.search(r"http://[\d.:]+\d", server.stdout.readline()).group(0)
        assert os.stat(home).st_mode & 0o777 == 0o700
        worker = Volunteer(SHOAL, url, "ann", folder)
        try:
            ask(url, "api/v1/datasets/none", {"kind": "csv"})
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
        check_errors(url, folder)
        check_rate(url, worker)
        check_paused(url, folder)
        check_busy(url, folder)
        check_metrics(url)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0
        log.seek(0)
        check_log(log.read())


main()
