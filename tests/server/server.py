"""server.py: `shoal serve` and other commands with --json, as processes of a test.

What they print goes to a file, so that nobody has to read along: a pipe that nobody empties stops who writes to it."""
import atexit
import json
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class Process:
    """A command and what it prints on standard output."""

    def __init__(self, command):
        self.printed = tempfile.NamedTemporaryFile("w+", prefix="shoal-printed-")
        self.process = subprocess.Popen(command, stdout=self.printed)
        atexit.register(self.process.kill)  # nothing outlives a test that has failed

    def first_line(self, seconds=30):
        """The first line, once it is whole."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            text = Path(self.printed.name).read_text()
            if "\n" in text:
                return text[: text.index("\n")]
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"{self.process.args}: nothing was printed; exit status {self.process.poll()}")

    def end(self, number=signal.SIGTERM):
        """Sends a signal and returns the exit status."""
        self.process.send_signal(number)
        code = self.process.wait(120)
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
