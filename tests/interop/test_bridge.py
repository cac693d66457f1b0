"""Environments of the real Gymnasium through the bridge: the same bits as those built in, every kind of space, every
kind of trouble, and how fast it is. GYM_PYTHON is a Python that has Gymnasium; gym_odd.py is what is odd."""
import json
import os
import signal
import subprocess
import time

import numpy as np

from common import DUMP, SHOAL, SOURCE, call, folder, load_file, save_file

PYTHON = os.environ.get("GYM_PYTHON", "python3")
ENVIRONMENT = {**os.environ, "SHOAL_PYTHON": PYTHON, "PYTHONPATH": str(SOURCE / "tests/interop"),
               "PYTHONDONTWRITEBYTECODE": "1"}
ACTIONS = {"CartPole-v1": 2, "Acrobot-v1": 3, "MountainCar-v0": 3, "MountainCarContinuous-v0": -1.0,
           "Pendulum-v1": -2.0}
TERMINATED, TRUNCATED = 1, 2
PATIENCE_S = 300  # much longer than anything takes, on a slow machine that is busy, too


def agent_play(*words, environment=ENVIRONMENT):
    """`shoal agent play --random`, and what it said."""
    return subprocess.run([SHOAL, "agent", "play", "--random", *words], env=environment, capture_output=True, text=True,
                          timeout=PATIENCE_S)


def play(name, actions, seed=0):
    """What happens to these actions, steps x environments x width."""
    with folder() as place:
        save_file({"actions": np.asarray(actions, np.float32)}, place / "in")
        subprocess.run([DUMP, "play", name, str(seed), place / "in", place / "out"], env=ENVIRONMENT, check=True)
        out = load_file(place / "out")
    steps, envs, _ = np.shape(actions)
    shapes = {"first": (envs, -1), "rewards": (steps, envs), "ends": (steps, envs)}
    return {key: value.reshape(shapes.get(key, (steps, envs, -1))) for key, value in out.items()}


def odd(name, actions, **options):
    return play(f"gym:gym_odd:{name}-v0", actions, **options)


def same_bits(name, choices):
    random = np.random.default_rng(3)
    shape = (1100, 4, 1)
    actions = random.integers(0, choices, shape) if choices > 0 else random.uniform(choices, -choices, shape)
    for seed in (0, 2**40 + 1):
        ours, theirs = play(name, actions, seed), play(f"gym:{name}", actions, seed)
        assert ours["ends"].any()
        for key in ours:
            assert np.array_equal(ours[key], theirs[key]), f"{key} differ for seed {seed}"


def mixed_spaces():
    actions = np.arange(12).reshape(6, 2, 1) % 6
    out = odd("Mixed", actions)
    for t in range(6):
        step = t + 1
        wanted = np.concatenate([np.eye(4)[step % 4], np.eye(3)[step % 3], np.eye(2)[step % 2], [1, step % 2],
                                 np.arange(4.0) + step])
        for i in range(2):
            assert np.array_equal(out["observations"][t, i], wanted), (t, i, out["observations"][t, i], wanted)
            choice = int(actions[t, i, 0])
            assert out["rewards"][t, i] == 10 * (choice // 3) + choice % 3


def images():
    out = odd("Image", np.ones((1, 3, 1)))
    assert np.array_equal(out["observations"][0], np.tile(np.arange(24.0), (3, 1)))


def bounds():
    """Each number goes from -1 to 1 here, and is cut there."""
    out = odd("Bounds", [[[-1, -1]], [[1, 1]], [[0, 0]], [[0.5, -0.5]], [[-7, 7]]])
    assert np.allclose(out["observations"][:, 0], [[-1, 0], [1, 10], [0, 5], [0.5, 2.5], [-1, 10]])


def choices_that_begin_elsewhere():
    assert odd("Shifted", [[[0]], [[1]], [[2]]])["rewards"][:, 0].tolist() == [-1, 0, 1]
    assert odd("Bits", [[[i]] for i in range(8)])["rewards"][:, 0].tolist() == [0, 1, 1, 2, 1, 2, 2, 3]


def ends():
    out = odd("Both", np.zeros((7, 2, 1)))
    assert out["ends"][:, 0].tolist() == [0, 0, TERMINATED, 0, 0, TERMINATED, 0]
    assert out["lasts"][2, 0, 0] == 3 and out["observations"][2, 0, 0] == 0
    out = odd("Odd", np.zeros((51, 1, 1)))  # its time limit is the registry's
    assert out["ends"][:, 0].tolist() == [0] * 49 + [TRUNCATED, 0]
    assert out["lasts"][49, 0, 0] == 50


def arguments():
    out = odd("Argued", np.zeros((1, 1, 1)))
    assert out["first"][0].tolist() == [0, 1, 0]
    out = play("gym:gym_odd:Argued-v0?a=-2.5&b=hello&c=true", np.zeros((1, 1, 1)))
    assert out["first"][0].tolist() == [-2.5, 5, 1]


def fails(env, *texts, environment=ENVIRONMENT):
    """Playing there ends soon and with these texts."""
    done = agent_play("--env", env, "--episodes", "1", environment=environment)
    assert done.returncode == 1, (done.returncode, done.stderr)
    for text in texts:
        assert text in done.stderr, f"no '{text}' in: {done.stderr}"
    return done


def odd_fails(name, *texts):
    return fails(f"gym:gym_odd:{name}-v0", *texts)


def refusals():
    fails("gym:CartPol-v1", "shoal agent play: gym:CartPol-v1: ", "Did you mean: `CartPole`?")
    fails("gym:", "shoal agent play: 'gym:' has no name behind 'gym:'")
    for name in ("gym:Cart Pole", "gym:-v1", "gym:CartPole-v", "gym:Taxi-v2"):
        said = fails(name, f"shoal agent play: {name}: ").stderr
        assert "Traceback" not in said and "\x1b" not in said, said
    fails("gym:no_such_module:X-v0", "no_such_module")
    odd_fails("Long", "its observations are Sequence(", "cannot be made a list of numbers")
    odd_fails("Boundless", "its actions are Box(-inf, inf, (2,), float32), which has no bounds")
    odd_fails("TextAction", "its actions are Text(", "Discrete, MultiDiscrete and Box can be learnt")
    odd_fails("ManyChoices", "10000 choices, and 1024 is the most")
    for name in ("Long", "Boundless"):
        assert "Traceback" not in odd_fails(name).stderr


def troubles():
    odd_fails("Raises", "Traceback (most recent call last)", 'raise ValueError("the cart is missing")',
              "shoal agent play: gym:gym_odd:Raises-v0: ValueError: the cart is missing")
    odd_fails("RaisesAtOnce", "Traceback", "KeyError: 'no such track'")
    odd_fails("Exits", "SystemExit: 3")
    odd_fails("Dies", "its Python process ended with status 5")
    odd_fails("Infinite", "an observation or a reward that is not a finite number")


def await_first_step(place, process):
    until = time.time() + PATIENCE_S
    while not (place / "pid").exists() or not (place / "pid").read_text():
        assert time.time() < until and process.poll() is None, "it does not get to its first step"
        time.sleep(0.05)


def killed():
    with folder() as place:
        playing = subprocess.Popen([SHOAL, "agent", "play", "--random", "--env", "gym:gym_odd:Hangs-v0"],
                                   env={**ENVIRONMENT, "ODD_PID": str(place / "pid")},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            await_first_step(place, playing)
            os.kill(int((place / "pid").read_text()), signal.SIGKILL)
            _, said = playing.communicate(timeout=PATIENCE_S)
        finally:
            playing.kill()
        assert playing.returncode == 1 and "its Python process died of signal 9" in said, said


def agent_train(place, *words, **options):
    """`shoal agent train` as a process, whose agent is place/agent."""
    return subprocess.Popen([SHOAL, "agent", "train", "--json", "--out", place / "agent", *words], env=ENVIRONMENT,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def last_event(printed):
    return json.loads(printed.splitlines()[-1])


def warnings_are_plain():
    """What Gymnasium says of an old version is said once, and without colours."""
    done = agent_play("--env", "gym:CartPole-v0", "--episodes", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("out of date") == 1 and "\x1b" not in done.stderr, done.stderr
    assert "Warning" not in done.stderr, done.stderr


def seconds_hold():
    """The last score is cut short, and says of how many episodes it is. A busy machine has no time for one: it gets more."""
    with folder() as place:
        for algorithm in ("ppo", "dqn"):
            for seconds in (6, 24):
                training = agent_train(place, "--env", "gym:gym_odd:Slow-v0", "--algorithm", algorithm, "--seconds",
                                       str(seconds), "--set", "streams=2,envs=1,steps=20", "--threads", "2")
                printed, said = training.communicate(timeout=PATIENCE_S)
                end = last_event(printed)
                assert training.returncode == 0 and end["event"] == "end", (printed, said)
                if end["episodes"] > 0:
                    break
            assert end["steps"] > 0 and 1 <= end["episodes"] < 100 and not end["solved"], end


def signals_end_a_training():
    """In a step that never ends, and in a score that takes minutes."""
    for name, words in (("Hangs", ()), ("Slow", ("--steps", "1", "--set", "streams=1,envs=1,steps=1"))):
        with folder() as place:
            environment = {**ENVIRONMENT, "ODD_PID": str(place / "pid")}
            training = subprocess.Popen([SHOAL, "agent", "train", "--json", "--out", place / "agent", "--algorithm", "ppo",
                                         "--env", f"gym:gym_odd:{name}-v0", *words], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                await_first_step(place, training)
                training.terminate()
                _, said = training.communicate(timeout=PATIENCE_S)
            finally:
                training.kill()
            assert training.returncode in (143, -15) and "stopped by SIGTERM" in said, (training.returncode, said)
            assert (place / "agent").exists()


def what_was_learned_is_saved():
    """One of its processes is killed, and it ends; what it has learned is there."""
    with folder() as place:
        training = agent_train(place, "--env", "gym:CartPole-v1", "--algorithm", "ppo", "--full", "--set",
                               "streams=2,envs=2,steps=32")
        try:
            training.stdout.readline()  # a round
            children = [int(pid) for pid in call("pgrep", "-P", training.pid).split()]
            os.kill(children[0], signal.SIGKILL)
            _, said = training.communicate(timeout=PATIENCE_S)
        finally:
            training.kill()
        assert training.returncode == 1 and "died of signal 9" in said, said
        assert "what was learned until then" in said and (place / "agent").exists(), said
        done = json.loads(call(SHOAL, "inspect", place / "agent", "--json"))
        assert done["steps"] > 0 and done["whole"], done


def gone_with_its_parent():
    """When the player is killed, so are its environments."""
    words = [SHOAL, "agent", "play", "--random", "--env", "gym:CartPole-v1", "--episodes", "1000000"]
    playing = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    playing.stdout.readline()
    children = [int(pid) for pid in call("pgrep", "-P", playing.pid).split()]
    assert len(children) == 1, children
    playing.kill()
    playing.wait()
    until = time.time() + PATIENCE_S
    while os.path.exists(f"/proc/{children[0]}") and time.time() < until:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{children[0]}"), "the process is still there"


def prints_are_kept_apart():
    done = agent_play("--env", "gym:gym_odd:Prints-v0", "--episodes", "2", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["event"] for line in lines] == ["episode", "episode", "end"]
    assert [line["steps"] for line in lines] == [3, 3, 6]
    assert "this is printed by the environment" in done.stderr


def no_gymnasium():
    """-S leaves out site-packages, and whatever else it is that a Python has been given."""
    with folder() as place:
        bare = place / "python"
        bare.write_text(f'#!/bin/sh\nexec {PYTHON} -S "$@"\n')
        bare.chmod(0o700)
        said = fails("gym:CartPole-v1", "has no package 'gymnasium'", "-m pip install gymnasium", "SHOAL_PYTHON",
                     environment={**ENVIRONMENT, "SHOAL_PYTHON": str(bare)})
        assert "Traceback" not in said.stderr


THEIRS = """
import time, gymnasium, numpy
vector = gymnasium.make_vec("CartPole-v1", num_envs=%d, vectorization_mode="sync")
vector.reset(seed=0)
actions = numpy.random.default_rng(3).integers(0, 2, (%d, %d))
start = time.time()
for row in actions:
    vector.step(row)
print(time.time() - start)
"""


def speed():
    envs, steps = 64, 1000
    actions = np.random.default_rng(3).integers(0, 2, (steps, envs, 1))

    def seconds(count):
        start = time.time()
        play("gym:CartPole-v1", actions[:count])
        return time.time() - start
    ours = envs * (steps - 100) / (min(seconds(steps) for _ in range(3)) - min(seconds(100) for _ in range(3)))
    theirs = envs * steps / min(float(call(PYTHON, "-c", THEIRS % (envs, steps, envs)))
                                for _ in range(3))
    print(f"CartPole-v1, {envs} environments: {ours:,.0f} steps/s through the bridge, {theirs:,.0f} in Gymnasium's "
          "own SyncVectorEnv")
    assert ours > theirs / 3


def cases():
    for name, choices in ACTIONS.items():
        yield f"{name}, the same bits", lambda n=name, c=choices: same_bits(n, c)
    yield "mixed spaces", mixed_spaces
    yield "images", images
    yield "bounds", bounds
    yield "choices that begin elsewhere", choices_that_begin_elsewhere
    yield "ends", ends
    yield "arguments", arguments
    yield "refusals", refusals
    yield "troubles", troubles
    yield "killed", killed
    yield "warnings are plain", warnings_are_plain
    yield "seconds hold", seconds_hold
    yield "signals end a training", signals_end_a_training
    yield "what was learned is saved", what_was_learned_is_saved
    yield "gone with its parent", gone_with_its_parent
    yield "prints are kept apart", prints_are_kept_apart
    yield "no gymnasium", no_gymnasium
    yield "speed", speed
