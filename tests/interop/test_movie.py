"""Pillow, and so the readers that others wrote, sees in our GIF and APNG the pictures that we drew."""
import numpy as np
from PIL import Image

from common import SHOAL, call, folder


def pictures(path):
    """All pictures as arrays of RGB, and their times in seconds."""
    with Image.open(path) as film:
        assert film.info.get("loop") == 0
        found, times = [], []
        for i in range(film.n_frames):
            film.seek(i)
            found.append(np.asarray(film.convert("RGB")))
            times.append(film.info["duration"] / 1000)
    return found, times


def film(name, env, *options):
    with folder() as place:
        call(SHOAL, "agent", "play", "--random", "--env", env, f"--{name}", place / "film", *options)
        return pictures(place / "film")


def same_in_both(env, *options):
    gif, gif_times = film("gif", env, *options)
    apng, apng_times = film("apng", env, *options)
    assert len(gif) == len(apng) > 5, (len(gif), len(apng))
    for i, (a, b) in enumerate(zip(gif, apng)):
        assert np.array_equal(a, b), f"picture {i} differs"
    assert abs(sum(gif_times) - sum(apng_times)) < 0.02
    changes = [not np.array_equal(a, b) for a, b in zip(apng, apng[1:])]
    assert all(changes)
    return apng


def themes():
    light = same_in_both("CartPole-v1", "--theme", "light", "--size", "160x90")
    dark = same_in_both("CartPole-v1", "--theme", "dark", "--size", "160x90")
    assert light[0].shape == dark[0].shape == (90, 160, 3)
    assert light[0][0, 0].min() > 200 and dark[0][0, 0].max() < 80
    assert 6 <= len(np.unique(light[0].reshape(-1, 3), axis=0)) <= 51


def times():
    """At the environment's own fifty pictures a second, and half as fast; the last one stays a while."""
    for options, each in (((), 0.02), (("--speed", "0.5"), 0.04)):
        for name in ("gif", "apng"):
            _, found = film(name, "CartPole-v1", *options)
            assert max(abs(t - each) for t in found[:-1]) < 1e-6, (name, found)
            assert found[-1] > 0.5


def cases():
    for env in ("CartPole-v1", "MountainCar-v0", "Pendulum-v1", "Snake-v0", "Maze-v0"):
        yield f"{env} in both formats", lambda e=env: same_in_both(e)
    yield "themes", themes
    yield "times", times
