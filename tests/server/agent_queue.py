#!/usr/bin/env python3
"""agent_queue.py SHOAL: four actors and a learner through RabbitMQ, while things die.

An actor, the broker and the learner are killed -9 in turn, and rubbish is thrown into the queues; each time the training
goes on, and in the end CartPole-v1 is solved. Meanwhile no queue is ever longer than its bound. Then exact rounds: played
through the broker they are those of one machine. Who waits for others says so. And messages late in the training are no larger than the first ones; what was
trained through the broker goes on without it.

Where RabbitMQ is missing the exit status is 77: skipped."""
import atexit
import json
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from amqp import Connection, short, long
from server import PATIENCE_S, Process, wait_for

SHOAL = sys.argv[1]
TOOLS = Path(__file__).resolve().parents[2] / "tools"
STREAMS = 8
DECLARE, DECLARE_OK = (50, 10), (50, 11)
BOUNDS = {"shoal.agent.poles.units": STREAMS, "shoal.agent.poles.rollouts": 2 * STREAMS}


def tool(*words):
    done = subprocess.run([TOOLS / "rabbitmq", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode and "is not installed" in done.stderr:
        print(done.stderr.strip())
        sys.exit(77)
    assert done.returncode == 0, f"rabbitmq {words[0]}: {done.stderr}"
    return done.stdout.strip()


def events(process):
    lines = Path(process.printed.name).read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


class Watch(threading.Thread):
    """Asks again and again how many messages wait."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.most, self.asked, self.ends = url, dict.fromkeys(BOUNDS, 0), 0, False

    def ask(self, connection, queue):
        passive = b"\x01"
        connection.method(1, DECLARE, struct.pack(">H", 0) + short(queue) + passive + long(b""))
        answer = connection.expect(DECLARE_OK)
        return struct.unpack(">I", answer[1 + answer[0] :][:4])[0]

    def run(self):
        connection = None
        while not self.ends:
            try:
                connection = connection or Connection(self.url, "")
                for queue in BOUNDS:
                    self.most[queue] = max(self.most[queue], self.ask(connection, queue))
                self.asked += 1
                time.sleep(0.03)
            except (OSError, AssertionError):  # the broker is away, or the queue is not there yet
                connection = None
                time.sleep(0.2)


class Run:
    def __init__(self, folder):
        self.begun, self.folder, self.broker = time.monotonic(), folder, folder / "broker"
        self.url = tool("start", self.broker)
        self.out = folder / "poles.safetensors"
        self.actors, self.learner = [], None

    def say(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def act(self):
        self.actors.append(Process([SHOAL, "agent", "act", "--queue", self.url, "--name", "poles", "--threads", "1", "--json"]))

    def learn(self, *options):
        self.learner = Process([SHOAL, "agent", "train", "--queue", self.url, "--name", "poles", "--threads", "1", "--json", "--out",
                                str(self.out), "--steps", "1000000000", "--seconds", "100000", *options])

    def wait(self, what, done):
        wait_for(what, lambda: done() or self.learner.process.poll() is not None)
        assert self.learner.process.poll() is None, f"the learner has ended: {self.learner.process.returncode}"

    def steps(self):
        return max((e["steps"] for e in events(self.learner) if e["event"] == "round"), default=0)

    def goes_on(self):
        """What was played before does not count: two more reports, with more steps each."""
        begun = self.steps()
        self.wait("more steps", lambda: self.steps() > begun)
        middle = self.steps()
        self.wait("more steps", lambda: self.steps() > middle)
        return self.steps()

    def ends(self):
        """The learner is at its end by itself."""
        wait_for("the learner's end", lambda: self.learner.process.poll() is not None, self.steps)
        assert self.learner.process.poll() == 0, f"the learner: {self.learner.process.poll()}; {events(self.learner)[-3:]}"

    def end(self):
        for process in [*self.actors, self.learner]:
            if process and process.process.poll() is None:
                process.process.kill()
        tool("stop", self.broker)


def throw_rubbish(run):
    for queue, bodies in (("units", (b"", b"rubbish", b"\x04" + b"\0" * 9 + b"x" * 50)),
                          ("rollouts", (b"\x02", b"\x02" + b"\1" * 8 + b"\x04liar" + b"x" * 50, b"\xff" * 300))):
        sender = Connection(run.url, f"shoal.agent.poles.{queue}")
        for body in bodies:
            sender.publish(body)
        sender.close()


def steal(run, count=3):
    """The sizes of rollouts that are taken away from under the learner's nose. Their units are given out again."""
    thief = Connection(run.url, "shoal.agent.poles.rollouts")
    thief.consume()
    sizes = [len(thief.next(PATIENCE_S)) for _ in range(count)]
    thief.close()
    return sizes


def kill_actor(run):
    victim = run.actors.pop(0)
    victim.end(signal.SIGKILL)


def kill_broker(run):
    tool("kill", run.broker)
    time.sleep(0.5)
    tool("restart", run.broker)


def told(run, words, name):
    """A command, and the file with what it says to people."""
    said = run.folder / name
    with said.open("w") as file:
        process = subprocess.Popen([SHOAL, *words, "--queue", run.url], stdout=file, stderr=file)
    atexit.register(process.kill)  # nothing outlives a test that has failed
    return process, said


def waiting(run):
    """An actor without its learner, and a learner without actors, say for whom they wait."""
    actor, of_actor = told(run, ["agent", "act", "--name", "zz"], "actor")
    learner, of_learner = told(run, ["agent", "train", "--env", "CartPole-v1", "--algorithm", "vtrace", "--name", "yy", "--out",
                                     str(run.folder / "yy.safetensors"), "--seconds", "100000"], "learner")
    wait_for("words of both", lambda: "waiting" in of_actor.read_text() and "waiting" in of_learner.read_text())
    assert "waiting for a learner called zz" in of_actor.read_text(), of_actor.read_text()
    assert "waiting for actors: shoal agent act --queue amqp://shoal:PASSWORD@127.0.0.1" in of_learner.read_text(), of_learner.read_text()
    assert "--name yy" in of_learner.read_text(), of_learner.read_text()
    assert run.url not in of_learner.read_text(), "the password is told"
    actor.send_signal(signal.SIGINT)
    assert actor.wait(PATIENCE_S) == 0
    actor, _ = told(run, ["agent", "act", "--name", "yy", "--threads", "1"], "actor")
    assert learner.wait(PATIENCE_S) == 0 and actor.wait(PATIENCE_S) == 0
    assert "1 actor came" in of_learner.read_text(), of_learner.read_text()
    run.say("who waits says for whom")


def disturbed(run):
    for _ in range(4):
        run.act()
    watch = Watch(run.url)
    watch.start()
    run.learn("--env", "CartPole-v1", "--algorithm", "vtrace", "--full", "--set", f"streams={STREAMS}")
    run.say(f"{run.goes_on()} steps")
    early = steal(run)
    throw_rubbish(run)
    run.say(f"{run.goes_on()} steps after rubbish")
    kill_actor(run)
    saved = run.goes_on()  # by the time that the broker is back
    run.say(f"{saved} steps after kill -9 of an actor")
    kill_broker(run)
    run.say(f"{run.goes_on()} steps after kill -9 of the broker")
    run.wait("the file", run.out.exists)
    run.learner.end(signal.SIGKILL)
    run.act()  # a late joiner, before there is a learner
    run.learn("--env", "CartPole-v1", "--resume", "--full")
    first = run.goes_on()
    assert first > saved, f"{first} steps: it began anew"
    run.say(f"{first} steps after kill -9 of the learner")
    late = steal(run)
    assert max(late) <= 1.1 * max(early), f"messages grow: {early}, {late}"
    run.say(f"messages of {min(early + late)} to {max(early + late)} bytes")
    run.learner.process.send_signal(signal.SIGINT)
    assert run.learner.process.wait(PATIENCE_S) == 130
    run.learn("--resume")
    run.ends()
    end = events(run.learner)[-1]
    assert end["event"] == "end" and end["solved"] and end["return_mean"] >= 475 and end["steps"] > first, end
    run.say(f"solved with {end['steps']} steps, {end['steps_per_second']:.0f} a second")
    watch.ends = True
    for actor in run.actors:
        assert actor.process.wait(PATIENCE_S) == 0, "an actor did not leave in order"
        last = events(actor)[-1]
        assert last["over"] and last["units"] > 0, last
    assert watch.asked > 20, watch.asked
    for queue, most in watch.most.items():
        assert most <= BOUNDS[queue], f"{most} messages in {queue}"
    run.say(f"longest queues, of {watch.asked} looks: {watch.most}")
    run.actors.clear()


def without_the_broker(run):
    """Here, where rounds wait for all their rollouts, which they did not there."""
    before = events(run.learner)[-1]["steps"]
    done = subprocess.run([SHOAL, "agent", "train", "--resume", "--out", str(run.out), "--steps", str(before + 20000), "--full", "--threads", "1",
                           "--json"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout.splitlines()[-1])["steps"]
    assert steps >= before + 20000, (before, steps)
    run.say(f"{steps} steps, the last {steps - before} without the broker")


def same_as_alone(run):
    """Exact rounds: the training that one machine comes to, step for step."""
    words = ["agent", "train", "--env", "CartPole-v1", "--algorithm", "ppo", "--steps", "20000", "--seconds", "100000", "--full", "--threads", "1",
             "--json"]
    alone = subprocess.run([SHOAL, *words, "--out", str(run.folder / "alone.safetensors")], capture_output=True, text=True, timeout=PATIENCE_S)
    actors = [told(run, ["agent", "act", "--name", "poles", "--threads", "1"], f"actor {i}") for i in range(2)]
    for _, said in actors:  # who comes after this short training waits for the next one
        wait_for("an actor that waits", lambda: "waiting for a learner" in said.read_text())
    run.learner = Process([SHOAL, *words, "--out", str(run.folder / "queue.safetensors"), "--queue", run.url, "--name", "poles"])
    run.ends()
    one, two = json.loads(alone.stdout.splitlines()[-1]), events(run.learner)[-1]
    for key in ("steps", "return_mean", "return_deviation", "solved"):
        assert one[key] == two[key], (key, one, two)
    files = [(run.folder / f"{name}.safetensors").read_bytes() for name in ("alone", "queue")]
    assert files[0] == files[1], "the files differ"
    for actor, _ in actors:
        assert actor.wait(PATIENCE_S) == 0
    run.say(f"ppo through the broker is ppo alone: {two['steps']} steps in {two['seconds']:.1f} s, return {two['return_mean']}")


def main():
    with tempfile.TemporaryDirectory(prefix="shoal-actors-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the broker has a user of its own
        run = Run(folder)
        try:
            waiting(run)
            disturbed(run)
            without_the_broker(run)
            same_as_alone(run)
        finally:
            run.end()


if __name__ == "__main__":
    main()
