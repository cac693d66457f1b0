#!/usr/bin/env python3
"""agent.py SHOAL: an agent is trained on a server by volunteers that come and go.

Four volunteers play CartPole-v1 while volunteers and the server are killed -9: the training goes on and solves it, and
what waits for the learner stays bounded. Who joins late gets the newest policy with its first unit. Then everything
that can be asked is asked, rightly and wrongly: points, checkpoints, episodes, the policy, stop, resume, specs, bodies,
roles; and somebody lies about what it has played."""
import http.client
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server import PATIENCE_S, Server, Volunteer, wait_for

SHOAL = sys.argv[1]
STREAMS = 4


class Site:
    """A server that is started again on the same port."""

    def __init__(self, folder, *options):
        self.folder, self.options, self.port = folder, options, 0
        self.start()

    def start(self):
        self.server = Server(SHOAL, self.folder / "server", *self.options, port=self.port)
        self.port, self.url = self.server.port, self.server.url
        self.admin = self.server.admin or getattr(self, "admin", None)

    def ask(self, method, path, body=None, token=None, headers=None, source=None):
        """Status and content: JSON where it is that, else bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S, source_address=source and (source, 0))
        head = dict(headers or {})
        if token or self.admin:
            head["Authorization"] = "Bearer " + (token or self.admin)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, path, body, head)
        answer = connection.getresponse()
        content = answer.read()
        kind = answer.getheader("Content-Type", "")
        connection.close()
        return answer.status, json.loads(content) if kind.startswith("application/json") else content

    def get(self, path):
        status, answer = self.ask("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def submit(self, **spec):
        status, answer = self.ask("POST", "/api/v1/jobs", {"kind": "agent", "env": "CartPole-v1", **spec})
        assert status == 201, answer
        return answer["id"]

    def job(self, number):
        return self.get(f"/api/v1/jobs/{number}")

    def work(self, name):
        return Volunteer(SHOAL, self.url, name, self.folder)

    def refused(self, status, words, method, path, body=None, field=None, **more):
        got, answer = self.ask(method, path, body, **more)
        assert got == status, (method, path, body, got, answer)
        error = answer["error"]
        assert words in error["text"] and error.get("field") == field, (path, body, error)
        assert str(self.folder) not in error["text"], error


def check_envs(site):
    answer = site.get("/api/v1/envs")
    envs = {env["name"]: env for env in answer["envs"]}
    assert envs["CartPole-v1"] == {**envs["CartPole-v1"], "goal": 475, "limit": 500, "observation": 4, "actions": 2, "usual": "ppo"}
    assert "sac" not in envs["CartPole-v1"]["algorithms"] and "ppo" in envs["CartPole-v1"]["algorithms"]
    assert envs["Pendulum-v1"]["actions"] is None and envs["Pendulum-v1"]["goal"] is None and "dqn" not in envs["Pendulum-v1"]["algorithms"]
    assert [entry["name"] for entry in answer["algorithms"]] == ["ppo", "vtrace", "dqn", "sac", "clone"]
    assert all(entry["says"] for entry in answer["algorithms"] + answer["envs"])


def check_specs(site):
    """What is wrong is said by its field, and nothing of it is kept. Strangers' names bring in no Python."""
    for change, field, words in (({"env": "CartPole-v3"}, "env", "did you mean"), ({"env": "gym:CartPole-v1"}, "env", "played by Python"),
                                 ({"env": "gym:os:x"}, "env", "built in"), ({"seed": -1}, "seed", "from 0 to 9,007,199,254,740,992"), ({"env": None}, "env", "missing"),
                                 ({"algorithm": "sac"}, "algorithm", ""), ({"algorithm": "magic"}, "algorithm", "ppo"),
                                 ({"settings": {"rats": 1}}, "settings", "rats"), ({"settings": {"envs": 4096, "steps": 4096}}, "settings", "a rollout of"),
                                 ({"settings": {"rate": -3}}, "settings", "rate"), ({"body": "dense many"}, "body", "many"),
                                 ({"seconds": -1}, "seconds", "from 0"), ({"steps": 0.5}, "steps", "whole"), ({"exact": "yes"}, "exact", "true or false"),
                                 ({"data": "wine"}, "data", "no field"), ({"workers_max": 0}, "workers_max", "from 1")):
        site.refused(422, words, "POST", "/api/v1/jobs", {"kind": "agent", "env": "CartPole-v1", **change}, field)
    assert site.get("/api/v1/jobs")["jobs"] == [], "a spec that was refused is there"


def first_unit(site, job, **query):
    """What an actor that has nothing is given."""
    words = "&".join(f"{key}={value}" for key, value in {"worker": "late", **query}.items())
    status, answer = site.ask("POST", f"/api/v1/jobs/{job}/play?{words}")
    if status == 204:
        return None
    assert status == 200, (status, answer)
    length = struct.unpack_from("<I", answer)[0]
    unit, policy = answer[4:4 + length], answer[4 + length:]
    number, version = struct.unpack_from("<QQ", unit, 8)
    return version, policy


def check_bodies(site, job):
    play = f"/api/v1/jobs/{job}/play"
    site.refused(400, "worker must be", "POST", play, field="worker")
    site.refused(400, "version", "POST", play + "?worker=x&version=-1", field="version")
    site.refused(400, "a rollout's bytes", "POST", play + "?worker=x", b"no rollout")
    site.refused(400, "a rollout's bytes", "POST", play + "?worker=x", os.urandom(3000))
    site.refused(413, "", "POST", play + "?worker=x", headers={"Content-Length": str(8 << 20)})
    site.refused(404, "", "POST", "/api/v1/jobs/99/play?worker=x")
    site.refused(404, "no such checkpoint", "GET", f"/api/v1/jobs/{job}/checkpoints/7")
    site.refused(404, "no such checkpoint", "GET", f"/api/v1/jobs/{job}/checkpoints/x/episode")
    site.refused(400, "seed", "GET", f"/api/v1/jobs/{job}/checkpoints/newest/episode?seed=x", field="seed")
    site.refused(400, "from", "GET", f"/api/v1/jobs/{job}/points?from=-1", field="from")
    site.refused(409, "", "POST", f"/api/v1/jobs/{job}/units", {"worker": "x"})


def check_life(site, job):
    """Who plays for another life of the training, or computes otherwise, is told, and is blamed for nothing."""
    play, life = f"/api/v1/jobs/{job}/play?worker=other", site.get(f"/api/v1/jobs/{job}/brief")["life"]
    site.refused(409, "another life", "POST", f"{play}&life={life + 1}", field="life")
    site.refused(409, "another life", "POST", f"{play}&life={life + 1}", b"of a life before", field="life")
    site.refused(409, "could not be checked", "POST", f"{play}&life={life}&math=0123", b"played otherwise", field="math")
    site.refused(400, "life", "POST", f"{play}&life=x", field="life")
    assert site.ask("POST", f"{play}&life={life}")[0] in (200, 204)
    assert site.get("/api/v1/bans")["bans"] == []
    return life


def points_of(site, job):
    """All of them, asked for in parts."""
    points, start = [], 0
    while True:
        answer = site.get(f"/api/v1/jobs/{job}/points?from={start}")
        points += answer["points"]
        if not answer["points"]:
            return points
        assert answer["next"] == start + len(answer["points"])
        start = answer["next"]


def train_with_kills(site, folder):
    """Volunteers and the server are killed: nothing is lost but the last seconds, and it is solved. It is given time once
    all that has happened, so that its budget is not used up before on a slow machine."""
    job = site.submit(name="Poles", until_solved=False, seconds=100000, steps=10000000000, settings={"streams": STREAMS, "epochs": 4})
    site.refused(409, "has not begun", "POST", f"/api/v1/jobs/{job}/play?worker=x")
    workers = [site.work(f"player {i}") for i in range(4)]
    view = lambda: site.job(job)["agent"]
    wait_for("rounds of all four", lambda: view()["version"] >= 3 and view()["actors"] >= 4)
    check_bodies(site, job)
    life = check_life(site, job)
    # On a busy machine a second may have no steps at all: each of these is looked at until it is there.
    wait_for("its speed", lambda: site.get("/api/v1/server")["samples_per_s"] > 100)
    wait_for("the speed that is measured", lambda: measure_of(site, "shoal_samples_per_second") > 100)
    wait_for("the job's speed", lambda: measure_of(site, "shoal_job_samples_per_second", job) > 100)
    assert measure_of(site, "shoal_job_step", job) >= 3
    assert f'shoal_job_loss{{job="{job}"}}' not in site.get("/metrics").decode(), "an agent has a loss"
    most = 0
    for step in range(2):
        version = view()["version"]
        workers[step].end(signal.SIGKILL)
        wait_for("rounds without a volunteer that was killed", lambda: view()["version"] > version + 5)
        for _ in range(10):
            most = max(most, view()["waiting"])
            time.sleep(0.02)
    wait_for("its place in the list to be free", lambda: site.job(job)["workers"] == 2)
    known = view()["version"]
    late = wait_for("a unit", lambda: first_unit(site, job))
    assert late[1] and late[0] >= known > 10, f"a late joiner got version {late[0]}, and there was {known}"
    assert most <= 2 * STREAMS, f"{most} rollouts waited"
    wait_for("a file to go on from", lambda: (folder / "server/jobs" / str(job) / "agent.safetensors").exists())
    before, points = view(), points_of(site, job)
    site.server.end(signal.SIGKILL)
    time.sleep(0.3)
    site.start()
    wait_for("volunteers that come back", lambda: view()["version"] > 0 and site.job(job)["workers"] >= 2)
    again = wait_for("rounds after the server was killed", lambda: (v := view())["steps"] > 0 and v["actors"] > 0 and v)
    assert not any(said_over(worker, job) for worker in workers[2:]), "a volunteer took a restart for the end"
    assert check_life(site, job) != life, "a training that went back says that it is the same"
    kept = points_of(site, job)
    assert again["seconds"] > 1 and kept and kept[0] == points[0], "the curve did not outlive the server"
    assert all(a["steps"] <= b["steps"] and a["seconds"] <= b["seconds"] for a, b in zip(kept, kept[1:])), "the curve goes back"
    lose_a_unit(site, job)
    wait_for("a policy that plays well", lambda: view()["return_mean"] >= 475, lambda: view()["version"])
    for more in (2, 10, 50, 250):  # seconds, until the tenth that is left for the last score is enough for it
        budget = end_soon(site, job, more)
        done = wait_for("the end", lambda: (j := site.job(job))["state"] == "finished" and j)
        agent = done["agent"]
        if agent["score_episodes"] >= 100:
            break
    assert agent["solved"] and agent["score"] >= 475 and agent["steps"] > before["steps"] // 2, agent
    assert agent["seconds"] > 0.89 * budget, agent  # a tenth is left for the last score, which may take less
    assert agent["actors"] == 0 and agent["waiting"] == 0 and agent["bytes_in"] > 0 and agent["bytes_out"] > 0, agent
    credited = site.get(f"/api/v1/jobs/{job}/workers")["workers"]
    assert {"player 2", "player 3"} <= {worker["name"] for worker in credited} <= {"guest", *(f"player {i}" for i in range(4))}, credited
    assert 0.5 < sum(worker["samples"] for worker in credited) / agent["steps"] < 2, (credited, agent)
    site.refused(410, "over", "POST", f"/api/v1/jobs/{job}/play?worker=x")
    for body in ("{}", os.urandom(100000)):
        site.refused(410, "over", "POST", f"/api/v1/jobs/{job}/play?worker=x", body)
    lines = log_of(site, job)
    assert {"player 0 is here", "player 0 left", "player 3 is here"} <= set(lines), lines
    assert any(line.startswith("continuing from ") and line.endswith(" steps") for line in lines), lines
    assert lines[-1] == f"finished after {agent['steps']:,} steps: solved", lines
    return job, workers[2:]


def stop(site, job):
    assert site.ask("POST", f"/api/v1/jobs/{job}/stop", b"")[0] == 200
    wait_for("its stop", lambda: site.job(job)["state"] == "stopped")


def end_soon(site, job, more=2):
    """Stops a job that runs and lets it go on for some seconds: how long it may train in all."""
    if site.job(job)["state"] != "finished":
        stop(site, job)
    spent = site.job(job)["agent"]["seconds"]
    status, answer = site.ask("POST", f"/api/v1/jobs/{job}/resume", {"seconds": more})
    assert status == 200, answer
    return spent + more


def lose_a_unit(site, job):
    """A volunteer has a unit for sure when it is killed; another is given that."""
    guest = site.work("guest")
    wait_for("another volunteer", lambda: site.job(job)["workers"] == 3)
    wait_for("a unit of its", lambda: first_unit(site, job, worker="guest"))
    guest.end(signal.SIGKILL)
    wait_for("its unit to be given to another", lambda: site.job(job)["agent"]["given_again"] > 0)


def log_of(site, job):
    return [line["text"] for line in site.get(f"/api/v1/jobs/{job}/log")["lines"]]


def said_over(worker, job):
    """Whether a volunteer has said that the job is over."""
    return f"job {job} is over" in Path(worker.printed.name).read_text()


def measure_of(site, name, job=None):
    """A number of /metrics."""
    label = f'{{job="{job}"}}' if job else ""
    (line,) = [line for line in site.get("/metrics").decode().splitlines() if line.startswith(f"{name}{label} ")]
    return float(line.split()[1])


def check_shown(site, folder, job):
    """Points, checkpoints, episodes and the policy of a training that is over."""
    points = points_of(site, job)
    last = points[-1]
    assert last["steps"] == site.job(job)["agent"]["steps"] and last["solved"] and last["score"] >= 475, last
    assert all({"steps", "seconds", "return_mean", "return_deviation", "steps_per_second", "lag"} <= set(point) for point in points)
    assert len({json.dumps(point) for point in points}) == len(points), "a point is there twice"
    checkpoints = site.get(f"/api/v1/jobs/{job}/checkpoints")["checkpoints"]
    steps = [checkpoint["steps"] for checkpoint in checkpoints]
    assert steps == sorted(steps) and steps[-1] == last["steps"] and len(steps) == site.job(job)["agent"]["checkpoints"], steps
    content = site.get(f"/api/v1/jobs/{job}/checkpoints/{steps[0]}")
    assert len(content) == checkpoints[0]["bytes"]
    bad = site.get(f"/api/v1/jobs/{job}/checkpoints/{steps[0]}/episode?seed=3")
    good = site.get(f"/api/v1/jobs/{job}/checkpoints/newest/episode?seed=3")
    assert good["return"] >= bad["return"] and good != bad and good["env"] == "CartPole-v1" and len(good["pictures"]) == len(good["rewards"]) + 1 == 501, (len(good["pictures"]), good["return"], bad["return"], steps)
    assert good["pictures"][0]["shapes"] and good == site.get(f"/api/v1/jobs/{job}/checkpoints/{steps[-1]}/episode?seed=3")
    (folder / "policy.safetensors").write_bytes(site.get(f"/api/v1/jobs/{job}/model"))
    played = subprocess.run([SHOAL, "agent", "play", str(folder / "policy.safetensors"), "--json"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert played.returncode == 0, played.stderr
    assert site.job(job)["files"]["onnx"] and b"observation" in site.get(f"/api/v1/jobs/{job}/model.onnx")
    site.refused(404, "agents have none", "GET", f"/api/v1/jobs/{job}/events")


def check_restart(site, workers):
    """A server that is stopped in order says that it will be back, and volunteers do not take that for the end."""
    job = site.submit(until_solved=False, seconds=100000, steps=10000000000, body="gru 8")
    wait_for("its rounds", lambda: site.job(job)["agent"]["version"] > 3)
    site.refused(404, "finished or stopped", "GET", f"/api/v1/jobs/{job}/model.onnx")
    assert site.server.end() == 0
    time.sleep(0.5)
    site.start()
    wait_for("volunteers that come back", lambda: site.job(job)["workers"] == len(workers))
    version = site.job(job)["agent"]["version"]
    wait_for("more rounds", lambda: site.job(job)["agent"]["version"] > version)
    assert not any(said_over(worker, job) for worker in workers), "a volunteer took a restart for the end"
    end_soon(site, job)
    wait_for("the end", lambda: site.job(job)["state"] == "finished")
    wait_for("volunteers that know", lambda: all(said_over(worker, job) for worker in workers))
    lines = log_of(site, job)
    assert any(line.startswith("continuing from ") for line in lines) and any("not there as ONNX" in line for line in lines), lines
    site.refused(404, "remembers", "GET", f"/api/v1/jobs/{job}/model.onnx")


def watch(site, job):
    """Events of a job as they happen, until it ends."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE_S)
    connection.request("GET", f"/api/v1/jobs/{job}/live")
    return connection.getresponse()


def check_stop_and_resume(site, job):
    second = site.submit(until_solved=False, seconds=100000, seed=2, exact=True)
    live = watch(site, second)
    wait_for("its rounds", lambda: site.job(second)["agent"]["version"] > 3)
    stop(site, second)
    seen = b""
    while b"event: point" not in seen:
        seen += live.readline()
    point = json.loads(live.readline().split(b"data: ", 1)[1])
    assert {"steps", "return_mean", "lag"} <= set(point) and point["lag"] == 0, point
    live.close()
    site.refused(409, "stopped", "POST", f"/api/v1/jobs/{second}/play?worker=x")
    stopped = site.job(second)["agent"]
    site.refused(422, "steps are done already", "POST", f"/api/v1/jobs/{second}/resume", {"steps": 1})
    site.refused(400, "the body may be", "POST", f"/api/v1/jobs/{second}/resume", {"seconds": -1}, "seconds")
    status, answer = site.ask("POST", f"/api/v1/jobs/{second}/resume", {"steps": stopped["steps"] + 20000})
    assert status == 200, answer
    done = wait_for("the rest", lambda: (j := site.job(second))["state"] == "finished" and j["agent"])
    assert stopped["steps"] + 20000 <= done["steps"] < stopped["steps"] + 40000 and done["seconds"] > stopped["seconds"], done
    assert len(points_of(site, second)) > 1
    site.refused(409, "give more \"seconds\" or \"steps\"", "POST", f"/api/v1/jobs/{second}/resume")
    site.refused(422, "used up", "POST", f"/api/v1/jobs/{job}/resume", {"steps": 20000000000})
    assert site.ask("DELETE", f"/api/v1/jobs/{second}")[0] == 204
    site.refused(404, "", "GET", f"/api/v1/jobs/{second}/points")


def tensors_of(content):
    """The policy's tensors in a safetensors file, as bytes."""
    length = struct.unpack_from("<Q", content)[0]
    head, data = json.loads(content[8:8 + length]), content[8 + length:]
    return {name: data[slice(*tensor["data_offsets"])] for name, tensor in head.items() if name.startswith("policy.") and tensor["dtype"] == "F32"}


def check_exact(site, folder):
    """With rounds as on one machine it is the same training, to the bit, whoever plays."""
    job = site.submit(until_solved=False, steps=20000, seed=5, exact=True, settings={"streams": 3})
    wait_for("its end", lambda: site.job(job)["state"] == "finished")
    out = folder / "alone.safetensors"
    alone = subprocess.run([SHOAL, "agent", "train", "--env", "CartPole-v1", "--steps", "20000", "--full", "--seed", "5", "--set", "streams=3",
                            "--out", str(out), "--json"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert alone.returncode == 0, alone.stderr
    ours, theirs = tensors_of(site.get(f"/api/v1/jobs/{job}/model")), tensors_of(out.read_bytes())
    assert ours and all(theirs[name] == value for name, value in ours.items()), "volunteers trained another policy than one machine"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def invent(unit, brief, old=False, state=None):
    """A rollout that looks like one, and that nobody has played: it goes well all the time. old: with the first policy."""
    number, version, _, stream, length = struct.unpack_from("<QQQII", unit, 8)
    state, rows = unit[40:40 + length] if state is None else state, brief["envs"] * brief["steps"]
    made = b"shoalro1" + struct.pack("<QQ8I", number, 0 if old else version, stream, brief["envs"], brief["steps"], 0, 4, 2, 1, len(state))
    made += bytes(2 * rows) + bytes(16 * (rows + brief["envs"])) + struct.pack("<f", -0.69) * rows + struct.pack("<f", 1) * rows + state
    return made + struct.pack("<I", crc32c(made))


def lie(site, job, worker, brief, **how):
    """Takes a unit, and hands in what nobody has played: the answer, or None where there is no unit just now."""
    play = f"/api/v1/jobs/{job}/play?worker={worker}"
    status, answer = site.ask("POST", play)
    if status != 200:
        return None
    return site.ask("POST", play, invent(answer[4:4 + struct.unpack_from("<I", answer)[0]], brief, **how))


def check_lies_that_cannot_be_checked(site, job, brief):
    """With a version from long ago, or from a place where nobody can go on: nothing of it counts, and it ends nothing."""
    for _ in range(3):
        wait_for("an answer", lambda: (said := lie(site, job, "stale", brief, old=True)) and said[0] in (200, 204))
    for _ in range(8):
        status, answer = wait_for("an answer", lambda: lie(site, job, "poisoner", brief, state=b"poison"))
        assert status == 400 and "state" in answer["error"]["text"], (status, answer)


def lie_until_banned(site, play, brief, source=None):
    """The answer that says so. There may be no unit just now, or no verdict yet."""

    def refusal():
        status, answer = site.ask("POST", play, source=source)
        if status == 200:
            status, answer = site.ask("POST", play, invent(answer[4:4 + struct.unpack_from("<I", answer)[0]], brief), source=source)
        assert status in (200, 204, 403), (status, answer)
        return answer if status == 403 else None

    return wait_for("a ban", refusal)


def check_liar(site):
    """Who says to have played what it has not is found out, and gets no more work; others train on, and are believed."""
    job = site.submit(until_solved=False, seconds=100000, name="Honesty")
    wait_for("its rounds", lambda: site.job(job)["agent"]["version"] > 3)
    brief = site.get(f"/api/v1/jobs/{job}/brief")
    check_lies_that_cannot_be_checked(site, job, brief)
    answer = lie_until_banned(site, f"/api/v1/jobs/{job}/play?worker=liar", brief)
    assert "results of this worker were wrong" in answer["error"]["text"], answer
    (ban,) = site.get("/api/v1/bans")["bans"]
    assert "liar" in ban["who"] and ban["job"] == job, ban
    agent = wait_for("checks", lambda: (a := site.job(job)["agent"])["checked"] >= 2 and a)
    assert agent["lies"] == 1, agent
    lines = [line["text"] for line in site.get(f"/api/v1/jobs/{job}/log")["lines"]]
    assert any("liar gets no more work" in line for line in lines), lines
    stop(site, job)
    assert len(site.get("/api/v1/bans")["bans"]) == 1, "an honest volunteer is banned"
    credited = {worker["name"]: worker["units"] for worker in site.get(f"/api/v1/jobs/{job}/workers")["workers"]}
    assert not {"stale", "poisoner"} & set(credited) and credited.get("liar", 0) <= 2, credited


def check_impostor(site):
    """Who lies under a volunteer's name, from elsewhere, is blamed under a name of its own."""
    job = site.submit(until_solved=False, seconds=100000, name="Names")
    wait_for("its rounds", lambda: site.job(job)["agent"]["version"] > 3)
    brief = site.get(f"/api/v1/jobs/{job}/brief")
    lie_until_banned(site, f"/api/v1/jobs/{job}/play?worker=player%203", brief, source="127.0.0.2")
    lines = [line for line in log_of(site, job) if line.startswith("player 3 ")]
    assert any(re.match("player 3 #[0-9a-f]{6} gets no more work", line) for line in lines), lines
    assert not any(line.startswith(("player 3 left", "player 3 gets")) for line in lines), lines
    assert any("player 3 at 127.0.0.2" in ban["who"] for ban in site.get("/api/v1/bans")["bans"])
    stop(site, job)
    assert not any("player 3 at 127.0.0.1" in ban["who"] for ban in site.get("/api/v1/bans")["bans"])


def check_nobody_plays(site, workers):
    """A budget of time is not used up while nobody is there, and a job without its least workers does not begin."""
    third = site.submit(until_solved=False, seconds=100000, workers_min=1)
    wait_for("its rounds", lambda: site.job(third)["agent"]["version"] > 1)
    for worker in workers:
        worker.end(signal.SIGKILL)
    # What a volunteer had sent before it was killed may be read after its end, and then it counts for one more lease.
    wait_for("a job that waits", lambda: (j := site.job(third))["workers"] == 0 and j["state"] == "waiting")

    def stands():
        spent = site.job(third)["agent"]["seconds"]
        time.sleep(1)
        return site.job(third)["agent"]["seconds"] - spent < 0.2

    wait_for("time that is not counted while nobody plays", stands)
    stop(site, third)


def check_roles(folder):
    """Who may what, where tokens are wanted."""
    site = Site(folder / "closed", "--open", "nobody")
    tokens = {role: site.ask("POST", "/api/v1/tokens", {"role": role, "name": role})[1]["token"] for role in ("viewer", "volunteer", "host")}
    spec = {"kind": "agent", "env": "CartPole-v1", "private": True}
    site.refused(403, "role host", "POST", "/api/v1/jobs", spec, token=tokens["volunteer"])
    status, job = site.ask("POST", "/api/v1/jobs", spec, token=tokens["host"])
    assert status == 201, job
    site.refused(403, "role volunteer", "POST", f"/api/v1/jobs/{job['id']}/play?worker=x", token=tokens["viewer"])
    site.refused(403, "private", "POST", f"/api/v1/jobs/{job['id']}/play?worker=x", token=tokens["volunteer"])
    for path in ("points", "checkpoints", "checkpoints/newest", "checkpoints/newest/episode", "model"):
        site.refused(403, "private", "GET", f"/api/v1/jobs/{job['id']}/{path}", token=tokens["viewer"])
    site.refused(403, "private", "GET", f"/api/v1/jobs/{job['id']}/brief", token=tokens["volunteer"])
    assert site.ask("GET", f"/api/v1/jobs/{job['id']}/points", token=tokens["host"]) == (200, {"points": [], "next": 0})
    assert site.server.end() == 0


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site = Site(folder)
        check_envs(site)
        check_specs(site)
        job, workers = train_with_kills(site, folder)
        check_shown(site, folder, job)
        check_stop_and_resume(site, job)
        check_restart(site, workers)
        check_exact(site, folder)
        check_liar(site)
        check_impostor(site)
        check_nobody_plays(site, workers)
        assert site.server.end() == 0
        check_roles(folder)
    print("ok")


main()
