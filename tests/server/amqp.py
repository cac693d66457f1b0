"""amqp.py: just enough of AMQP 0-9-1 to be a bad worker, who takes messages and is never heard of, or to send nonsense."""
import socket
import struct
from urllib.parse import unquote, urlsplit

from server import PATIENCE_S

METHOD, HEADER, BODY, HEARTBEAT, END = 1, 2, 3, 8, b"\xce"
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
CHANNEL_OPEN, CHANNEL_OPEN_OK, CONSUME, CONSUME_OK, PUBLISH, DELIVER = (20, 10), (20, 11), (60, 20), (60, 21), (60, 40), (60, 60)


def short(text):
    return bytes([len(text)]) + text.encode()


def long(raw):
    return struct.pack(">I", len(raw)) + raw


class Connection:
    """To one queue of a broker."""

    def __init__(self, url, queue):
        self.queue = queue
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port or 5672), timeout=PATIENCE_S)
        self.bytes = b""
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self.expect(START)
        login = f"\0{unquote(parts.username)}\0{unquote(parts.password)}".encode()
        self.method(0, START_OK, long(b"") + short("PLAIN") + long(login) + short("en_US"))
        tune = self.expect(TUNE)
        self.method(0, TUNE_OK, tune[:6] + struct.pack(">H", 0))  # no heartbeats
        self.method(0, OPEN, short(unquote(parts.path[1:]) or "/") + short("") + b"\0")
        self.expect(OPEN_OK)
        self.method(1, CHANNEL_OPEN, short(""))
        self.expect(CHANNEL_OPEN_OK)

    def consume(self):
        """From now on all that is in the queue comes here, and is acknowledged by that."""
        no_ack = b"\x02"
        self.method(1, CONSUME, struct.pack(">H", 0) + short(self.queue) + short("") + no_ack + long(b""))
        self.expect(CONSUME_OK)

    def send(self, kind, channel, payload):
        self.socket.sendall(struct.pack(">BHI", kind, channel, len(payload)) + payload + END)

    def method(self, channel, number, arguments):
        self.send(METHOD, channel, struct.pack(">HH", *number) + arguments)

    def publish(self, body):
        self.method(1, PUBLISH, struct.pack(">H", 0) + short("") + short(self.queue) + b"\0")
        self.send(HEADER, 1, struct.pack(">HHQH", 60, 0, len(body), 0))
        self.send(BODY, 1, body)

    def frame(self, seconds):
        """The next frame as (kind, payload); None: it did not come in time."""
        self.socket.settimeout(seconds)
        while len(self.bytes) < 7 or len(self.bytes) < 8 + struct.unpack(">I", self.bytes[3:7])[0]:
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                return None
            if not more:
                raise ConnectionError("the broker has closed the connection")
            self.bytes += more
        kind, _, length = struct.unpack(">BHI", self.bytes[:7])
        payload, self.bytes = self.bytes[7 : 7 + length], self.bytes[8 + length :]
        return kind, payload

    def expect(self, number):
        while True:
            frame = self.frame(PATIENCE_S)
            assert frame, f"no {number} came"
            if frame[0] == METHOD and struct.unpack(">HH", frame[1][:4]) == number:
                return frame[1][4:]

    def next(self, seconds):
        """The body of the next message; None: none came in time."""
        frame = self.frame(seconds)
        while frame and not (frame[0] == METHOD and struct.unpack(">HH", frame[1][:4]) == DELIVER):
            frame = self.frame(seconds)
        if not frame:
            return None
        _, header = self.frame(PATIENCE_S)
        size, = struct.unpack(">Q", header[4:12])
        body = b""
        while len(body) < size:
            body += self.frame(PATIENCE_S)[1]
        return body

    def close(self):
        self.socket.close()
