#!/usr/bin/env python3
"""guards.py SHOAL: what a server must withstand: many requests beside a slow one, a second server, false names, tokens that are
revoked, a stop just before its end.

Every case starts a server in a folder of its own."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

import server as processes
from server import PATIENCE_S, wait_for

SHOAL = sys.argv[1]
MODEL = "input 4\ndense 8 relu\ndense 3\nloss cross-entropy\nepochs 2\nbatch 8\n"
TABLE = "a,b,c,d,kind\n" + "".join(f"{i % 7},{i % 5},{i % 3},{i % 2},{'xyz'[i % 3]}\n" for i in range(900))
HELLO, REFUSE, BEAT, REGISTER, ASSIGN = 1, 3, 20, 22, 23
WORKER, OWNER = 1, 2
started = []


def Server(*arguments, **options):
    started.append(processes.Server(*arguments, **options))
    return started[-1]


def Process(command):
    started.append(processes.Process(command))
    return started[-1]


def volunteer(server, name, folder):
    started.append(processes.Volunteer(SHOAL, server.url, name, folder))
    return started[-1]


def ask(server, method, path, token=None, body=None, headers=None, host="127.0.0.1"):
    """The status, and what came as JSON or as it is."""
    connection = http.client.HTTPConnection(host, server.port, timeout=PATIENCE_S)
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = "Bearer " + token
    if isinstance(body, dict):
        body = json.dumps(body)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    try:
        return answer.status, json.loads(content) if content else None
    except ValueError:
        return answer.status, content


def made(answer, wanted=201):
    status, content = answer
    assert status == wanted, answer
    return content


def finish(server):
    """Ends it as one should, which it must do without a complaint."""
    code = server.end()
    assert code == 0, code


def with_table(server, token=None):
    """Uploads the data set `table`."""
    made(ask(server, "PUT", "/api/v1/datasets/table/files/t.csv", token, TABLE))
    made(ask(server, "POST", "/api/v1/datasets/table", token, {"kind": "csv"}))


class Socket:
    """A WebSocket that was opened, speaking raw messages; `status` says why it was not."""

    def __init__(self, server, path, token=None, host=None):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        head = [f"GET {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{server.port}'}", "Upgrade: websocket", "Connection: Upgrade",
                f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Protocol: shoal-raw"]
        if token:
            head.append("Authorization: Bearer " + token)
        self.socket.sendall("\r\n".join([*head, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = self.socket.recv(1)
            assert more, answer
            answer += more
        self.status = int(answer.split()[1])

    def say(self, kind, payload=b"", count=0):
        head = b"SHL\x01" + struct.pack("<HHQQQQQIII", kind, 0, len(payload), 0, 0, 0, 0, 0, 0, count)
        check = 2166136261
        for byte in head:
            check = (check ^ byte) * 16777619 & 0xFFFFFFFF
        self.socket.sendall(head + struct.pack("<I", check) + payload)

    def take(self, length):
        taken = b""
        while len(taken) < length:
            more = self.socket.recv(length - len(taken))
            if not more:
                return None
            taken += more
        return taken

    def hear(self):
        """The kind of the next message but beats, and its payload; None when the other end is gone."""
        while True:
            try:
                head = self.take(64)
                length = struct.unpack_from("<Q", head, 8)[0] if head else 0
                payload = self.take(length) if head else None
            except ConnectionResetError:
                return None
            if head is None or payload is None:
                return None
            kind = struct.unpack_from("<H", head, 4)[0]
            if kind != BEAT:
                return kind, payload

    def register(self, name, **more):
        self.say(REGISTER, json.dumps({"name": name, "memory_bytes": 1 << 33, "cores": 1, "threads": 1, **more}).encode())

    def assigned(self):
        """What ASSIGN says next."""
        kind, payload = self.hear()
        assert kind == ASSIGN, kind
        return json.loads(payload)

    def close(self):
        self.socket.close()


# ---- cases ----


def a_slow_upload_beside_many_requests(folder):
    """Requests of other connections do not make the server forget who uploads."""
    server = Server(SHOAL, folder)
    slow = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    body = TABLE.encode()
    slow.sendall(f"PUT /api/v1/datasets/table/files/t.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    time.sleep(0.2)

    def many():
        one = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        request, got = b"GET /chunks/" + b"0" * 64 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b""
        for _ in range(100):  # a hundred at a time, two thousand in all
            one.sendall(request * 20)
            count = 0
            while count < 20:
                got = got[-9:] + one.recv(65536)
                count += got.count(b"HTTP/1.1 ")
                got = got[-8:]
        one.close()

    threads = [threading.Thread(target=many) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slow.sendall(body)
    answer = slow.recv(4096)
    slow.close()
    assert answer.startswith(b"HTTP/1.1 201"), answer
    finish(server)


def a_second_server_is_refused(folder):
    """It takes neither the folder nor the store, and leaves an upload that is under way alone."""
    server = Server(SHOAL, folder)
    slow = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    slow.sendall(b"PUT /api/v1/datasets/table/files/t.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
    time.sleep(0.3)
    other = os.path.join(folder, "other")
    for options in (["--data-dir", folder], ["--data-dir", other, "--store", os.path.join(folder, "shoal.db")]):
        second = subprocess.run([SHOAL, "serve", "--listen", "127.0.0.1:0", *options], capture_output=True, text=True, timeout=PATIENCE_S)
        assert second.returncode != 0 and f"another server (pid {server.process.pid}) uses" in second.stderr, second
    slow.sendall(b"67890")
    answer = slow.recv(4096)
    slow.close()
    assert answer.startswith(b"HTTP/1.1 201"), answer
    server.end(signal.SIGKILL)
    finish(Server(SHOAL, folder))  # a lock goes with its process


def a_foreign_page_opens_no_websocket(folder):
    """A page of another site, or one under another name for this machine, is not let in without a token."""
    server = Server(SHOAL, folder)
    for host, wanted in (("evil.example", 403), ("evil.example:80", 403), ("localhost:1", 101), (None, 101)):
        one = Socket(server, "/work", host=host)
        assert one.status == wanted, (host, one.status)
        one.close()
    finish(server)


def names_do_not_make_owners(folder):
    """A viewer or a volunteer that is called like a host sees nothing of the host's, nor does the list of all."""
    server = Server(SHOAL, folder, "--open", "nobody")
    token = lambda role, name, **more: made(ask(server, "POST", "/api/v1/tokens", server.admin, {"role": role, "name": name, **more}))["token"]
    ann, viewer, volunteer = token("host", "Ann"), token("viewer", "Ann"), token("volunteer", "Ann")
    with_table(server, ann)
    job = made(ask(server, "POST", "/api/v1/jobs", ann, {"name": "hidden", "model": MODEL, "data": "table", "private": True}))["id"]
    for who in (viewer, volunteer):
        assert ask(server, "GET", f"/api/v1/jobs/{job}", who)[0] == 403
        assert made(ask(server, "GET", "/api/v1/jobs", who), 200)["jobs"] == []
        assert b"job=" not in ask(server, "GET", "/metrics", who)[1]
    assert b'job="1"' in ask(server, "GET", "/metrics", ann)[1]
    # A host's own volunteer is invited, as it would be let in.
    for who, wanted in ((volunteer, False), (ann, True)):
        one = Socket(server, "/work", who)
        one.register("pc", job=job)
        text = one.assigned()["text"]
        assert ("prepared" in text or "works for" in text or "waits" in text) == wanted, text
        one.close()
    workers = made(ask(server, "GET", "/api/v1/workers", viewer), 200)["workers"]
    one = Socket(server, "/work", volunteer)
    one.register("pc")
    wait_for("a worker", lambda: made(ask(server, "GET", "/api/v1/workers", viewer), 200)["workers"])
    for who, sees in ((viewer, False), (ann, False), (server.admin, True)):
        workers = made(ask(server, "GET", "/api/v1/workers", who), 200)["workers"]
        assert all(("address" in worker) == sees for worker in workers), workers
    one.close()
    # Who watches everything hears nothing of a private job that goes.
    made(ask(server, "POST", f"/api/v1/jobs/{job}/stop", ann), 200)
    wait_for("the stop", lambda: made(ask(server, "GET", f"/api/v1/jobs/{job}", ann), 200)["state"] == "stopped")
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    stream.request("GET", "/api/v1/live", headers={"Authorization": "Bearer " + viewer})
    answer = stream.getresponse()
    public = made(ask(server, "POST", "/api/v1/jobs", ann, {"name": "open", "model": MODEL, "data": "table"}))["id"]
    made(ask(server, "POST", f"/api/v1/jobs/{public}/stop", ann), 200)
    made(ask(server, "DELETE", f"/api/v1/jobs/{job}", ann), 204)
    made(ask(server, "DELETE", f"/api/v1/jobs/{public}", ann), 204)
    gone = []
    while public not in gone:
        line = answer.readline().decode()
        if line.startswith("data:") and '"gone"' in line and '"changed"' in line:
            gone += json.loads(line[5:])["gone"]
    assert job not in gone, gone
    stream.close()
    finish(server)


def open_with_token(server, **more):
    """A new token, a WebSocket that is registered, and a stream with its answer."""
    token = made(ask(server, "POST", "/api/v1/tokens", server.admin, {"role": "volunteer", "name": "a", **more}))
    one = Socket(server, "/work", token["token"])
    assert one.status == 101, one.status
    one.register("pc")
    assert (said := one.hear()) and said[0] == ASSIGN and json.loads(said[1])["job"] == 0, said
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    stream.request("GET", "/api/v1/live", headers={"Authorization": "Bearer " + token["token"]})
    answer = stream.getresponse()
    assert answer.status == 200, answer.status
    return token, one, (stream, answer)


def open_before_it_expires(server):
    """The same with a token that expires soon; where the machine was too slow for that, with one that lasts longer."""
    for seconds in (5, 25, 125):
        try:
            return open_with_token(server, days=seconds / 86400)
        except (AssertionError, OSError):
            if seconds == 125:
                raise


def a_revoked_token_ends_what_it_opened(folder):
    """Its WebSockets and its streams, and those of one that expires."""
    server = Server(SHOAL, folder, "--open", "nobody")
    opened = [open_with_token(server), open_with_token(server), open_before_it_expires(server)]
    tokens, sockets, streams = zip(*opened)
    made(ask(server, "DELETE", f"/api/v1/tokens/{tokens[0]['id']}", server.admin), 204)
    for i in (0, 2):
        assert sockets[i].hear() is None
        while streams[i][1].readline():
            pass
    sockets[1].register("pc again")  # the one that was kept is still heard
    wait_for("the new name", lambda: any(w["name"] == "pc again" for w in made(ask(server, "GET", "/api/v1/workers", server.admin), 200)["workers"]))
    for one in sockets:
        one.close()
    for stream, _ in streams:
        stream.close()
    finish(server)


def tokens_are_found_behind_the_first_thousand(folder):
    server = Server(SHOAL, folder, "--open", "nobody")
    made(ask(server, "POST", "/api/v1/tokens", server.admin, {"role": "viewer", "name": "short", "days": 1e-6}))
    for _ in range(1005):
        last = made(ask(server, "POST", "/api/v1/tokens", server.admin, {"role": "viewer", "name": "x"}))
    seen, after = [], 0
    while after is not None:
        page = made(ask(server, "GET", f"/api/v1/tokens?after={after}&limit=400", server.admin), 200)
        seen += [row["id"] for row in page["tokens"]]
        after = page["next"]
    assert last["id"] in seen and len(seen) == len(set(seen)) == 1006, len(seen)
    assert ask(server, "DELETE", f"/api/v1/tokens/{last['id']}", server.admin)[0] == 204
    assert ask(server, "GET", "/api/v1/server", last["token"])[0] == 401
    finish(server)


def only_who_was_given_a_job_gets_to_its_chief(folder):
    """By the number that ASSIGN told, or by the very name that it gave; never as a parameter server."""
    server = Server(SHOAL, folder)
    with_table(server)
    job = made(ask(server, "POST", "/api/v1/jobs", None, {"name": "j", "model": MODEL, "data": "table", "workers_max": 2}))["id"]
    long_name = "a name that has just thirty-two "[:31] + "!"
    one, two = Socket(server, "/work"), Socket(server, "/work")
    one.register(long_name)
    told = one.assigned()
    while told["job"] != job:
        told = one.assigned()
    two.register("Ann Smith")
    second = two.assigned()
    while second["job"] != job:
        second = two.assigned()

    def hello(path, name, role=WORKER):
        peer = Socket(server, path)
        assert peer.status == 101, peer.status
        peer.say(HELLO, name.encode(), role)
        answer = peer.hear()
        peer.close()
        return answer is not None and answer[0] == 2  # WELCOME

    chief = f"/jobs/{job}/chief"
    assert not hello(chief, "Eve")
    assert not hello(chief, "Ann")  # the beginning of a name is not the name
    assert not hello(f"{chief}?worker={told['worker']}", "Ann Smith x")
    assert not hello(f"{chief}?worker={second['worker']}", "Ann Smith", OWNER)
    assert Socket(server, f"{chief}?worker=x").status == 400
    assert hello(f"{chief}?worker={second['worker']}", "Ann Smith")
    assert hello(f"{chief}?worker={told['worker']}", long_name)
    one.close()
    two.close()
    finish(server)


def a_volunteer_is_told_what_is_new_and_no_more(folder):
    server = Server(SHOAL, folder)
    with_table(server)
    made(ask(server, "POST", "/api/v1/jobs", None, {"name": "j", "model": MODEL, "data": "table", "workers_min": 3}))
    one = Socket(server, "/work")
    one.register("pc")
    assert "1 of at least 3" in one.assigned()["text"]
    one.socket.settimeout(1.5)
    try:
        said = one.hear()
        raise AssertionError(said)
    except TimeoutError:
        pass
    one.socket.settimeout(PATIENCE_S)
    one.register("pc")  # who says anew what it is hears anew what it is to do
    assert "1 of at least 3" in one.assigned()["text"]
    other = Socket(server, "/work")
    other.register("pc")
    assert "2 of at least 3" in other.assigned()["text"]
    assert "2 of at least 3" in one.assigned()["text"]
    one.close()
    other.close()
    finish(server)


def chunks_are_not_counted_as_requests(folder):
    """From another machine's address, as far as this one has such an address."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 9))
        address = probe.getsockname()[0]
    except OSError:
        address = "127.0.0.1"
    probe.close()
    if address.startswith("127."):
        print("  (no address but the loopback: not tried)")
        return
    server = Process([SHOAL, "serve", "--listen", "0.0.0.0:0", "--data-dir", folder, "--open", "nobody", "--json"])
    ready = json.loads(server.first_line())
    server.port = int(ready["url"].rsplit(":", 1)[1])
    link = ready.get("admin_link") or open(ready["admin_link_file"]).read().strip()
    admin = link.split("#t=")[1].split("&")[0]
    with_table(server, admin)
    chunk = made(ask(server, "GET", "/api/v1/datasets/table/manifest", admin), 200)["files"][0]["chunks"][0]
    connection = http.client.HTTPConnection(address, server.port, timeout=PATIENCE_S)
    statuses = []
    for _ in range(600):
        connection.request("GET", "/chunks/" + chunk, headers={"Authorization": "Bearer " + admin})
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    assert set(statuses) == {200}, statuses
    # Others are limited by how many come in a second: twenty at a time, which is too many on a slow machine as well.
    one = socket.create_connection((address, server.port), timeout=PATIENCE_S)
    request = f"GET /api/v1/server HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {admin}\r\n\r\n".encode()
    got = b""
    for batch in range(1, 101):
        one.sendall(request * 20)
        while got.count(b"HTTP/1.1 ") < 20 * batch and b"HTTP/1.1 429" not in got:
            more = one.recv(65536)
            assert more, got[-999:]
            got += more
        if b"HTTP/1.1 429" in got:
            break
    one.close()
    assert b"HTTP/1.1 429" in got, got[-999:]
    finish(server)


def a_stop_outlives_the_server(folder):
    """Stopped, and the server ended at once: the job is stopped when it starts again."""
    server = Server(SHOAL, folder)
    with_table(server)
    model = MODEL.replace("epochs 2", "epochs 100000")
    job = made(ask(server, "POST", "/api/v1/jobs", None, {"name": "j", "model": model, "data": "table"}))["id"]
    worker = volunteer(server, "ann", folder)
    show = lambda: made(ask(server, "GET", f"/api/v1/jobs/{job}"), 200)
    steps = 20
    for number in (signal.SIGKILL, signal.SIGTERM):
        wait_for("some rounds", lambda: show()["progress"]["step"] > steps)
        made(ask(server, "POST", f"/api/v1/jobs/{job}/stop"), 200)
        server.end(number)
        server = Server(SHOAL, folder, port=server.port)
        assert show()["state"] == "stopped", show()
        assert show()["spec"]["model"].startswith("input 4"), show()["spec"]
        steps = show()["progress"]["step"]
        made(ask(server, "POST", f"/api/v1/jobs/{job}/resume"), 200)
    worker.end()
    finish(server)


def a_ban_that_is_lifted_gives_work_at_once(folder):
    """To a volunteer that is connected, and does nothing but listen; until then it hears why it gets none."""
    server = Server(SHOAL, folder, "--open", "nobody")
    bob = made(ask(server, "POST", "/api/v1/tokens", server.admin, {"role": "volunteer", "name": "bob"}))
    with_table(server, server.admin)
    admin = server.admin
    finish(server)
    with sqlite3.connect(os.path.join(folder, "shoal.db")) as store:
        store.execute("INSERT INTO standings (id, who, agreed, wrong, banned, reason, job, changed) VALUES (7, ?, 3, 1, 1, 'pc: a lie', 0, 5.5)",
                      (f"token {bob['id']}",))
    store.close()
    server = Server(SHOAL, folder, "--open", "nobody")
    bans = made(ask(server, "GET", "/api/v1/bans", admin), 200)["bans"]
    assert bans[0]["who"] == f"token {bob['id']} (bob)" and bans[0]["reason"] == "pc: a lie", bans
    job = made(ask(server, "POST", "/api/v1/jobs", admin, {"name": "j", "model": MODEL, "data": "table"}))["id"]
    one = Socket(server, "/work", bob["token"])
    one.register("pc")
    told = one.assigned()
    assert told["job"] == 0 and "were wrong" in told["text"], told
    made(ask(server, "DELETE", "/api/v1/bans/7", admin), 204)
    one.socket.settimeout(PATIENCE_S)
    while told["job"] != job:
        told = one.assigned()
    one.close()
    finish(server)


def contributions_and_curves_are_whole(folder):
    """Every sample of every epoch is somebody's, also of those who left; every round has its point, and so has every epoch."""
    server = Server(SHOAL, folder)
    with_table(server)
    epochs = 5
    job = made(ask(server, "POST", "/api/v1/jobs", None, {"name": "j", "model": MODEL, "data": "table", "epochs": epochs, "guard": False}))["id"]
    began = time.monotonic()
    ann = volunteer(server, "ann", folder)
    show = lambda: made(ask(server, "GET", f"/api/v1/jobs/{job}"), 200)
    wait_for("the first rounds", lambda: show()["progress"]["step"] > 5)
    bob = volunteer(server, "bob", folder)
    workers = lambda: made(ask(server, "GET", f"/api/v1/jobs/{job}/workers"), 200)["workers"]
    wait_for("bob's work", lambda: len(workers()) == 2 or show()["state"] == "finished")
    ann.end()
    wait_for("the end", lambda: show()["state"] == "finished")
    took = time.monotonic() - began
    done = workers()
    assert abs(sum(w["samples"] for w in done) - show()["samples"] * epochs) <= len(done), (done, show()["samples"])
    for worker in done:
        assert 0 < worker["seconds"] < took and 0 < worker["units"] <= worker["samples"], (worker, took)
    history = made(ask(server, "GET", f"/api/v1/jobs/{job}/history"), 200)
    rounds = show()["rounds"]
    assert [point[0] for point in history["rounds"]] == list(range(1, rounds * epochs + 1)), len(history["rounds"])
    assert [(e["epoch"], e["step"]) for e in history["epochs"]] == [(e, e * rounds) for e in range(1, epochs + 1)], history["epochs"]
    bob.end()
    finish(server)


def errors_keep_the_servers_folders_to_themselves(folder):
    """What is wrong on the server stands in its log, and callers hear only that something is."""
    server = Server(SHOAL, folder)
    with_table(server)
    chunk = made(ask(server, "GET", "/api/v1/datasets/table/manifest"), 200)["files"][0]["chunks"][0]
    with open(os.path.join(folder, "data", "sets", "table", "t.csv"), "r+b") as file:
        file.write(b"X")
    shutil.move(os.path.join(folder, "data", "sets", "table"), os.path.join(folder, "moved"))
    for path in ("/chunks/" + chunk, "/api/v1/datasets/table/manifest"):
        status, answer = ask(server, "GET", path)
        assert status == 500 and folder not in json.dumps(answer), answer
        with open(server.printed.name) as log:
            lines = [json.loads(line) for line in log if '"error"' in line]
        assert lines[-1]["path"] == path and folder in lines[-1]["what"], lines
    finish(server)


def models_are_replaced_in_one_step(folder):
    """An admin's change leaves a model its owner's; the audit log has what came of it."""
    server = Server(SHOAL, folder, "--open", "nobody")
    ann = made(ask(server, "POST", "/api/v1/tokens", server.admin, {"role": "host", "name": "Ann"}))["token"]
    made(ask(server, "PUT", "/api/v1/models/mine", ann, {"text": MODEL}))
    replaced = made(ask(server, "PUT", "/api/v1/models/mine", server.admin, {"text": MODEL.replace("dense 8", "dense 9")}), 200)
    assert replaced["owner"] == "Ann" and replaced["weights"] == 4 * 9 + 9 + 9 * 3 + 3, replaced
    assert ask(server, "PUT", "/api/v1/models/lenet5", ann, {"text": MODEL})[0] == 409
    # An admin seals what a host has uploaded; it stays the host's.
    made(ask(server, "PUT", "/api/v1/datasets/table/files/t.csv", ann, TABLE))
    assert made(ask(server, "POST", "/api/v1/datasets/table", server.admin, {"kind": "csv"}))["owner"] == "Ann"
    said = [entry["what"] for entry in made(ask(server, "GET", "/api/v1/audit", server.admin), 200)["entries"]]
    for what in ("PUT /api/v1/models/mine: 201", "PUT /api/v1/models/mine: 200", "PUT /api/v1/models/lenet5: 409",
                 "POST /api/v1/datasets/table: 201"):
        assert what in said, said
    finish(server)


def a_name_that_is_too_long_is_refused_with_its_limit(folder):
    """One that is as long as it may be is kept whole."""
    server = Server(SHOAL, folder)
    workers = lambda: made(ask(server, "GET", "/api/v1/workers"), 200)["workers"]
    for name, more, limit in (("ü" * 16 + "x", {}, "32 bytes"), ("pc", {"host": "h" * 64}, "63 bytes")):
        one = Socket(server, "/work")
        one.register(name, **more)
        said = one.assigned()
        assert said["job"] == 0 and "too long" in said["text"] and limit in said["text"], said
        assert one.hear() is None
        one.close()
    assert workers() == []
    one = Socket(server, "/work")
    one.register("ü" * 16)
    one.assigned()
    assert [worker["name"] for worker in workers()] == ["ü" * 16], workers()
    one.close()
    for body, limit in (({"role": "host", "name": "ü" * 32}, "63 bytes"), ({"role": "host", "name": "x" * 60, "count": 2}, "59 bytes")):
        status, answer = ask(server, "POST", "/api/v1/tokens", None, body)[:2]
        assert status == 422 and limit in str(answer), answer
    finish(server)


def a_server_without_an_admin_makes_one(folder):
    server = Server(SHOAL, folder, "--open", "nobody")
    made(ask(server, "POST", "/api/v1/tokens", server.admin, {"role": "host", "name": "Ann"}))
    admins = [row["id"] for row in made(ask(server, "GET", "/api/v1/tokens", server.admin), 200)["tokens"] if row["role"] == "admin"]
    made(ask(server, "DELETE", f"/api/v1/tokens/{admins[0]}", server.admin), 204)
    finish(server)
    server = Server(SHOAL, folder, "--open", "nobody")
    assert server.admin and ask(server, "GET", "/api/v1/audit", server.admin)[0] == 200
    finish(server)


def nobody_speaks_of_a_unit_that_another_has(folder):
    """Results, failures, beats and states of a search's units count only with the ticket that came with the unit, under any name;
    and nothing counts of who is banned."""
    server = Server(SHOAL, folder, "--open", "nobody")
    admin = server.admin
    token = lambda name: made(ask(server, "POST", "/api/v1/tokens", admin, {"role": "volunteer", "name": name}))
    ann, eve = token("ann"), token("eve")
    with_table(server, admin)
    job = made(ask(server, "POST", "/api/v1/jobs", admin, {"kind": "search", "name": "s", "data": "table", "target": "kind", "trials": 40,
                                                           "budget_s": 0, "epochs": 2}))["id"]
    one = Socket(server, "/work", ann["token"])
    one.register("pc")

    def take(who):
        answer = ask(server, "POST", f"/api/v1/jobs/{job}/units", who["token"], {"worker": who["name"]})
        return answer[1] if answer[0] == 200 else None

    unit = wait_for("a unit", lambda: take(ann))
    other = wait_for("another unit", lambda: take(eve))
    result = {"score": 1.0, "loss": 0.0, "epochs": 2, "seconds": 0.1, "scores": {}}
    path = f"/api/v1/jobs/{job}/units/{unit['unit']}"
    for ticket in ("", "0" * 48, unit["ticket"][:-1] + "x", other["ticket"]):
        body = {"attempt": unit["attempt"], "ticket": ticket, "worker": "ann"}
        for what, more in (("result", {"result": result}), ("failed", {"why": "no"}), ("failed", {"given_back": True}), ("beat", {})):
            status, answer = ask(server, "POST", f"{path}/{what}", eve["token"], {**body, **more})
            assert status == 403 and answer["error"]["field"] == "ticket", (what, ticket, status, answer)
        status, answer = ask(server, "PUT", f"{path}/state?attempt={unit['attempt']}&ticket={ticket}", eve["token"], b"x")
        assert status == 403, (ticket, status, answer)
    mine = {"attempt": unit["attempt"], "ticket": unit["ticket"], "worker": "ann"}
    status, answer = ask(server, "POST", f"{path}/beat", ann["token"], {"attempt": unit["attempt"]})
    assert status == 400 and answer["error"]["field"] == "ticket", (status, answer)
    made(ask(server, "POST", f"{path}/beat", ann["token"], mine), 204)
    assert ask(server, "POST", f"{path}/beat", ann["token"], {**mine, "attempt": unit["attempt"] + 1})[0] == 403
    server.end(signal.SIGKILL)
    with sqlite3.connect(os.path.join(folder, "shoal.db")) as store:
        store.execute("INSERT INTO standings (id, who, agreed, wrong, banned, reason, job, changed) VALUES (7, ?, 3, 1, 1, 'pc: a lie', 0, 5.5)",
                      (f"token {eve['id']}",))
    store.close()
    # Tickets are good after a restart; those of who was banned since are not.
    server = Server(SHOAL, folder, "--open", "nobody")
    one = Socket(server, "/work", ann["token"])
    one.register("pc")
    wait_for("the table", lambda: ask(server, "POST", f"{path}/beat", ann["token"], mine)[0] == 204)
    status, answer = ask(server, "POST", f"/api/v1/jobs/{job}/units/{other['unit']}/beat", eve["token"],
                         {"attempt": other["attempt"], "ticket": other["ticket"]})
    assert status == 403 and "were wrong" in answer["error"]["text"], (status, answer)
    status, answer = ask(server, "POST", f"/api/v1/jobs/{job}/units", eve["token"], {"worker": "ann"})
    assert status == 403 and "were wrong" in answer["error"]["text"], (status, answer)
    made(ask(server, "POST", f"{path}/failed", ann["token"], {**mine, "given_back": True}), 204)
    one.close()
    finish(server)


def a_training_that_was_killed_keeps_its_best_epoch(folder):
    """Also where the kill came after the best epoch was saved, and before the model was."""
    rows = "a,b,c,d,kind\n" + "".join(f"{i * 7 % 13},{i * 11 % 17},{i * 5 % 19},{i % 2},{'xyz'[i * i * 31 % 101 % 3]}\n" for i in range(300))
    with open(os.path.join(folder, "t.csv"), "w") as file:
        file.write(rows)
    for epochs in (100, 400, 1600):  # a fast machine may be through before the server is killed
        model = ("input 4\ndense 64 relu\ndense 3\nloss cross-entropy\noptimizer adam rate 0.02\nbatch 8\n"
                 f"epochs {epochs}\nearly-stop {epochs}\n")
        with open(os.path.join(folder, "m.net"), "w") as file:
            file.write(model)
        alone = subprocess.run([SHOAL, "train", "m.net", "--data", "t.csv", "--valid", "0.3", "--json"], cwd=folder, capture_output=True,
                               text=True, check=True).stdout
        events = [json.loads(line) for line in alone.splitlines()]
        losses = [event["valid_loss"] for event in events if event["event"] == "epoch"]
        best = losses.index(min(losses)) + 1
        server = Server(SHOAL, folder)
        data = f"table-{epochs}"
        made(ask(server, "PUT", f"/api/v1/datasets/{data}/files/t.csv", None, rows))
        made(ask(server, "POST", f"/api/v1/datasets/{data}", None, {"kind": "csv"}))
        job = made(ask(server, "POST", "/api/v1/jobs", None, {"name": "j", "model": model, "data": data, "valid": 0.3, "guard": False}))["id"]
        ann = volunteer(server, f"ann-{epochs}", folder)
        show = lambda: made(ask(server, "GET", f"/api/v1/jobs/{job}"), 200)
        wait_for("epochs after the best one", lambda: show()["progress"]["epoch"] > best + 2)
        server.end(signal.SIGKILL)
        state = os.path.join(folder, "jobs", str(job))
        if os.path.exists(os.path.join(state, "model.best.safetensors")):
            break
        ann.end(signal.SIGKILL)
    os.unlink(os.path.join(state, "model.safetensors"))
    server = Server(SHOAL, folder, port=server.port)
    wait_for("the end", lambda: show()["state"] == "finished", lambda: show()["progress"]["step"])
    assert show()["sha256"] == events[-1]["weights_sha256"], (show(), events[-1])
    ann.end()
    finish(server)


CASES = [a_slow_upload_beside_many_requests, a_second_server_is_refused, a_foreign_page_opens_no_websocket, names_do_not_make_owners,
         a_revoked_token_ends_what_it_opened, tokens_are_found_behind_the_first_thousand, only_who_was_given_a_job_gets_to_its_chief,
         a_volunteer_is_told_what_is_new_and_no_more, a_ban_that_is_lifted_gives_work_at_once, chunks_are_not_counted_as_requests, a_stop_outlives_the_server,
         contributions_and_curves_are_whole, errors_keep_the_servers_folders_to_themselves, models_are_replaced_in_one_step,
         a_name_that_is_too_long_is_refused_with_its_limit, a_server_without_an_admin_makes_one,
         nobody_speaks_of_a_unit_that_another_has, a_training_that_was_killed_keeps_its_best_epoch]


def main():
    wanted = sys.argv[2:]
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        folder = tempfile.mkdtemp(prefix="shoal-guards-")
        began = time.monotonic()
        try:
            case(folder)
        finally:
            for process in started:
                if process.process.poll() is None:
                    process.end(signal.SIGKILL)
            started.clear()
            shutil.rmtree(folder)
        print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)


main()
