"""What each factor does by itself: the model behind the controls of calibration.

``Baseline`` predicts the change of each factor from the factor alone, and from those sources that move
it always, as a motor moves its arm. It is fitted by least absolute deviations, so that the rows with an
interaction, if they are the minority, do not bend it. Where a factor does something else, something else
moved it. Factors of one type share weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.training.fitting import LossFn, Task, Training, minimise, seeded
from counterpoint.learn.training.inputs import Batch, Moments, Scaling

_STAGES = ((3e-3, 12), (1e-3, 8), (2e-4, 6))  # learning rates and epochs, one stage after another
_MOST_ROWS = 20_000  # transitions that one model is fitted to, at the most
_CHUNK, _BATCH, _WIDTH = 8192, 128, 64  # rows at once, rows of a minibatch, hidden units
_WELL_PREDICTED = 0.05  # a median residual below this share of the change's spread needs no further sources
_ALWAYS = 2.0  # a source moves a target always if the median residual grows by this factor without it


@dataclass(frozen=True, eq=False)
class Group:
    """The state factors of one type, which share a model."""

    nodes: tuple[int, ...]  # k state factors
    columns: Tensor  # (k, W) their columns of the state
    parents: tuple[int, ...] = ()  # nodes that move them always
    inputs: Tensor | None = None  # (P,) columns of [state, action] that the parents own

    @property
    def width(self) -> int:
        """Number of features of a factor."""
        return self.columns.shape[1] + (0 if self.inputs is None else len(self.inputs))

    def features(self, batch: Batch) -> Tensor:
        """Return what a model of these factors sees, (B, k, W + P)."""
        own = batch.state[:, self.columns]
        if self.inputs is None:
            return own
        others = torch.cat([batch.state, batch.action], dim=1)[:, self.inputs]
        return torch.cat([own, others[:, None].expand(-1, len(self.nodes), -1)], dim=2)

    def given(self, parents: Sequence[int], factors: Factorization) -> "Group":
        """Return the same group with these nodes as parents."""
        columns = [c for node in parents for c in columns_of(factors, node)]
        return replace(self, parents=tuple(parents), inputs=torch.tensor(columns) if columns else None)


class PerType(nn.Module):
    """One small network for each type, with a linear path beside it that makes simple laws exact.

    Args:
        groups: the types.
        places: for each type where in a row its outputs go, (k, outputs).
        size: length of such a row.
    """

    def __init__(self, groups: Sequence[Group], places: Sequence[Tensor], size: int) -> None:
        super().__init__()
        self.groups, self.places, self.size = list(groups), list(places), size
        shapes = [(group.width, place.shape[1]) for group, place in zip(groups, places, strict=True)]
        self.straight = nn.ModuleList([nn.Linear(*shape) for shape in shapes])
        self.bent = nn.ModuleList([_mlp(*shape) for shape in shapes])

    def forward(self, batch: Batch) -> Tensor:
        """Return the outputs of all types side by side, (B, size); 0 where there are none."""
        row = batch.state.new_zeros(len(batch), self.size)
        for group, place, straight, bent in zip(self.groups, self.places, self.straight, self.bent, strict=True):
            features = group.features(batch)
            row[:, place.flatten()] = (straight(features) + bent(features)).flatten(1)
        return row


@dataclass(frozen=True, eq=False)
class Baseline:
    """What each factor does if nothing interferes."""

    factors: Factorization
    scaling: Scaling
    network: PerType  # batch -> standardised change of each state column, (B, S); 0 for derived ones

    @classmethod
    def fit(cls, data: Transitions, factors: Factorization, rng: np.random.Generator) -> "Baseline":
        """Fit each type from itself and the context; one that this predicts badly also from what moves it always."""
        scaling = pooled_scaling(data, factors)
        rows = scaling.batch(data.state, data.action, data.next_state)
        context = np.flatnonzero(factors.nodes(*factors.context)).tolist()
        groups = [group.given([c for c in context if c not in group.nodes], factors) for group in grouped(factors)]
        network = _fitted(groups, rows, rng)
        badly = [group for group in groups if _worst(network, group, rows) > _WELL_PREDICTED]
        helped = {group.nodes: _always(group, rows, factors, rng) for group in badly}
        if any(helped.values()):
            groups = [group.given((*group.parents, *helped.get(group.nodes, ())), factors) for group in groups]
            network = _fitted(groups, rows, rng)
        return cls(factors, scaling, network)

    @cached_property
    def always(self) -> Bools:
        """The edges that are there in every transition, self-edges aside, (N, n)."""
        edges = np.zeros((self.factors.n + self.factors.m, self.factors.n), np.bool_)
        for group in self.network.groups:
            edges[np.ix_(group.parents, group.nodes)] = True
        return edges

    def residual(self, data: Transitions) -> Floats:
        """Return how far each column of the next state is off, in standard deviations of its change, (B, S)."""
        parts = [self.network(batch) - batch.target("change") for batch in chunks(self.scaling, data)]
        return np.asarray(torch.cat(parts).abs().numpy())

    def next_state(self, data: Transitions) -> Floats:
        """Return the next states that follow if nothing interferes, (B, S), in the units of the data."""
        parts = [self.scaling.change.undo(self.network(batch)) for batch in chunks(self.scaling, data)]
        return np.asarray(data.state + torch.cat(parts).numpy(), data.next_state.dtype)


def grouped(factors: Factorization) -> list[Group]:
    """Return one group for each type of state factor."""
    nodes: dict[str, list[int]] = {}
    for node, name in enumerate(factors.state):
        nodes.setdefault(factors.types[name], []).append(node)
    return [Group(tuple(own), torch.tensor([columns_of(factors, node) for node in own])) for own in nodes.values()]


def columns_of(factors: Factorization, node: int) -> tuple[int, ...]:
    """Return the columns of ``[state, action]`` that a node owns."""
    name = factors.names[node]
    if node < factors.n:
        return factors.state[name]
    return tuple(column + factors.state_width for column in factors.action[name])


def pooled_scaling(data: Transitions, factors: Factorization) -> Scaling:
    """Measure the data so that factors of one type have the same units and can share weights."""
    scaling = Scaling.of(data)
    kinds: dict[str, list[tuple[int, ...]]] = {}
    for name in factors.action:
        kinds.setdefault(factors.types[name], []).append(factors.action[name])
    state = [group.columns.tolist() for group in grouped(factors)]
    return Scaling(
        state=_pooled(scaling.state, state),
        action=_pooled(scaling.action, list(kinds.values())),
        next_state=_pooled(scaling.next_state, state),
        change=_pooled(scaling.change, state),
    )


def _pooled(moments: Moments, groups: Sequence[Sequence[Sequence[int]]]) -> Moments:
    """Give the columns of each group the moments of all its factors together."""
    mean, std = np.array(moments.mean), np.array(moments.std)
    for group in groups:
        columns: Ints = np.array(group)  # (k, W)
        means, squares = mean[columns], np.square(std[columns])
        mean[columns] = means.mean(axis=0)
        std[columns] = np.sqrt(squares.mean(axis=0) + means.var(axis=0))
    return Moments(tuple(mean.tolist()), tuple(std.tolist()))


def chunks(scaling: Scaling, data: Transitions) -> Iterator[Batch]:
    """Yield standardised parts of the data, one after another, without gradients."""
    with torch.no_grad():
        for start in range(0, len(data), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield scaling.batch(data.state[part], data.action[part], data.next_state[part])


def _mlp(inputs: int, outputs: int) -> nn.Sequential:
    """Return a network of two hidden layers that starts at zero."""
    last = nn.Linear(_WIDTH, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, _WIDTH), nn.SiLU(), nn.Linear(_WIDTH, _WIDTH), nn.SiLU(), last)


def _fitted(groups: Sequence[Group], rows: Batch, rng: np.random.Generator) -> PerType:
    """Return a network of the changes, fitted by least absolute deviations."""
    with seeded(rng):
        network = PerType(groups, [group.columns for group in groups], rows.state.shape[1])
    owned = torch.cat([place.flatten() for place in network.places])

    def loss(batch: Batch, generator: torch.Generator) -> Tensor:  # noqa: ARG001
        off: Tensor = network(batch) - batch.target("change")
        return off[:, owned].abs().mean()

    train(network, loss, rows, rng)
    return network


def train(network: nn.Module, loss: LossFn, rows: Batch, rng: np.random.Generator, effort: float = 1.0) -> None:
    """Train in stages of falling learning rate; a tenth of the rows decides which epoch was best."""
    order = torch.from_numpy(rng.permutation(len(rows))[:_MOST_ROWS])
    held = max(1, len(order) // 10)
    for rate, usual in _STAGES:
        epochs = max(1, round(effort * usual))
        training = Training(epochs=epochs, batch_size=_BATCH, learning_rate=rate, patience=epochs)
        minimise(network, loss, Task(rows[order[held:]], rows[order[:held]], training, rng, progress=False))


def _worst(network: PerType, group: Group, rows: Batch) -> float:
    """Return the median residual of a group's worst column."""
    with torch.no_grad():
        off = (network(rows) - rows.target("change"))[:, group.columns].abs()
    return float(off.flatten(1).median(dim=0).values.max())


def _always(group: Group, rows: Batch, factors: Factorization, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the sources without which a group is predicted much worse in most rows.

    Sources are tried that are the only ones of their type. One that a model relies on, so that shuffling
    it among the rows does harm, may still be dispensable: where a policy looks at the ball, the ball
    says what the action says. So models are fitted without each of them, state factors first.
    """
    kinds = [factors.types[name] for name in factors.names]
    known = {*group.nodes, *group.parents}
    tried = [node for node, kind in enumerate(kinds) if kinds.count(kind) == 1 and node not in known]
    if not tried:
        return ()
    network = _given(group, tried, rows, factors, rng)
    most = max(_ALWAYS * _worst(network, group, rows), _WELL_PREDICTED)
    order = torch.from_numpy(rng.permutation(len(rows)))
    needed = [node for node in tried if _worst(network, group, _shuffled(rows, node, order, factors)) > most]
    for node in tuple(needed):
        others = [other for other in needed if other != node]
        if _worst(_given(group, others, rows, factors, rng), group, rows) <= most:
            needed = others
    return tuple(needed)


def _given(
    group: Group, parents: Sequence[int], rows: Batch, factors: Factorization, rng: np.random.Generator
) -> PerType:
    """Return a network of one group, fitted with these parents besides those that it has."""
    return _fitted([group.given((*group.parents, *parents), factors)], rows, rng)


def _shuffled(rows: Batch, node: int, order: Tensor, factors: Factorization) -> Batch:
    """Return the rows with the columns of a node from other rows."""
    columns, width = torch.tensor(columns_of(factors, node)), rows.state.shape[1]
    both = torch.cat([rows.state, rows.action], dim=1)
    both[:, columns] = both[order][:, columns]
    return replace(rows, state=both[:, :width], action=both[:, width:])
