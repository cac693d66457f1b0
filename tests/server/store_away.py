#!/usr/bin/env python3
"""store_away.py SHOAL MODEL: PostgreSQL is killed with SIGKILL while a job runs, and the job ends without it.

Meanwhile the API answers 503 and says when to ask again, /readyz says no, /metrics and the log say why, and tokens that were
known work. When PostgreSQL is back the job is finished, `shoal host` ends with 0 and the model, whose bits are those
of one machine. A PostgreSQL that stands still, with its port open, stops
the server's loop for some seconds once, and not for good.

Where PostgreSQL is missing the exit status is 77: skipped."""
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
from pathlib import Path

from server import PATIENCE_S, Process, Server, Volunteer, wait_for

SHOAL, MODEL = sys.argv[1:3]
EPOCHS = 4
TOOL = Path(__file__).resolve().parents[2] / "tools" / "postgres"


def tool(*words):
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
    if done.returncode and "is not installed" in done.stderr:
        print(done.stderr.strip())
        sys.exit(77)
    assert done.returncode == 0, f"postgres {words[0]}: {done.stderr}"
    return done.stdout.strip()


def get(server, path, token):
    """The status, the headers, and the body as text."""
    request = urllib.request.Request(server.url + path, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def metric(server, name):
    """Its value, and None where there is none."""
    status, _, text = get(server, "/metrics", server.admin)
    assert status == 200, (status, text)
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
    return float(found[1]) if found else None


def train(folder):
    """What one machine comes to."""
    lines = subprocess.run([SHOAL, "train", MODEL, "--data", "fashion-mnist", "--epochs", str(EPOCHS), "--seed", "1", "--json",
                            "--out", str(folder / "alone.safetensors")], capture_output=True, text=True, check=True).stdout
    return json.loads(lines.splitlines()[-1])["weights_sha256"]


def refused(server):
    """What is said while the store is away."""
    status, headers, text = get(server, "/api/v1/jobs/1", server.admin)
    assert status == 503 and int(headers["Retry-After"]) > 0, (status, text)
    assert json.loads(text)["error"]["code"] == "unavailable" and "store is unavailable" in text, text
    assert "postgres" not in text and str(server.port) not in text, text
    status, headers, text = get(server, "/readyz", None)
    assert status == 503 and headers["Retry-After"] and not json.loads(text)["ready"] and "postgresql" in text, (status, text)
    assert get(server, "/healthz", None)[::2] == (200, '{"alive":true}')
    assert metric(server, "shoal_store_up") == 0
    wait_for("a write that failed", lambda: metric(server, "shoal_store_failed_writes") > 0)
    assert get(server, "/", None)[0] == 200
    status = subprocess.run([SHOAL, "status", "--server", f"{server.url}/#t={server.admin}"], capture_output=True, text=True)
    assert status.returncode == 1 and "store is unavailable" in status.stderr, status


def main():
    with tempfile.TemporaryDirectory(prefix="shoal-away-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        database = folder / "database"
        store = tool("start", database)
        try:
            run(folder, database, store)
        finally:
            tool("stop", database)


def run(folder, database, store):
    server = Server(SHOAL, folder / "server", "--store", store, "--open", "viewer")
    link = f"{server.url}/#t={server.admin}"
    worker = Volunteer(SHOAL, link, "ann", folder)
    host = Process([SHOAL, "host", MODEL, "--data", "fashion-mnist", "--epochs", str(EPOCHS), "--seed", "1", "--server", link, "--json",
                    "--out", str(folder / "hosted.safetensors")])
    wait_for("the first rounds", lambda: (metric(server, 'shoal_job_step{job="1"}') or 0) > 0)
    assert get(server, "/readyz", None)[::2] == (200, '{"ready":true}')
    tool("kill", database)
    wait_for("the store is seen to be away", lambda: metric(server, "shoal_store_up") == 0)
    refused(server)
    wait_for("the job ends", lambda: metric(server, 'shoal_job_step{job="1"}') is None)
    refused(server)
    assert metric(server, "shoal_store_due_writes") > 0
    assert host.process.poll() is None, "shoal host has ended without the store"
    tool("restart", database)
    wait_for("the store is back", lambda: get(server, "/readyz", None)[0] == 200)
    job = json.loads(get(server, "/api/v1/jobs/1", server.admin)[2])
    assert job["state"] == "finished", job
    log = json.loads(get(server, "/api/v1/jobs/1/log", server.admin)[2])["lines"]
    assert log[-1]["text"] == "finished" and [line["number"] for line in log] == list(range(1, len(log) + 1)), log
    history = json.loads(get(server, "/api/v1/jobs/1/history", server.admin)[2])
    assert [epoch["epoch"] for epoch in history["epochs"]] == list(range(1, EPOCHS + 1)), history["epochs"]
    assert sum(row["samples"] for row in json.loads(get(server, "/api/v1/jobs/1/workers", server.admin)[2])["workers"]) > 0
    wait_for("shoal host ends", lambda: host.process.poll() is not None)
    assert host.process.returncode == 0 and (folder / "hosted.safetensors").exists()
    print("the job ended without PostgreSQL, and is finished with it")
    assert job["sha256"] == train(folder), "the weights differ from those of one machine"
    stands_still(server, database)
    log = Path(server.printed.name).read_text()
    assert "unavailable: PostgreSQL database" in log and "back after" in log, log
    for process in (worker, server):
        assert process.end() == 0


def stands_still(server, database):
    """Its processes are stopped: connections are taken, and nothing is answered."""
    parent = int((database / "data" / "postmaster.pid").read_text().split()[0])
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True).stdout.split()
    for process in (parent, *map(int, children)):
        os.kill(process, signal.SIGSTOP)
    assert get(server, "/api/v1/jobs", server.admin)[0] == 503
    taken = []
    for _ in range(20):
        begun = time.monotonic()
        assert get(server, "/api/v1/jobs", server.admin)[0] == 503
        taken.append(time.monotonic() - begun)
    for process in (parent, *map(int, children)):
        os.kill(process, signal.SIGCONT)
    # Each would take the 5 s that a statement may; on a busy machine some may take as long.
    assert min(taken) < 4, f"the quickest of twenty answers took {min(taken):.1f} s"
    wait_for("it goes on", lambda: get(server, "/api/v1/jobs", server.admin)[0] == 200)
    print("PostgreSQL stood still, and the server did not")


main()
