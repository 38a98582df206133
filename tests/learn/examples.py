"""Data, factors and networks that several tests of learning share."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from counterpoint import Factorization, Transitions
from counterpoint.core.positions import Position
from counterpoint.learn import NetworkEstimator
from counterpoint.learn.training.scaling import Scaling

FACTORS = Factorization.blocks(state={"cart": 2, "pole": 1, "goal": 1}, action={"push": 1})


def make_data(rng, rows=300, factors=FACTORS, dtype=np.float32, **optional):
    state = rng.normal(3.0, 2.0, (rows, factors.state_width)).astype(dtype)
    action = rng.uniform(-1, 1, (rows, factors.action_width)).astype(dtype)
    flat = np.concatenate([state, action], axis=1)
    next_state = (state + 0.1 * flat.sum(axis=1, keepdims=True)).astype(dtype)
    return Transitions(state, action, np.zeros(rows), next_state, np.zeros(rows, bool), **optional)


@dataclass(frozen=True, kw_only=True)
class Linear(NetworkEstimator):
    """The least estimator there is: a linear model of the change; its weights are the scores."""

    epochs: int = 3
    batch_size: int = 64

    def build(self, factors, scaling):
        return nn.Linear(factors.state_width + factors.action_width, factors.state_width)

    def loss(self, network, batch, generator):
        return (network(torch.cat([batch.state, batch.action], dim=1)) - batch.target("change")).square().mean()

    def edges(self, network, batch):
        weights = network.weight.T.abs()
        nodes = torch.tensor([0, 0, 1, 2, 3])
        rows = torch.zeros(4, 4).index_add(0, nodes, weights)
        scores = torch.zeros(4, 3).index_add(1, nodes[:4], rows)
        return scores + 0 * batch.state[:, :1, None]


ONE_WAY = Factorization.blocks(
    state={"driver": 2, "driven": 1, "alone": 1}, action={"push": 1}, types={"driven": "follower", "alone": "hermit"}
)

EDGES = {("driver", "driven"), ("push", "driver")}


def one_way(rng, rows=1200):
    """The push moves the driver, the driver moves the driven, and nothing comes back."""
    state, action = rng.normal(size=(rows, 4)), rng.uniform(-1, 1, (rows, 1))
    driver, driven, alone = state[:, :2], state[:, 2:3], state[:, 3:]
    after = [0.5 * driver + 2.0 * action, 0.5 * driven + driver[:, :1] - driver[:, 1:], -alone]
    return Transitions(state, action, np.zeros(rows), np.concatenate(after, axis=1), np.zeros(rows, bool))


ALIKE = Factorization.blocks(
    state={"a": 2, "b": 2, "wall": 1},
    action={"click": 1},
    positions={"a": (0,), "b": (2,), "click": Position((0,), 0.5, 0.5)},
    types={"a": "bead", "b": "bead"},
)

NETWORKS = pytest.mark.parametrize("factors", [ONE_WAY, ALIKE], ids=["trunk", "messages"])


def batch_of(rng, factors, rows=6):
    data = make_data(rng, factors=factors)
    scaling = Scaling.of(data)
    return scaling, scaling.batch(data.state, data.action, data.next_state)[:rows]


REACH = 0.05


class Beads:
    """Three beads on a line, (x, v) each. A bead turns back from one that is in its way; a click, in
    [0, 1] after scaling, speeds up the nearest bead. Only the one that turns back is influenced."""

    factors = Factorization.blocks(
        state={"a": 2, "b": 2, "c": 2},
        action={"click": 1},
        positions={"a": (0,), "b": (2,), "c": (4,), "click": Position((0,), 0.5, 0.5)},
        types={"a": "bead", "b": "bead", "c": "bead"},
    )

    def run(self, state, action):
        x, v = state[:, ::2].astype(float), state[:, 1::2].astype(float)
        nearest = np.abs(x - (0.5 * action + 0.5)).argmin(axis=1)
        edges = np.zeros((len(x), 4, 3), bool)
        edges[:, [0, 1, 2], [0, 1, 2]] = edges[np.arange(len(x)), 3, nearest] = True
        v = v + 0.03 * edges[:, 3]
        ahead = x + v
        for j in range(3):
            meets = np.abs(ahead[:, [j]] - x) < REACH
            meets[:, j] = False
            edges[:, :3, j] |= meets
        stopped = edges[:, :3].sum(axis=1) > 1
        after = np.stack([np.where(stopped, x, ahead), np.where(stopped, -v, v)], axis=2)
        return after.reshape(state.shape).astype(state.dtype), edges

    def data(self, rows, seed):
        rng = np.random.default_rng(seed)
        state = np.stack([rng.uniform(0, 1, (rows, 3)), rng.uniform(-0.05, 0.05, (rows, 3))], axis=2).reshape(rows, 6)
        action = rng.uniform(-1, 1, (rows, 1))
        return Transitions(state, action, np.zeros(rows), self.run(state, action)[0], np.zeros(rows, bool))
