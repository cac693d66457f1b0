#!/usr/bin/env python3
"""api.py SHOAL OPENAPI: every route of a server, asked rightly and wrongly.

Starts `shoal serve` with tokens wanted, in a folder of its own, on the store of SHOAL_TEST_STORE or SQLite. Every route of
the OpenAPI file is asked without a token, with a wrong, malformed and expired one, with every role, with bodies that are
no JSON, of the wrong kind and too large; the status must be right, the answer a JSON error, and nothing changed."""
import http.client
import itertools
import json
import os
import re
import signal
import sqlite3
import sys
import tempfile
import time

from server import PATIENCE_S, Server

SHOAL, OPENAPI = sys.argv[1:3]
ROLES = ["metrics", "viewer", "volunteer", "host", "admin"]
MODEL = "input 4\ndense 8 relu\ndense 3\nloss cross-entropy\nepochs 2\nbatch 8\n"
TABLE = "a,b,c,d,kind\n" + "".join(f"{i % 7},{i % 5},{i % 3},{i % 2},{'xyz'[i % 3]}\n" for i in range(90))
failures = []
addresses = itertools.cycle(range(2, 250))  # wrong tokens are counted by address


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


class Site:
    """A server that wants tokens, which can be stopped and started again."""

    def __init__(self, folder):
        self.folder = folder
        self.start()
        self.admin = self.server.admin
        link = os.path.join(folder, "admin.link")
        check(os.stat(link).st_mode & 0o777 == 0o600, "others may read the admin's link")

    def start(self):
        store = os.environ.get("SHOAL_TEST_STORE")
        self.server = Server(SHOAL, self.folder, "--open", "nobody", *(["--store", store] if store else []))
        self.port = self.server.port

    def stop(self, number=signal.SIGTERM):
        return self.server.end(number)

    def ask(self, method, path, token=None, body=None, headers=None, raw=False):
        host = f"127.0.0.{next(addresses)}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S, source_address=(host, 0))
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        stream = answer.getheader("Content-Type", "").startswith("text/event-stream")
        content = b"" if stream else answer.read()
        connection.close()
        if raw:
            return answer.status, content, answer
        try:
            return answer.status, json.loads(content) if content else None
        except ValueError:
            return answer.status, content


def filled(path, values):
    return re.sub(r"\{(\w+)\}", lambda m: str(values[m.group(1)]), path)


def is_error(answer, status):
    return isinstance(answer, dict) and set(answer) == {"error"} and answer["error"]["text"] and answer["error"]["code"] and status >= 400


def state_of(server, token):
    """What must not change: everything that can be listed."""
    return {
        path: server.ask("GET", "/api/v1/" + path, token)[1]
        for path in ("jobs", "models", "datasets", "tokens")
    }


def check_routes(server, tokens, values, routes):
    before = state_of(server, server.admin)
    for path, method, operation in routes:
        where = f"{method} {path}"
        target = filled(path, values)
        if operation["x-role"] == "nobody":
            for token in (None, "A" * 22, tokens["viewer"]):
                check(server.ask(method, target, token)[0] == 200, f"{where} is not for everybody")
            continue
        needed = ROLES.index(operation["x-role"])
        for token, what in ((None, "no token"), ("A" * 22, "a wrong token"), ("short", "a malformed token"),
                            (tokens["expired"], "an expired token"), (tokens["revoked"], "a revoked token")):
            status, answer = server.ask(method, target, token)
            check(status == 401 and is_error(answer, status), f"{where} with {what}: {status} {answer}")
        for role in ROLES[:needed]:
            status, answer = server.ask(method, target, tokens[role])
            check(status == 403 and is_error(answer, status), f"{where} as {role}: {status} {answer}")
        for role in ROLES[needed:]:
            if method in ("GET",):
                status, _, _ = server.ask(method, target, tokens[role], raw=True)
                check(status in (200, 404) or str(status) in operation["responses"], f"{where} as {role}: {status}")
    check(state_of(server, server.admin) == before, "refused requests changed something")


def check_bodies(server, values, routes):
    before = state_of(server, server.admin)
    for path, method, operation in routes:
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" not in content:
            continue
        required = operation["requestBody"]["required"]
        where, target = f"{method} {path}", filled(path, values)
        for body, what in (("{", "half a JSON"), ("[1,2]", "a list"), ("\x00\xff", "no text"), ('"a"', "a text"),
                           ("[" * 60000, "a deep nest")):
            status, answer = server.ask(method, target, server.admin, body.encode("latin-1"))
            check(status in (400, 422) and is_error(answer, status), f"{where} with {what}: {status} {answer}")
        if required:
            status, answer = server.ask(method, target, server.admin, b"")
            check(status in (400, 422) and is_error(answer, status), f"{where} without a body: {status} {answer}")
            status, answer = server.ask(method, target, server.admin, {"role": 3, "text": 5, "kind": [], "model": {}, "name": 1})
            check(status in (400, 422) and is_error(answer, status), f"{where} with wrong kinds: {status} {answer}")
        # The head says 3 MB, and nothing follows: the answer does not wait for it.
        status, answer = server.ask(method, target, server.admin, headers={"Content-Length": str(3 << 20)})
        check(status == 413 and is_error(answer, status), f"{where} with 3 MB: {status} {str(answer)[:99]}")
    check(state_of(server, server.admin) == before, "wrong bodies changed something")


def check_methods(server):
    for method, path, wanted in (("PATCH", "/api/v1/jobs", 405), ("PUT", "/api/v1/jobs", 405), ("GET", "/api/v1/nothing", 404),
                                 ("GET", "/api/v2/jobs", 404), ("DELETE", "/api/v1/server", 405), ("GET", "/api/v1/jobs/x", 404),
                                 ("GET", "/api/v1/jobs/99999", 404), ("GET", "/api/v1/jobs/0/log", 404), ("GET", "/api/v1/jobs/x/swarm", 404), ("GET", "/api/v1/jobs/99999/swarm", 404),
                                 ("POST", "/api/v1/bans", 405), ("GET", "/api/v1/bans/1", 405), ("DELETE", "/api/v1/bans/", 404), ("GET", "/app.php", 404),
                                 ("GET", "/api/v1/jobs?limit=x", 400), ("GET", "/api/v1/jobs?state=x", 400), ("GET", "/chunks/x", 422), ("GET", "/chunks/" + "0" * 64, 404)):
        status, answer = server.ask(method, path, server.admin)
        check(status == wanted, f"{method} {path}: {status} {answer}")
    for path, allowed in (("/api/v1/jobs", "GET, HEAD, POST"), ("/api/v1/jobs/7/stop", "POST"), ("/host", "GET, HEAD")):
        status, _, answer = server.ask("PUT", path, server.admin, raw=True)
        check(status == 405 and answer.getheader("Allow") == allowed, f"PUT {path}: {status} {answer.getheader('Allow')}")


def check_many(server, tokens):
    """Many invitations at once: numbered names, each with a link of its own, all or none; the audit log says what was made."""
    def listed():
        return [row["name"] for row in server.ask("GET", "/api/v1/tokens", tokens["admin"])[1]["tokens"]]
    before = len(listed())
    wanted = {"role": "volunteer", "name": "lab", "days": 3}
    status, made = server.ask("POST", "/api/v1/tokens", tokens["admin"], {**wanted, "count": 12})
    check(status == 201, f"many invitations: {status} {made}")
    check([one["name"] for one in made["tokens"]] == [f"lab {i}" for i in range(1, 13)], f"their names: {made}")
    check(len({one["link"] for one in made["tokens"]}) == 12, f"their links: {made}")
    check(len(listed()) == before + 12, f"there are {len(listed())} tokens, there were {before}")
    check(server.ask("GET", "/api/v1/jobs", made["tokens"][7]["token"])[0] == 200, "one of many does not work")
    for count in (0, 501, 2.5, "3"):
        status, answer = server.ask("POST", "/api/v1/tokens", tokens["admin"], {**wanted, "count": count})
        check(status == 422 and answer["error"]["field"] == "count", f"count {count}: {status} {answer}")
    status, answer = server.ask("POST", "/api/v1/tokens", tokens["admin"], {**wanted, "job": 10**9, "count": 5})
    check(status == 422 and len(listed()) == before + 12, f"of five for no job some were made: {answer}")
    audit = [row["what"] for row in server.ask("GET", "/api/v1/audit", tokens["admin"])[1]["entries"]]
    check("POST /api/v1/tokens: 201 (12, volunteer, lab)" in audit, f"the audit log: {audit[:20]}")
    for one in made["tokens"]:
        server.ask("DELETE", f"/api/v1/tokens/{one['id']}", tokens["admin"])
    audit = [row["what"] for row in server.ask("GET", "/api/v1/audit", tokens["admin"])[1]["entries"]]
    check(f"DELETE /api/v1/tokens/{one['id']}: 204 (volunteer, lab 12)" in audit, f"the audit log: {audit[:20]}")
    points = server.ask("GET", "/api/v1/throughput", tokens["viewer"])[1]["points"]
    check(all(len(point) == 2 for point in points) and points == sorted(points), f"the throughput: {points}")


def check_jobs(server, tokens, fields):
    job = {"name": "first", "model": MODEL, "data": "table", "epochs": 3, "rate": 0.1}
    for change, field in (({"epochs": 0}, "epochs"), ({"epochs": "x"}, "epochs"), ({"rate": -1}, "rate"), ({"batch": 1.5}, "batch"),
                          ({"mode": "quick"}, "mode"), ({"wire": "f16"}, "wire"), ({"wire": "topk:0.02"}, "wire"), ({"workers_min": 0}, "workers_min"),
                          ({"workers_min": 5, "workers_max": 2}, "workers_max"), ({"data": "nothing"}, "data"), ({"name": "a/b"}, "name"), ({"name": "x" * 65}, "name"), ({"name": "on toy:wave"}, "name"),
                          ({"valid": 2}, "valid"), ({"private": 1}, "private"), ({"guard": 1}, "guard"), ({"guard": "no"}, "guard"), ({"rule": "best"}, "rule"), ({"rule": "trimmed:0.7"}, "rule"), ({"rule": 1}, "rule"),
                          ({"rule": "median", "mode": "async"}, "rule"), ({"shuffle": "some"}, "shuffle"), ({"shuffle": 1}, "shuffle"), ({"augment": "turn"}, "augment"), ({"model": "input 4\nconvolve 3\n"}, "model"),
                          ({"colour": "red"}, "colour"), ({"model": None}, "model")):
        status, answer = server.ask("POST", "/api/v1/jobs", tokens["host"], {**job, **change})
        check(status == 422 and answer["error"].get("field") == field, f"a job with {change}: {status} {answer}")
    status, answer = server.ask("POST", "/api/v1/jobs", tokens["host"], {**job, "model": "input 4\n dens 3\n"})
    check(answer["error"].get("line") == 2, f"the line of a wrong model: {answer}")
    status, made = server.ask("POST", "/api/v1/jobs", tokens["host"], job)
    check(status == 201 and made["state"] == "waiting" and made["host"] == "a host" and made["spec"]["epochs"] == 3, f"a job: {status} {made}")
    check(made["spec"]["guard"] is True and made["spec"]["rule"] == "mean" and made["guard"]["on"] is True, f"a job that nobody said more of: {made}")
    number = made["id"]
    check(server.ask("DELETE", f"/api/v1/jobs/{number}", tokens["host"])[0] == 409, "an open job was deleted")
    check(server.ask("POST", f"/api/v1/jobs/{number}/resume", tokens["host"])[0] == 409, "an open job was resumed")
    check(server.ask("POST", f"/api/v1/jobs/{number}/stop", tokens["other host"])[0] == 403, "somebody else's job was stopped")
    status, stopped = server.ask("POST", f"/api/v1/jobs/{number}/stop", tokens["host"])
    check(status == 200 and stopped["state"] == "stopped", f"stop: {status} {stopped}")
    check(stopped["spec"]["model"].startswith("input 4") and "model" not in stopped, f"the model of a stopped job: {stopped}")
    check(server.ask("POST", f"/api/v1/jobs/{number}/stop", tokens["host"])[0] == 409, "stopped twice")
    status, again = server.ask("POST", f"/api/v1/jobs/{number}/resume", tokens["host"], {"epochs": 4})
    check(status == 200 and again["state"] == "waiting" and again["spec"]["epochs"] == 4, f"resume: {status} {again}")
    status, answer = server.ask("POST", f"/api/v1/jobs/{number}/stop", tokens["admin"])
    check(status == 200, f"an admin stops: {status} {answer}")
    status, answer = server.ask("POST", "/api/v1/jobs", tokens["host"], {**job, "name": "hidden", "private": True})
    hidden = answer["id"]
    check(server.ask("GET", f"/api/v1/jobs/{hidden}", tokens["viewer"])[0] == 403, "a private job was shown")
    for who, sees in (("viewer", False), ("other host", False), ("host", True), ("admin", True)):
        listed = [row["id"] for row in server.ask("GET", "/api/v1/jobs", tokens[who])[1]["jobs"]]
        check((hidden in listed) == sees, f"a private job in the list of {who}: {listed}")
        counted = sum(server.ask("GET", "/api/v1/server", tokens[who])[1]["jobs"].values())
        check(counted == len(listed), f"{who} sees {len(listed)} jobs, and {counted} are counted")
    status, invited = server.ask("POST", "/api/v1/tokens", tokens["host"], {"role": "viewer", "name": "guest", "job": hidden})
    check(status == 201, f"an invitation: {status} {invited}")
    check(server.ask("GET", f"/api/v1/jobs/{hidden}", invited["token"])[0] == 200, "an invited guest was refused")
    check(server.ask("GET", f"/api/v1/jobs/{number}", invited["token"])[0] == 404, "a guest saw another job")
    counted = server.ask("GET", "/api/v1/server", invited["token"])[1]["jobs"]
    check(sum(counted.values()) == 1, f"a guest's jobs are counted as {counted}")
    for token, where, wanted in (("viewer", hidden, 403), ("other host", hidden, 403), ("host", hidden, 200), ("viewer", number, 200)):
        status, answer = server.ask("GET", f"/api/v1/jobs/{where}/swarm", tokens[token])
        check(status == wanted and (wanted == 200 or is_error(answer, status)), f"the swarm of job {where} as {token}: {status} {answer}")
    check(server.ask("GET", f"/api/v1/jobs/{number}/swarm", invited["token"])[0] == 404, "a guest saw the swarm of another job")
    status, swarm = server.ask("GET", f"/api/v1/jobs/{hidden}/swarm", invited["token"])
    check(status == 200 and swarm["set"] == "table" and swarm["members"] == [] and swarm["flows"] == [] and swarm["sent"] == 0, f"the swarm of a job that waits: {status} {swarm}")
    check(server.ask("POST", "/api/v1/tokens", tokens["host"], {"role": "admin", "name": "me"})[0] == 403, "a host made an admin")
    check_many(server, tokens)
    check(server.ask("POST", "/api/v1/tokens", tokens["other host"], {"role": "viewer", "name": "x", "job": hidden})[0] == 403,
          "a host invited to somebody else's job")
    check(server.ask("DELETE", f"/api/v1/jobs/{number}", tokens["host"])[0] == 204, "delete")
    check(server.ask("GET", f"/api/v1/jobs/{number}", tokens["host"])[0] == 404, "a deleted job is there")
    for change in [{name: word} for name in ("wire", "shuffle") for word in fields[name]["enum"]] + [{"rule": rule} for rule in fields["rule"]["examples"] + ["clip/2"]] + [{"guard": False}, {"name": "x" * fields["name"]["maxLength"]}, {"seed": str(2**63)}]:
        status, answer = server.ask("POST", "/api/v1/jobs", tokens["host"], {**job, **change})
        check(status == 201, f"a job with {change}: {status} {answer}")
        for name in set(change) & {"rule", "guard"}:
            check(answer["spec"][name] == change[name], f"a job with {change}: {answer['spec']}")
        check(server.ask("POST", f"/api/v1/jobs/{answer['id']}/stop", tokens["host"])[0] == 200, "stop")
    status, answer = server.ask("DELETE", f"/api/v1/datasets/{job['data']}", tokens["host"])
    check(status == 409 and re.search(r"job \d+ uses", answer["error"]["text"]), f"data that a stopped job needs: {status} {answer}")
    return server.ask("POST", "/api/v1/jobs", tokens["host"], job)[1]["id"]


def check_data(server, tokens):
    where = "/api/v1/datasets/table"
    check(server.ask("PUT", where + "/files/.hidden", tokens["host"], b"x")[0] == 422, "a file with a bad name")
    check(server.ask("POST", where, tokens["host"], {"kind": "csv"})[0] == 404, "a data set of nothing")
    check(server.ask("PUT", where + "/files/t.csv", tokens["host"], TABLE + "1,2,3\n")[0] == 201, "upload")
    status, answer = server.ask("POST", where, tokens["host"], {"kind": "csv"})
    check(status == 422 and "t.csv" in answer["error"]["text"], f"a bad table: {status} {answer}")
    check(server.ask("POST", where, tokens["host"], {"kind": "csv"})[0] == 422, "a refused upload is gone")
    status, answer = server.ask("POST", where, tokens["host"], {"kind": "table", "dialect": "delimiter sometimes"})
    check(status == 422 and "sometimes" in answer["error"]["text"], f"a dialect that there is not: {status} {answer}")
    check(server.ask("PUT", where + "/files/other.csv", tokens["host"], TABLE)[0] == 201, "upload again")
    check(server.ask("DELETE", where, tokens["host"])[0] == 204, "a draft is deleted")
    check(server.ask("PUT", "/api/v1/datasets/odd/files/o.csv", tokens["host"], "1;x\n2;y\n3;x\n")[0] == 201, "upload of a table")
    status, answer = server.ask("POST", "/api/v1/datasets/odd", tokens["host"], {"kind": "csv", "dialect": "header no"})
    check(status == 422, f"a dialect of what has none: {status} {answer}")
    status, answer = server.ask("POST", "/api/v1/datasets/odd", tokens["host"], {"kind": "table", "dialect": "header no"})
    check(status == 201 and answer["profile"]["rows"] == 3 and answer["dialect"] == "header no", f"read in another way: {status} {answer}")
    check(server.ask("DELETE", "/api/v1/datasets/odd", tokens["host"])[0] == 204, "a table is deleted")
    check(server.ask("PUT", where + "/files/t.csv", tokens["host"], TABLE)[0] == 201, "upload once more")
    status, answer = server.ask("POST", where, tokens["host"], {"kind": "csv"})
    check(status == 201 and answer["kind"] == "csv" and len(answer["columns"]) == 5 and answer["target"] == "kind", f"a data set: {status} {answer}")
    check(server.ask("PUT", where + "/files/t.csv", tokens["host"], TABLE)[0] == 409, "a data set was changed")
    status, manifest = server.ask("GET", where + "/manifest", tokens["volunteer"])
    chunk = manifest["files"][0]["chunks"][0]
    status, content, _ = server.ask("GET", "/chunks/" + chunk, tokens["volunteer"], raw=True)
    check(status == 200 and content == TABLE.encode(), "a chunk")
    return chunk


def check_bans(server, tokens):
    """Only on SQLite is there a ban to lift: it is written into the store while the server is away."""
    check(server.ask("GET", "/api/v1/bans", server.admin) == (200, {"bans": []}), "bans that nobody made")
    for name in ("1", "0", "x", "-1", "1x", str(2**64), "99999999999999999999999"):
        status, answer = server.ask("DELETE", f"/api/v1/bans/{name}", server.admin)
        check(status == 404 and is_error(answer, status), f"a ban {name} that is not there: {status} {answer}")
    if os.environ.get("SHOAL_TEST_STORE"):
        return
    check(server.stop() == 0, "stop")
    with sqlite3.connect(os.path.join(server.folder, "shoal.db")) as store:
        store.execute("INSERT INTO standings (id, who, agreed, wrong, banned, reason, job, changed) VALUES (7, 'mallory at 10.0.0.9', 3, 1, 1, 'a lie', 2, 5.5)")
        store.execute("UPDATE counters SET value = 7 WHERE name = 'standing'")
    store.close()
    server.start()
    status, answer = server.ask("GET", "/api/v1/bans", server.admin)
    check(answer == {"bans": [{"id": 7, "who": "mallory at 10.0.0.9", "reason": "a lie", "job": 2, "time": 5.5}]}, f"a ban: {status} {answer}")
    for role in ROLES[:-1]:
        check(server.ask("DELETE", "/api/v1/bans/7", tokens[role])[0] == 403, f"a ban was lifted by {role}")
    check(server.ask("DELETE", "/api/v1/bans/7", server.admin) == (204, None), "a ban was not lifted")
    check(server.ask("GET", "/api/v1/bans", server.admin)[1] == {"bans": []}, "a ban that was lifted is there")
    check(server.ask("DELETE", "/api/v1/bans/7", server.admin)[0] == 404, "a ban was lifted twice")
    audit = server.ask("GET", "/api/v1/audit", server.admin)[1]["entries"]
    check(any("mallory at 10.0.0.9" in entry["what"] and "lifts" in entry["what"] and "token" in entry["who"] for entry in audit), f"who lifted a ban: {audit[:3]}")


def check_models(server, tokens):
    where = "/api/v1/models/mine"
    status, answer = server.ask("PUT", where, tokens["host"], {"text": MODEL})
    check(status == 201 and answer["weights"] == 4 * 8 + 8 + 8 * 3 + 3, f"a model: {status} {answer}")
    check(server.ask("PUT", where, tokens["other host"], {"text": MODEL})[0] == 403, "somebody else's model was replaced")
    check(server.ask("PUT", "/api/v1/models/lenet5", tokens["admin"], {"text": MODEL})[0] == 409, "a built-in model was replaced")
    status, answer = server.ask("POST", "/api/v1/models/check", tokens["viewer"], {"text": MODEL})
    check(answer["ok"] and len(answer["layers"]) == 3 and answer["layers"][1]["shape"] == "8", f"a check: {answer}")
    status, answer = server.ask("POST", "/api/v1/models/check", tokens["viewer"], {"text": "input 4\ndense x\n"})
    check(status == 200 and not answer["ok"] and answer["error"]["line"] == 2, f"a check of a wrong text: {answer}")
    listed = server.ask("GET", "/api/v1/server", tokens["viewer"])[1]
    for word, line in (("optimizers", "loss huber\noptimizer quite-another"), ("activations", "attention 8")):
        said = server.ask("POST", "/api/v1/models/check", tokens["viewer"], {"text": f"input 4\n{line}\n"})[1]["error"]["text"]
        check(len(listed[word]) > 5 and said.endswith(", ".join(listed[word])), f"the list of {word}: {listed[word]}, but errors say: {said}")


def check_pages(server):
    for path in ("/", "/host", "/jobs/3", "/work"):
        status, content, answer = server.ask("GET", path, raw=True)
        check(status == 200 and b"<html" in content and "default-src 'self'" in answer.getheader("Content-Security-Policy", ""), f"{path}: {status}")
    for path in ("/nothing", "/jobs/x", "/jobs/3/4", "/host/3", "/index.php", "/healthz/more"):
        status, content, _ = server.ask("GET", path, raw=True)
        check(status == 404 and (b"<html" in content or b'"not_found"' in content), f"{path}: {status} {content[:80]}")
    check(server.ask("GET", "/healthz") == (200, {"alive": True}) and server.ask("GET", "/readyz") == (200, {"ready": True}), "health")
    status, _, answer = server.ask("GET", "/", headers={"Accept-Encoding": "gzip"}, raw=True)
    check(answer.getheader("Content-Encoding") == "gzip", "the page is not compressed")
    status, content, _ = server.ask("GET", "/", headers={"If-None-Match": answer.getheader("ETag")}, raw=True)
    check(status == 304 and not content, f"an unchanged page: {status}")
    status, answer = server.ask("POST", "/api/v1/models/check", server.admin, {"text": MODEL}, {"Origin": "http://evil.example"})
    check(status == 403, f"a page of another site: {status}")
    status, content, _ = server.ask("GET", "/metrics", server.admin, raw=True)
    check(status == 200 and b"shoal_jobs{state=\"waiting\"}" in content and b"shoal_store_up 1" in content, f"metrics: {status}")
    status, document = server.ask("GET", "/openapi.json", server.admin)
    check(status == 200 and document["openapi"].startswith("3."), f"openapi.json: {status}")


def main():
    document = json.load(open(OPENAPI))
    routes = [(path, method.upper(), operation) for path, methods in document["paths"].items() for method, operation in methods.items()]
    with tempfile.TemporaryDirectory() as folder:
        server = Site(folder)
        tokens = {"admin": server.admin}
        for role, name in (("metrics", "prometheus"), ("viewer", "a viewer"), ("volunteer", "a volunteer"), ("host", "a host"), ("host", "other host")):
            status, answer = server.ask("POST", "/api/v1/tokens", server.admin, {"role": role, "name": name})
            check(status == 201 and answer["link"].endswith("#t=" + answer["token"]), f"a token: {status} {answer}")
            tokens["other host" if name == "other host" else role] = answer["token"]
        tokens["expired"] = server.ask("POST", "/api/v1/tokens", server.admin, {"role": "admin", "name": "old", "days": 1e-6})[1]["token"]
        revoked = server.ask("POST", "/api/v1/tokens", server.admin, {"role": "admin", "name": "gone"})[1]
        tokens["revoked"] = revoked["token"]
        check(server.ask("DELETE", f"/api/v1/tokens/{revoked['id']}", server.admin)[0] == 204, "a token was not revoked")
        time.sleep(0.2)
        chunk = check_data(server, tokens)
        check_models(server, tokens)
        check_bans(server, tokens)
        job = check_jobs(server, tokens, document["components"]["schemas"]["JobSpec"]["properties"])
        values = {"id": job, "name": "table", "file": "a.csv", "sha256": chunk, "unit": 0, "trial": 1, "steps": "newest"}
        check_routes(server, tokens, values, routes)
        check_bodies(server, values, routes)
        check_methods(server)
        check_pages(server)
        audit = server.ask("GET", "/api/v1/audit", server.admin)[1]["entries"]
        check(any("DELETE /api/v1/jobs/" in entry["what"] and "a host" in entry["who"] for entry in audit), "the audit log")
        check(not any(token in json.dumps(audit) for token in tokens.values()), "a token is in the audit log")
        before = state_of(server, server.admin)
        check(server.stop(signal.SIGKILL) == -9, "kill")
        server.start()
        check(state_of(server, server.admin) == before, "a server that was killed lost something")
        check(server.stop() == 0, "a server that is stopped exits with 0")
    print(f"{len(routes)} routes, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
