"""gym_bridge.py: environments of Gymnasium for Shoal; the other half is bridge.c, which starts it.

Descriptor 3 is a socket whose messages keep their bounds, 4 is memory that both sides map. Messages, in the
machine's own order of bytes:

    open   "o", the name                   -> "k", seven numbers (see KIND); "q" for "o": without the warnings, which
                                              have been said
    make   "m", count u32, floats of an observation u32, of an action u32
                                           -> "d"; the memory has its size by now; again for the next vector
    reset  "r", seed u64                   -> "d"
    step   "s"                             -> "d"

An answer may also be "n" (there is no such environment), "u" (it cannot be used) or "x" (it failed, and the
traceback is on standard error), each with a sentence. The end of the socket ends the process."""
import json
import math
import mmap
import os
import re
import socket
import struct
import sys
import traceback
import urllib.parse
import warnings

SOCKET, MEMORY = 3, 4
KIND = struct.Struct("=3I2f2d")  # observation, choices, action width; low, high; solved, pace
ALIGNMENT = 64
CHOICES_MAX = 1024
ENDED, CUT_OFF = 1, 2

# Many such processes run side by side: each is one thread. And nobody here reads greetings.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


class Refused(Exception):
    """A letter for the answer, and a sentence for the user."""


def load():
    """Gymnasium and NumPy, or what to do about it."""
    try:
        import gymnasium
        import numpy
    except ImportError as error:
        if error.name not in ("gymnasium", "numpy"):
            raise
        raise Refused("u", f"{sys.executable} has no package '{error.name}'; install it with "
                           f"'{sys.executable} -m pip install gymnasium', or set SHOAL_PYTHON to a Python "
                           "that has it")
    return gymnasium, numpy


def arguments(query):
    """{"continuous": True} of "continuous=true": values are JSON, or else texts."""
    found = {}
    for key, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def plain(warning):
    """Its text in a line, without colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(warning)).split())


class Observations:
    """How an observation becomes floats."""

    def __init__(self, gym, np, space):
        spaces = gym.spaces
        self.flatten = None
        if isinstance(space, spaces.Box) and len(space.shape) == 1:
            self.size = space.shape[0]
        elif isinstance(space, spaces.Box):
            self.size, self.flatten = math.prod(space.shape), np.ravel
        elif space.is_np_flattenable:
            self.size = spaces.utils.flatdim(space)
            self.flatten = lambda seen: spaces.utils.flatten(space, seen)
        else:
            raise Refused("u", f"its observations are {space}, which cannot be made a list of numbers")
        if self.size == 0:
            raise Refused("u", f"its observations are {space}, which is nothing at all")


class Actions:
    """What is done, from rows of floats: `choices` whole numbers, or reals between low and high."""

    def __init__(self, gym, np, space):
        spaces = gym.spaces
        self.choices, self.width, self.low, self.high = 0, 1, 0.0, 0.0
        if isinstance(space, spaces.Discrete):
            self.choices = int(space.n)
            start = np.int64(space.start)
            self.take = lambda rows: rows[:, 0].astype(np.int64) + start
        elif isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
            counts = space.nvec if isinstance(space, spaces.MultiDiscrete) else np.full(space.shape, 2)
            self.combine(np, space, tuple(int(n) for n in np.ravel(counts)))
        elif isinstance(space, spaces.Box):
            self.scale(np, space)
        else:
            raise Refused("u", f"its actions are {space}; Discrete, MultiDiscrete and Box can be learnt")
        if self.choices > CHOICES_MAX:
            raise Refused("u", f"its actions are {space}: {self.choices} choices, and {CHOICES_MAX} is the most")

    def combine(self, np, space, counts):
        self.choices = math.prod(counts)
        start = np.asarray(getattr(space, "start", 0), dtype=space.dtype)
        self.take = lambda rows: [
            np.asarray(choice, dtype=space.dtype).reshape(space.shape) + start
            for choice in zip(*np.unravel_index(rows[:, 0].astype(np.int64), counts))]

    def scale(self, np, space):
        low, high = np.ravel(space.low).astype(np.float32), np.ravel(space.high).astype(np.float32)
        self.width = low.size
        if self.width == 0 or not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise Refused("u", f"its actions are {space}, which has no bounds: wrap it in one that has "
                               "(gymnasium.wrappers.RescaleAction)")
        self.low, self.high = float(low[0]), float(high[0])
        alike = (low == low[0]).all() and (high == high[0]).all()
        if not alike:
            self.low, self.high = -1.0, 1.0

        def take(rows):
            if not alike:
                rows = low + (rows + np.float32(1)) * np.float32(0.5) * (high - low)
            return np.clip(rows, low, high).astype(space.dtype).reshape((-1,) + space.shape)
        self.take = take


class Host:
    """The environments of a vector."""

    def __init__(self):
        self.gym, self.np = load()
        self.envs = []

    def new(self):
        return self.gym.make(self.name, disable_env_checker=True, **self.settings)

    def open(self, text, quiet):
        self.name, _, query = text.partition("?")
        self.settings = arguments(query)
        errors = self.gym.error
        with warnings.catch_warnings(record=True) as said:
            try:
                env = self.new()
            except (errors.UnregisteredEnv, ModuleNotFoundError) as error:
                raise Refused("n", str(error))
            except errors.Error as error:
                raise Refused("n" if "Malformed" in str(error) else "u", str(error))
        for text in dict.fromkeys(plain(warning.message) for warning in said if not quiet):
            print(f"gym:{self.name}: {text}", file=sys.stderr, flush=True)
        self.gym.logger.min_level = self.gym.logger.ERROR  # it has been said once
        self.envs = [env]
        self.observing = Observations(self.gym, self.np, env.observation_space)
        self.acting = Actions(self.gym, self.np, env.action_space)
        solved = getattr(env.spec, "reward_threshold", None)
        pace = (env.metadata or {}).get("render_fps")
        return b"k" + KIND.pack(self.observing.size, self.acting.choices, self.acting.width, self.acting.low,
                                self.acting.high, math.nan if solved is None else solved, pace or 30)

    def make(self, count, floats, width):
        if (floats, width) != (self.observing.size, self.acting.width):
            raise ValueError("the two sides do not agree about the environment")
        while len(self.envs) < count:
            self.envs.append(self.new())
        self.played = self.envs[:count]
        self.memory = mmap.mmap(MEMORY, 0)
        self.place = 0
        self.actions = self.array("f4", count, width)
        self.observations = self.array("f4", count, floats)
        self.lasts = self.array("f4", count, floats)
        self.rewards = self.array("f4", count)
        self.ends = self.array("u1", count)

    def array(self, kind, *shape):
        """The next part of the memory."""
        found = self.np.frombuffer(self.memory, kind, math.prod(shape), self.place).reshape(shape)
        self.place += (found.nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        return found

    def reset(self, seed):
        flatten = self.observing.flatten
        for i, env in enumerate(self.played):
            seen, _ = env.reset(seed=(seed + i) % 2**64)
            self.observations[i] = flatten(seen) if flatten else seen

    def step(self):
        flatten, observations = self.observing.flatten, self.observations
        rewards, ends = [], []
        for i, (env, action) in enumerate(zip(self.played, self.acting.take(self.actions))):
            seen, reward, ended, cut_off, _ = env.step(action)
            rewards.append(reward)
            ends.append(ENDED if ended else CUT_OFF if cut_off else 0)
            if ended or cut_off:
                self.lasts[i] = flatten(seen) if flatten else seen
                seen, _ = env.reset()
            observations[i] = flatten(seen) if flatten else seen
        self.rewards[:] = rewards
        self.ends[:] = ends

    def close(self):
        for env in self.envs:
            try:
                env.close()
            except Exception:
                traceback.print_exc()


def answer(host, message):
    """(the host, what to say) to a message."""
    letter, rest = message[:1], message[1:]
    if letter == b"s":
        host.step()
    elif letter == b"r":
        host.reset(struct.unpack("=Q", rest)[0])
    elif letter in b"oq":
        host = Host()
        return host, host.open(rest.decode(), letter == b"q")
    elif letter == b"m":
        host.make(*struct.unpack("=3I", rest))
    else:
        raise ValueError(f"a message of an unknown kind: {message!r}")
    return host, b"d"


def sentence(letter, text):
    """In one line, and short enough for a message."""
    return letter.encode() + " ".join(text.split()).encode()[:1000]


def main():
    link = socket.socket(fileno=SOCKET)
    os.set_inheritable(SOCKET, False)
    os.set_inheritable(MEMORY, False)
    host = None
    while message := link.recv(4096):
        try:
            host, said = answer(host, message)
        except Refused as error:
            said = sentence(*error.args)
        except BaseException as error:  # an environment may do anything, sys.exit among it
            traceback.print_exc()
            sys.stderr.flush()
            said = sentence("x", f"{type(error).__name__}: {error}")
        link.send(said)
    if host:
        host.close()


try:
    main()
except (BrokenPipeError, ConnectionResetError):
    pass  # who asked is gone
