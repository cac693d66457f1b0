#!/usr/bin/env python3
"""busy.py SHOAL: a server answers while it checks an upload of 50 MB.

The table is sealed on one connection; meanwhile another asks for /api/v1/server again and again. Many answers must
come before that to the first one, the set must be there at the end, and while it is being checked it
can neither be sealed again nor deleted, and takes no file."""
import http.client
import json
import sys
import tempfile
import threading
import time

from server import PATIENCE_S, Server

BYTES = 50_000_000


def ask(port, method, path, body=None, sent=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request(method, "/api/v1/" + path, body)
    if sent:
        sent.set()
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def main():
    row = "0.25,-1.5,3.75,8.125,2.5,-6.25,7,1,"
    table = "a,b,c,d,e,f,g,h,kind\n" + "".join(f"{row}{'xyz'[i % 3]}\n" for i in range(BYTES // (len(row) + 2)))
    with tempfile.TemporaryDirectory() as folder:
        server = Server(sys.argv[1], folder)
        port = server.port
        try:
            status, _ = ask(port, "PUT", "datasets/large/files/large.csv", table)
            assert status == 201, status
            sealed, sent, began = [], threading.Event(), time.monotonic()

            def seal():
                answer = ask(port, "POST", "datasets/large", json.dumps({"kind": "csv"}), sent)
                sealed.append((*answer, time.monotonic() - began))

            thread = threading.Thread(target=seal)
            thread.start()
            sent.wait()
            time.sleep(0.05)
            times = []
            again = ask(port, "POST", "datasets/large", json.dumps({"kind": "csv"}))[0]
            delete = ask(port, "DELETE", "datasets/large")[0]
            more = ask(port, "PUT", "datasets/large/files/test.csv", "a,kind\n1,x\n")[0]
            while thread.is_alive():
                asked = time.monotonic()
                assert ask(port, "GET", "server")[0] == 200
                times.append(time.monotonic() - asked)
                time.sleep(0.01)
            thread.join()
            status, described, took = sealed[0]
            after = ask(port, "GET", "datasets/large")[0]
        finally:
            server.end()
    print(f"checked in {took:.2f} s; {len(times)} answers meanwhile, the slowest after {1e3 * max(times):.0f} ms")
    assert status == 201 and after == 200, (status, described, after)
    assert described["samples"]["train"] > 0
    assert again == 409 and delete == 409 and more == 409, (again, delete, more)
    assert len(times) >= 5, (times, took)


main()
