#!/usr/bin/env python3
"""rabbitmq.py SHOAL [TRIALS]: units of searches through RabbitMQ, with everything in PostgreSQL, while things die.

Four workers take units from a broker. Workers, the broker and the server are killed -9 and started again, and at the
end every trial has exactly one result: the one that `shoal search` comes to alone. Then a worker that takes units and is never
heard of again: they are set aside after three tries, and the search goes on.

Where PostgreSQL or RabbitMQ is missing the exit status is 77: skipped."""
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from amqp import Connection
from search import alone, ask, results, same, table, upload
from server import PATIENCE_S, Server, Volunteer, wait_for

SHOAL = sys.argv[1]
TRIALS = int(sys.argv[2]) if len(sys.argv) > 2 else 60
EPOCHS = 12
TOOLS = Path(__file__).resolve().parents[2] / "tools"
LEASE_S = {"chaos": 8, "poison": 2}  # a slow worker must be heard of in the one; nobody ever is in the other


def tool(name, *words):
    done = subprocess.run([TOOLS / name, *map(str, words)], capture_output=True, text=True)
    if done.returncode and "is not installed" in done.stderr:
        print(done.stderr.strip())
        sys.exit(77)
    assert done.returncode == 0, f"{name} {words[0]}: {done.stderr}"
    return done.stdout.strip()


class Run:
    """A broker, a database, a server that uses both, and its workers."""

    def __init__(self, folder):
        self.folder, self.begun = folder, time.monotonic()
        self.broker, self.database = folder / "broker", folder / "database"
        with ThreadPoolExecutor() as both:
            queue, store = both.submit(tool, "rabbitmq", "start", self.broker), both.submit(tool, "postgres", "start", self.database)
        self.queue, self.store = queue.result(), store.result()
        self.server, self.workers, self.port, self.named = None, [], 0, 0
        self.serve()
        self.say("broker, database and server are here")

    def say(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def serve(self, lease_s=LEASE_S["chaos"]):
        self.server = Server(SHOAL, self.folder / "server", "--store", self.store, "--queue", self.queue, "--lease", str(lease_s),
                             "--open", "viewer", port=self.port)
        self.port = self.server.port
        self.admin = self.server.admin or self.admin

    def hire(self):
        self.named += 1
        name = f"worker-{self.named}"
        self.workers.append(Volunteer(SHOAL, self.queue, name, self.folder))

    def invite(self):
        link = f"{self.server.url}/#t={self.admin}"
        self.workers.append(Volunteer(SHOAL, link, "volunteer", self.folder))

    def ask(self, method, path, body=None, raw=None):
        return ask(self.server, method, path, body, raw, self.admin)

    def submit(self, trials):
        return self.ask("POST", "/api/v1/jobs", {"kind": "search", "name": "shoppers", "data": "shoppers", "target": "bought",
                                                 "trials": trials, "budget_s": 0, "epochs": EPOCHS})["id"]

    def done(self, job):
        return self.ask("GET", f"/api/v1/jobs/{job}")["search"]["units"]

    def state(self, job):
        return self.ask("GET", f"/api/v1/jobs/{job}")["state"]

    def end(self):
        for worker in self.workers:
            worker.end()
        if self.server:
            self.server.end()
        tool("rabbitmq", "stop", self.broker)
        tool("postgres", "stop", self.database)


def chaos(run, job, units):
    """Kills everything in turn, while the search comes to so many units."""
    draw, killed = random.Random(7), {"worker": 0, "broker": 0, "server": 0}

    def worker():
        run.workers.pop(draw.randrange(len(run.workers))).end(signal.SIGKILL)
        run.hire()

    def broker():
        tool("rabbitmq", "kill", run.broker)
        time.sleep(1)
        tool("rabbitmq", "restart", run.broker)

    def server():
        run.server.end(signal.SIGKILL)
        run.serve()

    plan = [("worker", worker), ("broker", broker), ("worker", worker), ("server", server)]
    rounds = max(1, TRIALS // 125)
    for i, (name, kill) in enumerate(plan * rounds):
        share = (i + 1) / (len(plan) * rounds + 1)
        wait_for(f"{share:.0%} of the trials", lambda: run.done(job) >= share * units or run.state(job) == "finished",
                 lambda: run.done(job))
        if run.state(job) == "finished":
            break
        kill()
        killed[name] += 1
        run.say(f"{run.done(job) if name != 'server' else '...'} units; kill -9 of the {name}")
    return killed


def printed(process):
    return Path(process.printed.name).read_text()


def throw_rubbish(run):
    """What is no unit is thrown away, and said."""
    sender = Connection(run.queue, "shoal.units")
    for body in (b"rubbish", b'{"server":"http://127.0.0.1:1","token":"a\\r\\nb","job":1,"data":"x","unit":{"unit":0,"attempt":1}}'):
        sender.publish(body)
    wait_for("two notes", lambda: sum(printed(w).count("is no unit") for w in run.workers) == 2)
    sender.close()


def check_secrets(run):
    """The broker's password is in no list of processes, and nothing prints it."""
    password = run.queue.split(":")[2].split("@")[0]
    for process in [run.server, *run.workers]:
        process.first_line()  # a process that has just been started has not taken its password out yet
        assert password not in Path(f"/proc/{process.process.pid}/cmdline").read_text(), "the list of processes has the password"
        assert password not in printed(process), "the password was printed"


def disturbed(run, expected, units):
    for _ in range(4):
        run.hire()
    throw_rubbish(run)
    check_secrets(run)
    job = run.submit(TRIALS)
    killed = chaos(run, job, units)
    wait_for("the end", lambda: run.state(job) == "finished", lambda: run.done(job))
    found = results(run.server, job, run.admin)
    same(found, expected)
    run.say(f"{len(found)} trials with one result each, as on one machine; killed: "
            + ", ".join(f"{name} {count} x" for name, count in killed.items()))
    tokens = lambda: [t for t in run.ask("GET", "/api/v1/tokens")["tokens"] if t["job"] == job]
    wait_for("the end of the queue's token", lambda: not tokens())


def dismiss(run, csv):
    """Workers leave in order; what they fetched is the data, once."""
    for worker in run.workers:
        worker.process.terminate()
        assert worker.process.wait(PATIENCE_S) == 0, "a worker did not leave in order"
        end = json.loads(printed(worker).splitlines()[-1])
        assert end["event"] == "end" and end["from_server"] in (0, csv.stat().st_size), end
        worker.printed.close()
    run.workers.clear()


def poison(run):
    """Whoever takes these is never heard of again. Then a volunteer who has a link, and no queue, does the rest."""
    run.server.end()
    run.serve(LEASE_S["poison"])
    thief, taken = Connection(run.queue, "shoal.units"), []
    thief.consume()
    job = run.submit(24)

    def is_set_aside():
        message = json.loads(thief.next(0.3) or "{}")
        if message.get("job") == job:  # others are left over from before
            taken.append(message)
        return any(t["result"]["failed"] for t in run.ask("GET", f"/api/v1/jobs/{job}/trials?limit=100")["trials"])

    wait_for("units that are set aside", is_set_aside, lambda: len(taken))
    thief.close()
    attempts = {}
    for message in taken:
        attempts.setdefault(message["unit"]["unit"], []).append(message["unit"]["attempt"])
    assert attempts[0] == [1, 2, 3], attempts
    assert taken[0]["token"] and taken[0]["data"] == "shoppers" and taken[0]["server"] == run.server.url, taken[0]
    run.invite()
    wait_for("the end after poison", lambda: run.state(job) == "finished", lambda: run.done(job))
    rows = results(run.server, job, run.admin)
    failed = [row for row in rows.values() if row["result"]["failed"]]
    assert "set aside after 3" in failed[0]["result"]["error"], failed[0]
    assert 0 < len(failed) < 24 and len(rows) == 24, (len(failed), len(rows))
    run.say(f"{len(failed)} of 24 trials set aside after three tries, the others computed")


def main():
    with tempfile.TemporaryDirectory(prefix="shoal-queue-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the broker and the database have users of their own
        csv = folder / "shoppers.csv"
        table(csv)
        with ThreadPoolExecutor() as beside:
            undisturbed = beside.submit(alone, csv, folder, TRIALS)
            run = Run(folder)
            expected, end = undisturbed.result()
        run.say(f"{len(expected)} trials, {end['units']} units, on one machine")
        try:
            upload(run.server, csv, run.admin)
            disturbed(run, expected, end["units"])
            dismiss(run, csv)
            poison(run)
        finally:
            run.end()


if __name__ == "__main__":
    main()
