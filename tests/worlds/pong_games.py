"""States and games of Pong for the tests."""

import numpy as np

from counterpoint.worlds.pong import pong_policy

AGENT, OPPONENT, BALL, ACTION = range(4)
SCALE = np.array([0.3, 1.1, 2, 2, 0.3, 1.1, 2, 2, 2.1, 1.1, 2, 2])  # metres and m/s of a column at 1
STATE_OWNER = np.repeat([AGENT, OPPONENT, BALL], 4)
MIRRORED = np.tile([1, -1], 6)  # y and vy change sign


def crowded(size, rng, dtype=np.float64):
    """Draw states full of incidents, with actions and targets: most balls near a paddle, some near walls."""
    state = rng.uniform(-1, 1, (size, 3, 4)) * [1, 1, 1.5, 1.5]
    state[:, :2, :2] = np.where(rng.random((size, 2, 2)) < 0.1, np.sign(state[:, :2, :2]), state[:, :2, :2])
    side = rng.integers(0, 2, size)
    paddle = state[np.arange(size), side, :2] * [0.3, 1.1] + np.stack([2.6 * side - 1.3, 0 * side], axis=1)
    near = np.clip(paddle + rng.uniform(-1, 1, (size, 2)) * [0.1, 0.23], [-2.1, -1.1], [2.1, 1.1])
    edge = np.where(rng.random((size, 2)) < 0.5, rng.choice([-1, 1], (size, 2)) * rng.uniform(0.9, 1, (size, 2)), 0)
    state[:, 2, :2] = np.where(rng.random((size, 1)) < 0.8, near / [2.1, 1.1], edge)
    fast = rng.random(size) < 0.05
    state[fast, 2, 2:] *= 5
    columns = state.reshape(size, 12), rng.uniform(-1, 1, (size, 2)), rng.uniform(-0.9, 0.9, (size, 2))
    return tuple(column.astype(dtype) for column in columns)


def played(environments, steps, *, noise_level, rng, world):
    """Run `pong_policy` with the episode rules; return state, action, noise, next state of all steps."""
    rows, state, noise = [], world.reset(environments, rng), world.noise(environments, rng)
    count, scored = np.zeros(environments, int), np.zeros(environments, int)
    for _ in range(steps):
        action = pong_policy(state, rng, noise_level=noise_level)
        after = world.step(state, action, noise)
        rows.append((state, action, noise, after))
        count, scored = count + 1, scored + (world.reward(state, action, after) != 0)
        over = world.ends(count, scored)
        state, noise = after.copy(), noise.copy()
        state[over], noise[over] = world.reset(over.sum(), rng), world.noise(over.sum(), rng)
        count[over] = scored[over] = 0
    return tuple(np.concatenate(column) for column in zip(*rows, strict=True))


def alone(**values):
    """Build one float64 state in metres and m/s; what is not given is 0."""
    names = [f"{factor}_{column}" for factor in ("agent", "opponent", "ball") for column in ("x", "y", "vx", "vy")]
    state = np.zeros((1, 12))
    for name, value in values.items():
        state[0, names.index(name)] = value
    return state / SCALE
