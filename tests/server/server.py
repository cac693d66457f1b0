"""server.py: `shoal serve`, volunteers and other commands with --json, as processes of a test; and how tests wait for them.

What they print goes to a file, so that nobody has to read along: a pipe that nobody empties stops who writes to it."""
import atexit
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
from pathlib import Path

PATIENCE_S = 300  # much longer than anything takes that a test waits for, on a slow machine that is busy, too


def wait_for(what, found, changes=lambda: None):
    """Asks until `found` says something that is true, and returns that. Gives up only when what `changes` says, such as how
    far a job is, has stayed the same for very long. A server that is away is asked again."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < PATIENCE_S:
        try:
            if answer := found():
                return answer
            if (now := changes()) != last:
                last, since = now, time.monotonic()
        except (urllib.error.URLError, ConnectionError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    sys.exit(f"waited in vain for {what}: {PATIENCE_S} s without a change of {last}")


class Process:
    """A command and what it prints on standard output."""

    def __init__(self, command):
        self.printed = tempfile.NamedTemporaryFile("w+", prefix="shoal-printed-")
        self.process = subprocess.Popen(command, stdout=self.printed)
        atexit.register(self.process.kill)  # nothing outlives a test that has failed

    def first_line(self):
        """The first line, once it is whole."""
        read = lambda: Path(self.printed.name).read_text()
        wait_for(f"a line of {self.process.args}", lambda: "\n" in read() or self.process.poll() is not None)
        if "\n" not in read():
            raise RuntimeError(f"{self.process.args}: nothing was printed; exit status {self.process.poll()}")
        return read().split("\n")[0]

    def end(self, number=signal.SIGTERM):
        """Sends a signal and returns the exit status."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self.printed.close()
        return code


class Server(Process):
    """A server on a port of its own choice, or on `port`."""

    def __init__(self, shoal, folder, *options, port=0):
        super().__init__([shoal, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder), "--json", *options])
        ready = json.loads(self.first_line())
        self.url = ready["url"]
        self.port = int(self.url.rsplit(":", 1)[1])
        # Of a server that wants tokens, at its first start.
        file = ready.get("admin_link_file")
        self.admin = Path(file).read_text().strip().split("#t=")[1] if file else None


class Volunteer(Process):
    """A volunteer with one core that computes whatever else the machine does. `link` is a server's, or a queue's URL."""

    def __init__(self, shoal, link, name, folder, *options):
        super().__init__([shoal, "work", link, "--name", name, "--cores", "1", "--cache", str(Path(folder) / name), "--yes",
                          "--no-pause", "--on-battery", "--json", *options])
