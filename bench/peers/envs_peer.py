"""envs_peer.py WHICH N SECONDS: steps a second of CartPole-v1 in other people's vector environments, as a line of JSON.

WHICH is sync (Gymnasium's SyncVectorEnv), vector (its CartPole written with NumPy for many at once) or envpool. N
environments are stepped together with random actions that were drawn beforehand; episodes that end are reset by them."""
import json
import sys
import time

import numpy as np

which, n, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
DRAWN = 16


def make():
    if which == "envpool":
        import envpool
        return envpool.make("CartPole-v1", "gymnasium", num_envs=n, num_threads=1), np.int32, envpool.__version__
    import gymnasium
    mode = {"sync": "sync", "vector": "vector_entry_point"}[which]
    return gymnasium.make_vec("CartPole-v1", num_envs=n, vectorization_mode=mode), np.int64, gymnasium.__version__


def measure(step, at_least):
    start, steps = time.perf_counter(), 0
    while (took := time.perf_counter() - start) < at_least:
        step(steps % DRAWN)
        steps += 1
    return steps * n / took


envs, kind, version = make()
envs.reset()
actions = np.random.default_rng(1).integers(0, 2, (DRAWN, n)).astype(kind)
measure(lambda i: envs.step(actions[i]), seconds / 4)
rate = measure(lambda i: envs.step(actions[i]), seconds)
print(json.dumps({"which": which, "version": version, "count": n, "steps_per_s": rate}))
