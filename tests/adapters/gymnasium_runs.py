"""Runs of environments, and whether two of them are equal."""

import numpy as np

TASKS = ["place-1", "place-4-sparse", "pong"]
BODIES = {"place-1": 4, "place-4-sparse": 4, "pong": 3}


def random_actions(steps, *shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, *shape, 2)).astype(np.float32)


def run(env, actions, seed):
    """Everything that an environment returns, until the actions are used up."""
    record = [env.reset(seed=seed)[0]]
    for action in actions:
        observation, reward, _, truncated, info = env.step(action)
        record += [observation, reward, truncated, *info.values()]
        if np.ndim(truncated) == 0 and truncated:
            record.append(env.reset()[0])
    return record


def equal(first, second):
    return len(first) == len(second) and all(map(np.array_equal, first, second))
