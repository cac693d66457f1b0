"""gym_play.py NAME SEED ACTIONS OUT: episodes of Gymnasium's environments, for test_gym.py to compare.

Run by GYM_PYTHON, which has Gymnasium. ACTIONS is an .npy file, steps x environments x width; environment i begins
with seed SEED + i, and an episode that ends is followed by a reset without a seed in the same step. Where an action is
not a number, it is what balances CartPole's pole. OUT is an .npz file with what interop_dump play writes, and the
actions that were taken."""
import sys

import gymnasium
import numpy as np

GOES_ON, TERMINATED, TRUNCATED = range(3)


def balance(seen):
    return float(seen[2] + 0.3 * seen[3] + 0.02 * seen[0] + 0.05 * seen[1] > 0)


def main(name, seed, actions_path, out_path):
    actions = np.load(actions_path)
    steps, envs, _ = actions.shape
    made = [gymnasium.make(name) for _ in range(envs)]
    discrete = isinstance(made[0].action_space, gymnasium.spaces.Discrete)
    first = np.stack([env.reset(seed=seed + i)[0] for i, env in enumerate(made)])
    seen = first.shape[1]
    observations, lasts = np.zeros((2, steps, envs, seen), np.float32)
    rewards, ends = np.zeros((2, steps, envs), np.float32)
    for i, env in enumerate(made):
        observation = first[i]
        for t in range(steps):
            if np.isnan(actions[t, i, 0]):
                actions[t, i, 0] = balance(observation)
            action = np.int64(actions[t, i, 0]) if discrete else actions[t, i]
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards[t, i] = reward
            ends[t, i] = TERMINATED if terminated else TRUNCATED if truncated else GOES_ON
            if ends[t, i]:
                lasts[t, i] = observation
                observation, _ = env.reset()
            assert observation.dtype == np.float32
            observations[t, i] = observation
    np.savez(out_path, actions=actions, first=first, observations=observations, lasts=lasts, rewards=rewards, ends=ends)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
