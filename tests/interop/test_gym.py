"""Our environments against Gymnasium's, step by step: the same seeds and the same random actions give the same
observations (as float32, to the last bit), rewards and ends; also of the episodes that follow without a seed.

LunarLander is another matter: Gymnasium's is a world of Box2D 2.3, ours of Debian's 2.4, which solves hinges and contacts in
another way. The same seeds and actions keep within FLIGHT of one another until something touches the ground; after that
they go their own ways, since contacts are all or nothing."""
import os

import numpy as np

from common import DUMP, SOURCE, call, folder, load_file, save_file

ENVS, STEPS = 100, 1000
TERMINATED, TRUNCATED = 1, 2
CHOICES = {"CartPole-v1": 2, "CartPole-v0": 2, "Acrobot-v1": 3, "MountainCar-v0": 3}
LANDERS = {"LunarLander-v3": 1, "LunarLanderContinuous-v3": 2}
FLIGHT = 0.02
BOUNDS = {"MountainCarContinuous-v0": 1, "Pendulum-v1": 2}


def play(name, seed, actions):
    """What we have, and what they have, as dictionaries of arrays."""
    with folder() as place:
        np.save(place / "actions.npy", actions)
        call(os.environ["GYM_PYTHON"], SOURCE / "tests/interop/gym_play.py", name, seed, place / "actions.npy",
             place / "theirs.npz")
        theirs = dict(np.load(place / "theirs.npz"))
        save_file({"actions": theirs.pop("actions")}, place / "actions.safetensors")
        call(DUMP, "play", name, seed, place / "actions.safetensors", place / "ours.safetensors")
        ours = load_file(place / "ours.safetensors")
        return {key: ours[key].reshape(value.shape) for key, value in theirs.items()}, theirs


def random_choices(choices, random):
    return random.integers(0, choices, (STEPS, ENVS, 1)).astype(np.float32)


def held(actions, random):
    """Half of the environments keep an action for some steps, a quarter swings from one bound to the other: that gets
    farther than trembling does."""
    length = random.integers(2, 40, ENVS)
    low, high = actions.min(), actions.max()
    for i in range(ENVS // 2):
        actions[:, i] = actions[np.arange(STEPS) // length[i] * length[i], i]
    for i in range(ENVS // 2, 3 * ENVS // 4):
        actions[:, i, 0] = np.where(np.arange(STEPS) // length[i] % 2, low, high)
    return actions


def balanced(random):
    """Now and then a random push; else what keeps the pole upright."""
    return np.where(random.random((STEPS, ENVS, 1)) < 0.1, random_choices(2, random), np.float32(np.nan))


def random_numbers(bound, random):
    """Some beyond the bounds, and some at them."""
    actions = random.uniform(-1.3 * bound, 1.3 * bound, (STEPS, ENVS, 1)).astype(np.float32)
    at_bound = random.random(actions.shape) < 0.02
    return np.where(at_bound, np.sign(actions) * np.float32(bound), actions)


def same(name, actions, seed, ends=()):
    ours, theirs = play(name, seed, actions)
    for end in ends:
        assert (theirs["ends"] == end).any(), f"{name}: no episode ended like {end}"
    for key in ("first", "ends", "rewards", "observations", "lasts"):
        if np.array_equal(ours[key], theirs[key]):
            continue
        wrong = np.argwhere(ours[key] != theirs[key])
        at = tuple(wrong[0])
        raise AssertionError(f"{name}: {key} differ in {len(wrong)} of {ours[key].size} places, first at "
                             f"{tuple(map(int, at))}: {ours[key][at]!r} here, {theirs[key][at]!r} there")


def same_whatever_the_kernels(random):
    """CartPole is compiled for several instruction sets."""
    actions = held(random_choices(2, random), random)[:300]
    before = os.environ.pop("SHOAL_KERNELS", None)
    for kernels in ("baseline", "avx2", "avx512"):
        os.environ["SHOAL_KERNELS"] = kernels
        same("CartPole-v1", actions, 0)
    os.environ.pop("SHOAL_KERNELS")
    if before:
        os.environ["SHOAL_KERNELS"] = before


def flies_alike(name, width, random):
    if width == 1:
        actions = random.integers(0, 4, (STEPS // 4, ENVS, 1)).astype(np.float32)
    else:
        actions = random.uniform(-1.2, 1.2, (STEPS // 4, ENVS, width)).astype(np.float32)
    ours, theirs = play(name, 0, actions)
    worst, steps = np.abs(ours["first"] - theirs["first"]).max(), 0
    for i in range(ENVS):
        down = (ours["observations"][:, i, 6:] + theirs["observations"][:, i, 6:]).any(axis=1)
        over = down | (ours["ends"][:, i] + theirs["ends"][:, i] > 0)
        flight = slice(0, int(np.argmax(over)) if over.any() else len(over))
        apart = np.abs(ours["observations"][flight, i] - theirs["observations"][flight, i])
        worst, steps = max(worst, apart.max(initial=0)), steps + len(apart)
    assert steps > 50 * ENVS, f"{name}: only {steps} steps in flight"
    assert worst <= FLIGHT, f"{name}: observations in flight differ by up to {worst:.3g}"


def cases():
    random = np.random.default_rng(8)
    for name, choices in CHOICES.items():
        ends = [TERMINATED] if name.startswith("CartPole") else [TERMINATED, TRUNCATED]
        yield name, lambda n=name, c=choices, e=ends: same(n, held(random_choices(c, random), random), 0, e)
        yield f"{name}, large seeds", lambda n=name, c=choices: same(n, random_choices(c, random)[:300], 2**33 + 5)
    for name, bound in BOUNDS.items():
        ends = [TRUNCATED] if name.startswith("Pendulum") else [TERMINATED, TRUNCATED]
        yield name, lambda n=name, b=bound, e=ends: same(n, held(random_numbers(b, random), random), 0, e)
        yield f"{name}, large seeds", lambda n=name, b=bound: same(n, random_numbers(b, random)[:300], 2**33 + 5)
    yield "CartPole-v1, balanced", lambda: same("CartPole-v1", balanced(random), 0, [TRUNCATED])
    yield "CartPole-v1 with all kernels", lambda: same_whatever_the_kernels(random)
    for name, width in LANDERS.items():
        yield name, lambda n=name, w=width: flies_alike(n, w, random)
