"""Sprites, and scores of them that need no learning."""

import numpy as np

from counterpoint.worlds import Sprites, collect, uniform_policy

WORLD = Sprites(3, noise_std=0.0)

EDGES = (4, 3)


def record(rows, seed):
    return collect(WORLD, uniform_policy(WORLD), rows, np.random.default_rng(seed))


class Distance:
    """Nearness of sprites, now or after the step, and of the click to each sprite compared with the others."""

    uses_next_state = False

    def scores(self, state, action):
        sprites = state.reshape(len(state), -1, 4).astype(float)
        here = sprites[..., :2]
        ahead = here + sprites[..., 2:]
        between = [np.linalg.norm(p[:, :, None] - q[:, None], axis=3) for p, q in ((here, here), (ahead, ahead))]
        click = np.linalg.norm(here - (action[:, None] + 1) / 2, axis=2)
        rival = np.where(np.eye(click.shape[1], dtype=bool), np.inf, click[:, None]).min(axis=2)
        return -np.concatenate([np.minimum(*between), (click - rival + 0.1)[:, None]], axis=1)


class Looking(Distance):
    """The same for a target that moved on undisturbed, and a larger score for one that did not."""

    uses_next_state = True

    def scores(self, state, action, next_state):
        before, after = (x.reshape(len(x), -1, 4) for x in (state, next_state))
        turned = np.abs(after[..., 2:] - before[..., 2:]).max(axis=2) > 1e-4
        return super().scores(state, action) + 0.05 * turned[:, None]


class Changed:
    """Scores of another estimator, changed."""

    def __init__(self, change):
        self.change = change

    def scores(self, state, action):
        return self.change(Distance().scores(state, action))
