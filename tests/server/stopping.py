#!/usr/bin/env python3
"""stopping.py SHOAL MODEL: a server that is stopped while volunteers compute ends within seconds, also when what they
compute never comes, and its job goes on afterwards."""
import json
import os
import signal
import sys
import tempfile
import time
import urllib.request

from server import PATIENCE_S, Server, Volunteer, wait_for

SHOAL, MODEL = sys.argv[1:3]
LIMIT_S = 50  # much more than it takes, also on a slow machine; a round that never closes would take a minute


def step(server):
    with urllib.request.urlopen(f"{server.url}/api/v1/jobs/1", timeout=PATIENCE_S) as answer:
        return json.load(answer)["progress"]["step"]


def wait_beyond(server, before):
    wait_for(f"a step beyond {before}", lambda: step(server) > before, lambda: step(server))


def stop(server, number):
    began = time.time()
    code = server.end(number)
    took = time.time() - began
    print(f"{signal.Signals(number).name}: ended after {took:.2f} s with {code}")
    if code != 0 or took > LIMIT_S:
        sys.exit(f"stopping: status {code} after {took:.1f} s, at most {LIMIT_S} s were expected")


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "server")
        server = Server(SHOAL, home)
        job = {"name": "stopped", "model": open(MODEL).read(), "data": "fashion-mnist", "epochs": 50, "workers_min": 2}
        urllib.request.urlopen(urllib.request.Request(f"{server.url}/api/v1/jobs", json.dumps(job).encode()), timeout=PATIENCE_S)
        workers = [Volunteer(SHOAL, server.url, name, folder) for name in ("ann", "bob")]
        wait_beyond(server, 20)
        before = step(server)
        stop(server, signal.SIGTERM)
        server = Server(SHOAL, home, port=server.port)
        wait_beyond(server, before + 100)
        before = step(server)
        for worker in workers:
            worker.process.send_signal(signal.SIGSTOP)
        stop(server, signal.SIGINT)
        server = Server(SHOAL, home, port=server.port)
        for worker in workers:
            worker.process.send_signal(signal.SIGCONT)
        wait_beyond(server, before)
        for process in [*workers, server]:
            process.end()


main()
