"""agents_peer.py ENV ALGORITHM SEED SECONDS [THREADS]: Stable-Baselines3 until an environment is solved, as a line of JSON.

Hyper-parameters are those that RL Baselines3 Zoo found for the environment. Solved means: 100 episodes with the policy's
best actions have a mean of at least the goal. That is tried every so many steps (20 episodes first, and the other 80
unless these rule it out); `seconds` is learning alone, `seconds_all` counts the tries too, and neither has the
imports. It ends when solved, after the Zoo's number of steps, or after SECONDS of learning. PyTorch has THREADS, 2 unless
given. With TRIES=no in the environment nothing is tried: for how many steps a second it makes."""
import json
import os
import sys
import time

import gymnasium
import numpy as np
import stable_baselines3 as sb3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize, sync_envs_normalization

GOALS = {"CartPole-v1": 475, "Acrobot-v1": -100, "MountainCar-v0": -110, "MountainCarContinuous-v0": 90,
         "Pendulum-v1": -160, "LunarLander-v3": 200}
FIRST, REST, SCORE_SEED = 20, 80, 1_000_000


def falling(value):
    return lambda left: left * value


# By environment and algorithm: environments, whether what is seen and earned is scaled, steps in all, steps between two
# tries, and what the algorithm is made with.
ZOO = {
    ("CartPole-v1", "ppo"): (8, False, 100_000, 2_048, dict(
        n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0, learning_rate=falling(0.001),
        clip_range=falling(0.2))),
    ("CartPole-v1", "dqn"): (1, False, 50_000, 2_048, dict(
        learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1_000, gamma=0.99,
        target_update_interval=10, train_freq=256, gradient_steps=128, exploration_fraction=0.16,
        exploration_final_eps=0.04, policy_kwargs=dict(net_arch=[256, 256]))),
    ("Acrobot-v1", "ppo"): (16, True, 1_000_000, 4_096, dict(
        n_steps=256, gae_lambda=0.94, gamma=0.99, n_epochs=4, ent_coef=0.0)),
    ("MountainCar-v0", "dqn"): (1, False, 120_000, 4_000, dict(
        learning_rate=4e-3, batch_size=128, buffer_size=10_000, learning_starts=1_000, gamma=0.98,
        target_update_interval=600, train_freq=16, gradient_steps=8, exploration_fraction=0.2,
        exploration_final_eps=0.07, policy_kwargs=dict(net_arch=[256, 256]))),
    ("MountainCarContinuous-v0", "sac"): (1, False, 50_000, 2_000, dict(
        learning_rate=3e-4, buffer_size=50_000, batch_size=512, ent_coef=0.1, train_freq=32, gradient_steps=32, gamma=0.9999,
        tau=0.01, learning_starts=0, use_sde=True, policy_kwargs=dict(log_std_init=-3.67, net_arch=[64, 64]))),
    ("Pendulum-v1", "sac"): (1, False, 20_000, 1_000, dict(learning_rate=1e-3)),
    ("LunarLander-v3", "ppo"): (16, False, 1_000_000, 16_384, dict(
        n_steps=1024, batch_size=64, gae_lambda=0.98, gamma=0.999, n_epochs=4, ent_coef=0.01)),
    ("LunarLander-v3", "dqn"): (1, False, 100_000, 5_000, dict(
        learning_rate=6.3e-4, batch_size=128, buffer_size=50_000, learning_starts=0, gamma=0.99, target_update_interval=250,
        train_freq=4, gradient_steps=-1, exploration_fraction=0.12, exploration_final_eps=0.1,
        policy_kwargs=dict(net_arch=[256, 256]))),
}


class Judge(BaseCallback):
    """Tries now and then whether it is solved, and keeps the time of that apart."""

    def __init__(self, env, goal, every, seconds_max):
        super().__init__()
        self.env, self.goal, self.every, self.seconds_max = env, goal, every, seconds_max
        self.next, self.trying, self.tries, self.mean, self.solved = every, 0.0, 0, None, False
        self.start = time.perf_counter()

    def learned(self):
        return time.perf_counter() - self.start - self.trying

    def returns(self, count):
        return evaluate_policy(self.model, self.env, count, deterministic=True, return_episode_rewards=True, warn=False)[0]

    def score(self):
        start = time.perf_counter()
        if isinstance(self.env, VecNormalize):
            sync_envs_normalization(self.training_env, self.env)
        returns = self.returns(FIRST)
        if np.mean(returns) + 2 * np.std(returns) / FIRST ** 0.5 >= self.goal:
            returns += self.returns(REST)
        self.tries += 1
        self.mean = float(np.mean(returns))
        self.solved = len(returns) == FIRST + REST and self.mean >= self.goal
        self.trying += time.perf_counter() - start

    def _on_step(self):
        if self.num_timesteps >= self.next:
            self.next = self.num_timesteps + self.every
            self.score()
        return not self.solved and self.learned() < self.seconds_max


def main():
    name, algorithm, seed, seconds_max = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    envs, scaled, steps, every, options = ZOO[name, algorithm]
    torch.set_num_threads(int(sys.argv[5]) if len(sys.argv) > 5 else 2)
    if os.environ.get("TRIES") == "no":
        every = 10 * steps
    judged = make_vec_env(name, n_envs=FIRST, seed=SCORE_SEED + seed)
    if scaled:
        judged = VecNormalize(judged, training=False, norm_reward=False)
    judge = Judge(judged, GOALS[name], every, seconds_max)
    env = make_vec_env(name, n_envs=envs, seed=seed)
    if scaled:
        env = VecNormalize(env, gamma=options["gamma"])
    model = {"ppo": sb3.PPO, "dqn": sb3.DQN, "sac": sb3.SAC}[algorithm]("MlpPolicy", env, seed=seed, device="cpu", **options)
    model.learn(steps, callback=judge)
    if not judge.solved and judge.learned() < seconds_max and every < steps:
        judge.score()
    print(json.dumps({
        "env": name, "algorithm": algorithm, "seed": seed, "solved": bool(judge.solved), "steps": model.num_timesteps,
        "seconds": judge.learned(), "seconds_all": judge.learned() + judge.trying, "tries": judge.tries,
        "return_mean": judge.mean, "steps_max": steps,
        "version": f"{sb3.__version__}, PyTorch {torch.__version__}, Gymnasium {gymnasium.__version__}"}))


main()
