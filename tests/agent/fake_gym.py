"""fake_gym.py: stands in for gym_bridge.py and Gymnasium in test_bridge.c; the name says what it does.

An environment sees three numbers: this process, which episode, which step of it. Its action is a choice of 5,
its reward the choice times the step. Environment i ends by itself after 4 steps where i is even, and is cut off
after 6 where it is odd. Seed s begins at episode s + i."""
import math
import mmap
import os
import socket
import struct
import sys
import time

COUNTS = (3, 5, 1, 0.0, 0.0, 12.5, 20.0)  # observation, choices, width, low, high, solved, pace
KINDS = {
    "huge": (1 << 30,) + COUNTS[1:],
    "wide": (3, 0, 1 << 20, -1.0, 1.0, math.nan, 20.0),
    "nothing": (0,) + COUNTS[1:],
    "boundless": (3, 0, 2, -math.inf, math.inf, math.nan, 20.0),
    "many": (3, 1 << 20) + COUNTS[2:],
    "real": (3, 0, 2, -2.0, 3.0, math.nan, math.inf),
}
REFUSALS = {"refused": b"uits actions are strange", "missing": b"nthere is none", "raises": b"xValueError: no",
            "nonsense": b"?", "short": b"k12"}


def floats(memory, at, count):
    return memoryview(memory)[at:at + 4 * count].cast("f")


def align(size):
    return (size + 63) // 64 * 64


class Host:
    def open(self, name):
        self.name = name
        if name == "silent":
            sys.exit(0)
        if name == "sleeps":
            time.sleep(3600)
        if name in REFUSALS:
            return REFUSALS[name]
        return b"k" + struct.pack("=3I2f2d", *KINDS.get(name, COUNTS))

    def make(self, count, size, width):
        memory = mmap.mmap(4, 0)
        self.count, at = count, 0
        self.actions = floats(memory, at, count * width)
        at += align(4 * count * width)
        self.seen = floats(memory, at, count * size)
        at += align(4 * count * size)
        self.lasts = floats(memory, at, count * size)
        at += align(4 * count * size)
        self.rewards = floats(memory, at, count)
        self.ends = memoryview(memory)[at + align(4 * count):][:count]
        self.steps = 0
        return b"xMemoryError: too many" if count == 77 else b"d"

    def look(self, to, i):
        for k, number in enumerate((os.getpid(), self.episode[i], self.step_of[i])):
            to[3 * i + k] = number

    def reset(self, seed):
        self.episode = [seed + i for i in range(self.count)]
        self.step_of = [0] * self.count
        for i in range(self.count):
            self.look(self.seen, i)
        return b"d"

    def step(self):
        self.steps += 1
        if self.name == "exits" and self.steps == 3:
            os._exit(7)
        if self.name == "dies" and self.steps == 3:
            os.kill(os.getpid(), 11)
        if self.name == "hangs" and self.steps == 3:
            time.sleep(3600)
        if self.name == "lasts" and self.steps == 200:
            os._exit(7)
        if self.name == "fails" and self.steps == 3:
            return b"xRuntimeError: the world ended"
        for i in range(self.count):
            self.step_of[i] += 1
            self.rewards[i] = self.actions[i] * self.step_of[i]
            self.ends[i] = 1 if i % 2 == 0 and self.step_of[i] == 4 else 2 if i % 2 and self.step_of[i] == 6 else 0
            if self.ends[i]:
                self.look(self.lasts, i)
                self.episode[i] += 100
                self.step_of[i] = 0
            self.look(self.seen, i)
        if self.name == "nan" and self.steps == 3:
            self.seen[1] = math.nan
        if self.name == "inf" and self.steps == 3:
            self.rewards[0] = math.inf
        return b"d"


link = socket.socket(fileno=3)
host = Host()
while message := link.recv(4096):
    letter, rest = message[:1], message[1:]
    if letter in b"oq":
        answer = host.open(rest.decode())
    elif letter == b"m":
        answer = host.make(*struct.unpack("=3I", rest))
    elif letter == b"r":
        answer = host.reset(struct.unpack("=Q", rest)[0])
    else:
        answer = host.step()
    link.send(answer)
