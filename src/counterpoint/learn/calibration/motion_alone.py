"""What each factor does by itself: the model behind the controls of calibration.

``MotionAlone`` predicts the change of each factor from the factor alone, and from those sources that
always move it, as a motor moves its arm. It minimises absolute errors, so a minority of rows with an
interaction does not bend it. Where a factor does something else, something else moved it. Factors of
one type share weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.networks.typed import TypedMLP
from counterpoint.learn.training.fitting import AnyRows, LossFn, Training, TrainingTask, seeded
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.stages import Stages, in_stages
from counterpoint.learn.training.tokens import Tokens

_RATE, _EPOCHS = 3e-3, 26
_STAGES: Stages = ((1.0, 12 / 26), (1 / 3, 8 / 26), (1 / 15, 6 / 26))
_MOST_ROWS = 20_000  # transitions that one model is fitted to
_ROWS, _BATCH, _WIDTH = 8192, 128, 64  # rows asked about at once, rows of a minibatch, hidden units
_WELL_PREDICTED = 0.05  # a median residual below this share of the change's spread needs no further sources
_ALWAYS = 2.0  # a source always moves a target if the median residual grows by this factor without it


class OwnNetwork(nn.Module):
    """One small network for each type, which sees a state factor and its parents.

    Args:
        factors: how columns split into factors.
        parents: (N, n) which nodes each state factor sees besides itself.
        outputs: number of outputs for each factor; by default one for each of its columns.
        targets: the state factors to answer for; by default all of them.
    """

    def __init__(
        self,
        factors: Factorization,
        parents: Bools,
        *,
        outputs: int | None = None,
        targets: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.tokens, self.parents = Tokens(factors), parents
        self.targets = list(range(factors.n) if targets is None else targets)
        seen = np.flatnonzero(parents[:, self.targets].any(axis=1))
        self.seen, self.shown = torch.from_numpy(seen), torch.from_numpy(parents[seen][:, self.targets].T)
        kinds = [factors.types[factors.names[node]] for node in self.targets]
        sizes = [self.tokens.width * (1 + len(seen)), _WIDTH, _WIDTH, outputs or self.tokens.width]
        self.layers = TypedMLP(kinds, sizes, activation=silu, straight=True)

    def forward(self, batch: ScaledBatch) -> Tensor:
        """Return the outputs for each target, (B, targets, outputs)."""
        tokens = self.tokens.pack(batch.state, batch.action)
        others = tokens[:, self.seen].unsqueeze(1) * self.shown.unsqueeze(-1)
        out: Tensor = self.layers(torch.cat([tokens[:, self.targets], others.flatten(2)], dim=2))
        return out

    def error(self, batch: ScaledBatch) -> Tensor:
        """Return how far the outputs are from the change of each target, (B, targets, W); 0 where padded."""
        change = self.tokens.pack_state(batch.target("change"))[:, self.targets]
        off: Tensor = self(batch) - change
        return off.abs() * self.tokens.real[self.targets]


@dataclass(frozen=True, eq=False)
class MotionAlone:
    """What each factor does if nothing interferes."""

    factors: Factorization
    scaling: Scaling
    network: OwnNetwork  # batch -> standardised change of each state factor

    @classmethod
    def fit(cls, data: Transitions, factors: Factorization, rng: np.random.Generator) -> "MotionAlone":
        """Fit each type from itself and the context; if that predicts it badly, also from what always moves it."""
        scaling = Scaling.of(data).pooled(factors)
        rows = scaling.batch(data.state, data.action, data.next_state)
        parents = np.zeros((factors.n + factors.m, factors.n), np.bool_)
        for own in nodes_of_types(factors):
            context = [node for node in np.flatnonzero(factors.nodes(*factors.context)).tolist() if node not in own]
            parents[np.ix_(context, own)] = True
        network, helped = _fitted(factors, parents, rows, rng), parents.copy()
        for own in nodes_of_types(factors):
            if float(_typical(network, rows)[own].max()) > _WELL_PREDICTED:
                helped[np.ix_(_always(own, parents, rows, factors, rng), own)] = True
        if (helped != parents).any():
            network = _fitted(factors, helped, rows, rng)
        return cls(factors, scaling, network)

    @property
    def always(self) -> Bools:
        """The edges that are there in every transition, self-edges aside, (N, n)."""
        return self.network.parents

    def residual(self, data: Transitions) -> Floats:
        """Return how far each column of the next state is off, in standard deviations of its change, (B, S)."""
        errors = torch.cat([self.network.error(batch) for batch in scaled_batches(self.scaling, data)])
        return np.asarray(self.network.tokens.unpack_state(errors).numpy())

    def next_state(self, data: Transitions) -> Floats:
        """Return the next states that follow if nothing interferes, (B, S), in the units of the data."""
        change = torch.cat([self.network(batch) for batch in scaled_batches(self.scaling, data)])
        moved = self.scaling.change.undo(self.network.tokens.unpack_state(change))
        return np.asarray(data.state + moved.numpy(), data.next_state.dtype)


def nodes_of_types(factors: Factorization) -> list[list[int]]:
    """Return the state factors of each type."""
    nodes: dict[str, list[int]] = {}
    for node, name in enumerate(factors.state):
        nodes.setdefault(factors.types[name], []).append(node)
    return list(nodes.values())


def scaled_batches(scaling: Scaling, data: Transitions) -> Iterator[ScaledBatch]:
    """Yield standardised batches of the data, one after another, without gradients."""
    with torch.no_grad():
        for start in range(0, len(data), _ROWS):
            rows = slice(start, start + _ROWS)
            yield scaling.batch(data.state[rows], data.action[rows], data.next_state[rows])


def train(
    network: nn.Module, loss: LossFn[AnyRows], rows: AnyRows, rng: np.random.Generator, effort: float = 1.0
) -> None:
    """Train in stages of falling learning rate; a tenth of the rows decides which epoch was best."""
    order = torch.from_numpy(rng.permutation(len(rows))[:_MOST_ROWS])
    held, epochs = max(1, len(order) // 10), max(1, round(effort * _EPOCHS))
    training = Training(epochs=epochs, batch_size=_BATCH, learning_rate=_RATE, patience=epochs)
    task = TrainingTask(rows[order[held:]], rows[order[:held]], training, rng, progress=False)
    in_stages(network, loss, task, stages=_STAGES)


def _fitted(
    factors: Factorization,
    parents: Bools,
    rows: ScaledBatch,
    rng: np.random.Generator,
    targets: Sequence[int] | None = None,
) -> OwnNetwork:
    """Return a network of the changes, fitted by least absolute deviations."""
    with seeded(rng):
        network = OwnNetwork(factors, parents, targets=targets)
    columns = network.tokens.real[network.targets].sum()
    train(network, lambda batch, _: network.error(batch).sum(dim=(1, 2)).mean() / columns, rows, rng)
    return network


def _typical(network: OwnNetwork, rows: ScaledBatch) -> Tensor:
    """Return the median error of the worst column of each target, (targets,)."""
    with torch.no_grad():
        return network.error(rows).median(dim=0).values.amax(dim=1)


def _always(
    own: Sequence[int], parents: Bools, rows: ScaledBatch, factors: Factorization, rng: np.random.Generator
) -> list[int]:
    """Return the sources without which the factors of a type are predicted much worse in most rows.

    Only sources that are alone of their type are tried. One that a model relies on, so that shuffling it
    among the rows does harm, may still be dispensable: where a policy looks at the ball, the ball says
    what the action says. So models are fitted without each of them, state factors first.
    """
    kinds = [factors.types[name] for name in factors.names]
    known = {*own, *np.flatnonzero(parents[:, own[0]]).tolist()}
    tried = [node for node, kind in enumerate(kinds) if kinds.count(kind) == 1 and node not in known]
    if not tried:
        return []

    def given(nodes: Sequence[int]) -> OwnNetwork:
        told = parents.copy()
        told[np.ix_(nodes, own)] = True
        return _fitted(factors, told, rows, rng, own)

    network = given(tried)
    most = max(_ALWAYS * float(_typical(network, rows).max()), _WELL_PREDICTED)
    order = torch.from_numpy(rng.permutation(len(rows)))
    needed = [n for n in tried if float(_typical(network, _shuffled(rows, n, order, factors)).max()) > most]
    for node in tuple(needed):
        others = [other for other in needed if other != node]
        if float(_typical(given(others), rows).max()) <= most:
            needed = others
    return needed


def _shuffled(rows: ScaledBatch, node: int, order: Tensor, factors: Factorization) -> ScaledBatch:
    """Return the rows with the columns of a node from other rows."""
    state, action, name = rows.state.clone(), rows.action.clone(), factors.names[node]
    space, own = (state, factors.state[name]) if node < factors.n else (action, factors.action[name])
    space[:, list(own)] = space[order][:, list(own)]
    return replace(rows, state=state, action=action)
