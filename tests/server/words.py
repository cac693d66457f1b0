#!/usr/bin/env python3
"""words.py SHOAL MODEL: what a server says to those who run it and to those who host.

Its log is lines of plain words; the error of a job names the set and not a folder of the server; a job without workers has
no rate, nor has a worker that rests; who is paused is not idle; counters are counters; its folder is nobody else's."""
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

from server import Process

SHOAL, MODEL = sys.argv[1:3]
DEADLINE = time.time() + 120
SMALL = "input 4\ndense 3\nloss cross-entropy\nepochs 2\nbatch 8\n"
TABLE = "a,b,c,d,kind\n" + "".join(f"{i % 7},{i % 5},{i % 3},{i % 2},{'xyz'[i % 3]}\n" for i in range(90))


def ask(url, path, body=None, method=None, headers=None):
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = urllib.request.Request(f"{url}/{path}", data, headers or {}, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def job(url, number):
    return json.loads(ask(url, f"api/v1/jobs/{number}"))


def workers(url):
    return json.loads(ask(url, "api/v1/workers"))["workers"]


def wait(what, holds):
    while not holds():
        if time.time() > DEADLINE:
            sys.exit(f"words: {what}: not within the time")
        time.sleep(0.1)


def check_errors(url, folder):
    ask(url, "api/v1/datasets/iris/files/t.csv", TABLE.encode(), "PUT")
    ask(url, "api/v1/datasets/iris", {"kind": "csv"})
    ask(url, "api/v1/jobs", {"name": "wrong", "model": SMALL, "data": "iris", "target": "nope"})
    wait("the wrong job's end", lambda: job(url, 1)["state"] == "failed")
    assert job(url, 1)["reason"].startswith("iris/t.csv: no column"), job(url, 1)
    lines = json.loads(ask(url, "api/v1/jobs/1/log"))["lines"]
    assert len(lines) == 1 and folder not in lines[0]["text"], lines


def check_rate(url, worker):
    ask(url, "api/v1/jobs", {"name": "left", "model": open(MODEL).read(), "data": "fashion-mnist", "epochs": 50})
    wait("a rate", lambda: job(url, 2)["progress"]["samples_per_s"] > 0)
    wait("a worker's rate", lambda: workers(url)[0]["samples_per_s"] > 0)
    ask(url, "api/v1/jobs/2/stop", {})
    wait("a worker that rests", lambda: workers(url)[0]["state"] == "idle")
    assert workers(url)[0]["samples_per_s"] == 0, workers(url)
    wait("its stop", lambda: job(url, 2)["state"] == "stopped")
    ask(url, "api/v1/jobs/2/resume", {})
    wait("a rate again", lambda: job(url, 2)["progress"]["samples_per_s"] > 0)
    worker.end(signal.SIGKILL)
    wait("a job that waits", lambda: job(url, 2)["state"] == "waiting")
    assert job(url, 2)["progress"]["samples_per_s"] == 0, job(url, 2)
    assert json.loads(ask(url, "api/v1/server"))["samples_per_s"] == 0


def check_paused(url, folder):
    hour = time.localtime().tm_hour
    worker = Process([SHOAL, "work", url, "--name", "bob", "--yes", "--hours", f"{(hour + 2) % 24}-{(hour + 3) % 24}", "--json",
                      "--cache", os.path.join(folder, "bob")])
    wait("one that is paused", lambda: [one["state"] for one in workers(url)] == ["paused"])
    server = json.loads(ask(url, "api/v1/server"))
    assert (server["workers"], server["idle"], server["paused"]) == (1, 0, 1), server
    assert job(url, 2)["reason"] == "waits for workers: 0 of at least 1; 1 here is paused", job(url, 2)
    status = subprocess.run([SHOAL, "status", "--server", url], capture_output=True, text=True, check=True).stdout
    assert "workers: 1, 0 of them idle, 1 paused; 0 samples/s\n" in status, status
    worker.end()
    wait("its leave", lambda: not workers(url))
    assert job(url, 2)["reason"] == "waits for workers: 0 of at least 1", job(url, 2)


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
        worker = Process([SHOAL, "work", url, "--name", "ann", "--yes", "--no-pause", "--cores", "1", "--json", "--cache",
                          os.path.join(folder, "ann")])
        try:
            ask(url, "api/v1/datasets/none", {"kind": "csv"})
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
        check_errors(url, folder)
        check_rate(url, worker)
        check_paused(url, folder)
        check_metrics(url)
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
        log.seek(0)
        check_log(log.read())


main()
