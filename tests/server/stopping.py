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

from server import Process, Server

SHOAL, MODEL = sys.argv[1:3]
DEADLINE = time.time() + 240
IN_ORDER_S, LEFT_S = 4, 8  # much more than it takes; a round that never closes would take a minute


def step(server):
    with urllib.request.urlopen(f"{server.url}/api/v1/jobs/1", timeout=20) as answer:
        return json.load(answer)["progress"]["step"]


def wait_beyond(server, before):
    while step(server) <= before:
        if time.time() > DEADLINE:
            sys.exit(f"stopping: the job stays at step {step(server)}")
        time.sleep(0.1)


def stop(server, number, limit):
    began = time.time()
    code = server.end(number)
    took = time.time() - began
    print(f"{signal.Signals(number).name}: ended after {took:.2f} s with {code}")
    if code != 0 or took > limit:
        sys.exit(f"stopping: status {code} after {took:.1f} s, at most {limit} s were expected")


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "server")
        server = Server(SHOAL, home)
        job = {"name": "stopped", "model": open(MODEL).read(), "data": "fashion-mnist", "epochs": 50, "workers_min": 2}
        urllib.request.urlopen(urllib.request.Request(f"{server.url}/api/v1/jobs", json.dumps(job).encode()), timeout=20)
        workers = [Process([SHOAL, "work", server.url, "--name", name, "--yes", "--no-pause", "--cores", "1", "--json",
                            "--cache", os.path.join(folder, name)]) for name in ("ann", "bob")]
        wait_beyond(server, 20)
        before = step(server)
        stop(server, signal.SIGTERM, IN_ORDER_S)
        server = Server(SHOAL, home, port=server.port)
        wait_beyond(server, before)
        time.sleep(3)  # some version is safe by then
        before = step(server)
        for worker in workers:
            worker.process.send_signal(signal.SIGSTOP)
        stop(server, signal.SIGINT, LEFT_S)
        server = Server(SHOAL, home, port=server.port)
        for worker in workers:
            worker.process.send_signal(signal.SIGCONT)
        wait_beyond(server, before)
        for process in [*workers, server]:
            process.end()


main()
