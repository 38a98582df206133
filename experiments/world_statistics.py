"""Do the worlds behave like the originals? Published and re-measured numbers beside ours.

python -m experiments.world_statistics
"""

import numpy as np

from counterpoint import components
from counterpoint.worlds import Place, Pong, Sprites, collect, pong_policy, uniform_policy
from experiments import machine, pages

STEPS, GAMES = 200_000, 2000


def sprites() -> list[list[object]]:
    """Collisions, walls, components and the random policy's rewards."""
    world = Sprites()
    data = collect(
        world, uniform_policy(world), STEPS, np.random.default_rng(0), episode_length=50, reset_probability=0.0
    )
    mask = world.mask(data.state, data.action, data.noise)
    touching = (mask[:, :4] & ~np.eye(4, dtype=bool)).any(axis=(1, 2))
    count = np.array([len(set(row)) for row in components(mask).tolist()])
    ahead = data.state.reshape(-1, 4, 4)
    ahead = ahead[:, :, :2] + ahead[:, :, 2:]
    wall = ((ahead >= 1) | (ahead <= 0)).any(axis=(1, 2))
    rows: list[list[object]] = [
        ["steps with a collision", "0.20", touching.mean()],
        ["steps with a wall hit (before the action)", "0.32", wall.mean()],
    ]
    for k, was in ((4, "0.79-0.80"), (3, "0.18-0.20"), (2, "0.014"), (1, "0.0006")):
        rows.append([f"steps with {k} components", was, (count == k).mean()])
    for sparse, published in ((False, (0.27, 0.27, 0.22, 0.19)), (True, (0.27, 0.07, 0.006, 0.001))):
        for n, value in enumerate(published, start=1):
            kind = "sparse" if sparse else "partial"
            reward = Place(n, sparse=sparse)(data.state, data.action, data.next_state)
            rows.append([f"random policy, Place {n} {kind}", str(value), float(reward.mean())])
    return rows


def pong() -> list[list[object]]:
    """Episodes of the scripted player at several noise levels, with the code's limit of 250 steps."""
    world = Pong(length=250)
    rows: list[list[object]] = []
    for level, was in ((0.0, "0.88"), (0.5, "0.60"), (0.7, "0.37"), (1.0, "0.13")):
        rng = np.random.default_rng(1)
        state, noise = world.reset(GAMES, rng), world.noise(GAMES, rng)
        steps, scored, last = np.zeros(GAMES, int), np.zeros(GAMES, int), np.zeros(GAMES)
        for _ in range(world.length):
            playing = ~world.ends(steps, scored)
            action = pong_policy(state, rng, noise_level=level)
            after = world.step(state, action, noise)
            reward = world.reward(state, action, after)
            steps[playing] += 1
            scored[playing] += reward[playing] != 0
            last[playing] = reward[playing]
            state = after
        rows.append([f"Pong, success at noise {level}", was, float(world.success(last).mean())])
        if level == 0.5:
            rows.append(["Pong, steps in an episode at noise 0.5", "105", float(steps.mean())])
            rows.append(["Pong, steps with a reward at noise 0.5", "0.11", float(scored.sum() / steps.sum())])
    return rows


def main() -> None:
    """Print the table."""
    print(machine.describe())
    pages.print_table("Worlds beside the originals", ["quantity", "original", "ours"], sprites() + pong())


if __name__ == "__main__":
    main()
