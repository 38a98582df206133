"""Small worlds of data for tests, as functions of a generator."""

import numpy as np

from counterpoint import Factorization, Transitions


def make_factors(n, m, width=2, **others):
    return Factorization.blocks(
        state={f"s{i}": width for i in range(n)}, action={f"a{i}": 1 for i in range(m)}, **others
    )


def make_data(factors, rows, rng, dtype=np.float64):
    shape = (rows, factors.state_width)
    return Transitions(
        state=rng.random(shape).astype(dtype),
        action=rng.random((rows, factors.action_width)).astype(dtype),
        reward=np.zeros(rows, dtype),
        next_state=rng.random(shape).astype(dtype),
        terminated=np.zeros(rows, bool),
    )


class HashedMask:
    """A mask that is an arbitrary but fixed function of state and action: edges by pseudo-random bits."""

    def __init__(self, factors, density, salt=0):
        self.factors, self.density, self.salt = factors, density, salt

    def __call__(self, state, action):
        f = self.factors
        nodes = np.column_stack(
            [state[:, list(c)].sum(axis=1) for c in f.state.values()]
            + [action[:, list(c)].sum(axis=1) for c in f.action.values()]
        )
        mixed = (
            np.abs(np.sin(nodes[:, :, None] * 12.9898 + nodes[:, None, : f.n] * 78.233 + self.salt) * 43758.5453) % 1
        )
        mask = mixed < self.density
        mask[:, range(f.n), range(f.n)] = True
        return mask


def first_column(state, action, next_state):
    return next_state[:, 0]
