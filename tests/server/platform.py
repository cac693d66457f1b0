#!/usr/bin/env python3
"""platform.py SHOAL MODEL EPOCHS: a training on a server with volunteers that come and go, killed on the way.

Two volunteers start; the server is killed with SIGKILL and started again; one volunteer is killed with SIGKILL, a third joins
half-way and must contribute soon. The weights must be those of one machine to the last bit, which they could not be had any
sample been left out of an epoch or used twice."""
import base64
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

from server import PATIENCE_S, Server, Volunteer, wait_for

SHOAL, MODEL, EPOCHS = sys.argv[1], sys.argv[2], int(sys.argv[3])


def alone(folder):
    """What one machine comes to."""
    command = [SHOAL, "train", MODEL, "--data", "fashion-mnist", "--epochs", str(EPOCHS), "--seed", "1", "--json",
               "--out", os.path.join(folder, "alone.safetensors")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return json.loads(lines[-1])["weights_sha256"]


class Platform:
    def __init__(self, folder):
        self.folder, self.port, self.workers = folder, 0, {}
        self.start()

    def start(self):
        self.server = Server(SHOAL, os.path.join(self.folder, "server"), port=self.port)
        self.port = self.server.port

    def work(self, name):
        self.workers[name] = Volunteer(SHOAL, self.server.url, name, self.folder)

    def ask(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1/{path}", data), timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def wait(self, what, holds):
        wait_for(what, holds, self.standing)

    def step(self):
        return self.ask("jobs/1")["progress"]["step"]

    def samples(self, name):
        return next((w["samples"] for w in self.ask("jobs/1/workers")["workers"] if w["name"] == name), 0)

    def standing(self):
        """How far the job is, and how many samples each volunteer has done."""
        job = self.ask("jobs/1")
        return job["state"], job["progress"]["step"], {w["name"]: w["samples"] for w in self.ask("jobs/1/workers")["workers"]}

    def end(self):
        for process in [*self.workers.values(), self.server]:
            process.end()


def check_evaluation(evaluation, job):
    """What is kept of every class is of the model at the end, with the worst images drawn."""
    matrix, right = evaluation["matrix"], sum(row[i] for i, row in enumerate(evaluation["matrix"]))
    assert job["files"]["evaluation"] and evaluation["split"] == "test" and evaluation["epoch"] == EPOCHS
    assert abs(right / evaluation["samples"] - job["progress"]["held_out_metric"]) < 1e-9, (right, job["progress"])
    assert [sum(row) for row in matrix] == [one["support"] for one in evaluation["classes"]]
    assert evaluation["classes"][0]["class"] == "t-shirt/top", evaluation["classes"][0]
    assert len(evaluation["worst"]) == 16
    for one in evaluation["worst"]:
        picture = base64.b64decode(one["image"].removeprefix("data:image/png;base64,"))
        assert picture.startswith(b"\x89PNG") and struct.unpack(">II", picture[16:24]) == (28, 28), one
        assert one["class"] != one["label"] and one["probability"] > one["label_probability"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        wanted = alone(folder)
        platform = Platform(folder)
        job = {"name": "killed", "model": open(MODEL).read(), "data": "fashion-mnist", "epochs": EPOCHS, "seed": 1, "workers_min": 2}
        steps = 0
        platform.ask("jobs", job)
        platform.work("ann")
        platform.work("bob")
        platform.wait("the first rounds", lambda: platform.step() > 0)
        steps = platform.ask("jobs/1")["progress"]["steps"]
        platform.wait("a fifth of the rounds", lambda: platform.step() > steps // 5)
        platform.server.end(signal.SIGKILL)
        platform.start()
        platform.wait("two fifths of the rounds", lambda: platform.step() > 2 * steps // 5)
        platform.workers.pop("bob").end(signal.SIGKILL)
        platform.workers["ann"].process.send_signal(signal.SIGSTOP)  # or all might be over before the third is there
        began = time.time()
        platform.work("eve")
        platform.wait("the third worker's first contribution", lambda: platform.samples("eve") > 0)
        print(f"the third worker contributed after {time.time() - began:.2f} s")
        platform.workers["ann"].process.send_signal(signal.SIGCONT)
        platform.wait("the end", lambda: platform.ask("jobs/1")["state"] in ("finished", "failed"))
        job = platform.ask("jobs/1")
        samples = sum(w["samples"] for w in platform.ask("jobs/1/workers")["workers"])
        check_evaluation(platform.ask("jobs/1/evaluation"), job)
        platform.end()
    print(f"alone {wanted}\nhere  {job['sha256']}")
    # What was done since the last safe version was done again after the kill; what was done since the last look is nobody's.
    credited = samples / (job["samples"] * EPOCHS)
    print(f"credited {credited:.3f} of all samples")
    return 0 if job["state"] == "finished" and job["sha256"] == wanted and 0.9 < credited < 1.9 else 1


sys.exit(main())
