"""gym_odd.py: environments with every kind of space and of trouble, for test_bridge.py. Importing it registers
them: gym:gym_odd:Mixed-v0."""
import os
import time

import gymnasium
import numpy as np
from gymnasium import spaces


class Odd(gymnasium.Env):
    """Never ends; the first number seen is the step, the reward the last action's sum."""
    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(3)
    metadata = {"render_modes": [], "render_fps": 12}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.done = 0, 0.0
        return self.see(), {}

    def step(self, action):
        assert self.action_space.contains(action), repr(action)
        self.steps += 1
        self.done = float(np.sum(action))
        return self.see(), self.done, False, False, {}

    def see(self):
        return np.array([self.steps, self.done], np.float32)


class Mixed(Odd):
    """Seen: a number of 4, two numbers of 3 and 2, two bits, a box of 2 x 2. Done: one of 2 x 3."""
    observation_space = spaces.Dict({
        "a": spaces.Discrete(4, start=10), "b": spaces.MultiDiscrete([3, 2]), "c": spaces.MultiBinary(2),
        "d": spaces.Tuple([spaces.Box(-1e6, 1e6, (2, 2), np.float64)])})
    action_space = spaces.MultiDiscrete([2, 3])

    def step(self, action):
        seen, _, ended, cut_off, info = super().step(action)
        return seen, float(10 * action[0] + action[1]), ended, cut_off, info

    def see(self):
        return {"a": np.int64(10 + self.steps % 4), "b": np.array([self.steps % 3, self.steps % 2]),
                "c": np.array([1, self.steps % 2], np.int8), "d": (np.arange(4.0).reshape(2, 2) + self.steps,)}


class Image(Odd):
    observation_space = spaces.Box(0, 255, (4, 3, 2), np.uint8)

    def see(self):
        return np.arange(24, dtype=np.uint8).reshape(4, 3, 2)


class Bounds(Odd):
    """Two numbers with bounds of their own."""
    action_space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 10], np.float32))

    def step(self, action):
        seen, *rest = super().step(action)
        return np.array(action, np.float32), *rest


class Shifted(Odd):
    action_space = spaces.Discrete(3, start=-1)


class Bits(Odd):
    action_space = spaces.MultiBinary(3)


class Both(Odd):
    """Ends by itself and is cut off in one step."""

    def step(self, action):
        seen, reward, _, _, info = super().step(action)
        return seen, reward, self.steps == 3, self.steps == 3, info


class Prints(Odd):
    def step(self, action):
        print("this is printed by the environment", flush=True)
        seen, reward, _, _, info = super().step(action)
        return seen, reward, self.steps == 3, False, info


class Long(Odd):
    observation_space = spaces.Sequence(spaces.Discrete(3))


class Boundless(Odd):
    action_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)


class TextAction(Odd):
    action_space = spaces.Text(8)


class ManyChoices(Odd):
    action_space = spaces.MultiDiscrete([100, 100])


class Raises(Odd):
    def step(self, action):
        raise ValueError("the cart is missing")


class RaisesAtOnce(Odd):
    def __init__(self):
        raise KeyError("no such track")


class Exits(Odd):
    def step(self, action):
        raise SystemExit(3)


class Dies(Odd):
    def step(self, action):
        os._exit(5)


class Hangs(Odd):
    """Waits for somebody to kill it, and says who it is."""

    def step(self, action):
        with open(os.environ["ODD_PID"], "w") as file:
            file.write(str(os.getpid()))
        time.sleep(3600)


class Slow(Odd):
    """A second and a half for an episode of fifty steps. In its tenth it says who it is, where somebody wants to know."""
    made = 0

    def step(self, action):
        self.made += 1
        if self.made == 10 and "ODD_PID" in os.environ:
            with open(os.environ["ODD_PID"], "w") as file:
                file.write(str(os.getpid()))
        time.sleep(0.03)
        return super().step(action)


class Infinite(Odd):
    def see(self):
        return np.array([np.inf if self.steps == 2 else 0, 0], np.float32)


class Argued(Odd):
    """Its arguments are what is seen."""
    observation_space = spaces.Box(-1e6, 1e6, (3,), np.float32)

    def __init__(self, a=0, b="x", c=False):
        self.seen = np.array([a, len(b), c], np.float32)

    def see(self):
        return self.seen


for kind in Odd.__subclasses__() + [Odd]:
    gymnasium.register(f"{kind.__name__}-v0", entry_point=kind, reward_threshold=7.5, max_episode_steps=50)
