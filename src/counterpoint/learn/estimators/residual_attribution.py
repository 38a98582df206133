"""ResidualAttribution: if a factor does what it would not do by itself, another one caused it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_counts
from counterpoint.learn.estimators.estimator import NetworkEstimator
from counterpoint.learn.networks.features import Nodes, Seen
from counterpoint.learn.networks.typed import TypedMLP
from counterpoint.learn.training.fitting import History, TrainingTask
from counterpoint.learn.training.inputs import require_several
from counterpoint.learn.training.scaling import Rows, ScaledBatch, Scaling
from counterpoint.learn.training.stages import all_or_nothing, in_stages

_LAYERS = 3  # hidden layers of a model of motion: walls are sharp
_FINEST = 0.01  # smallest usual residual, in standard deviations of the change; no finer one is believed
_RARE = -4.0  # log odds of an influence before anything is learned
_NEVER = -30.0  # log odds of what is no pair: a factor's influence on itself
_MISFIT = 10.0  # how many times more it costs to blame the model of motion than to blame a factor
_CLEAR = 0.98  # an influence stands if swapping its source makes a difference in this share of rows
_STANDING = 0.25  # or in this share, to a target that never moves by itself and has no clear one
_BESIDE = 0.5  # beside a clear one of such a target: in this share of the rows in which that one does
_NEVER_ALONE = 0.6  # such a target errs from its model of motion in this share of rows
_BEYOND = 2.0  # a difference, or an error, is one beyond this many usual residuals
_ROWS = 4096  # rows that are looked at at once


@dataclass(frozen=True, kw_only=True)
class ResidualAttribution(NetworkEstimator):
    """Explain anomalies in the motion of each factor by the factors that could have caused them.

    No labels are used. There are three steps:

    1. *Models of motion* predict each factor's change, and how large their error usually is: from the
       factor alone, from the factor and the actions, and from everything. They minimise absolute errors,
       so that a minority of entangled rows does not bend them. Factors of one type share a model.
    2. An *anomaly* is a residual far beyond the usual one. "Usual" is the smallest error that any of the models
       expects, so that motion which everything together explains does not pass for noise.
    3. *Gates* g(i, j) explain them, by a noisy-or: P(anomaly of j) = 1 − Π (1 − g(i, j)) over sources i.
       Anomalies that neither the factor alone nor the actions account for are explained by state
       factors; those of the factor alone, by state factors and actions together. A gate sees source and
       target alone (all pairs of the same types share one), and where positions are declared how they
       lie to each other, now and after the step that actions and their own motion would make. An open gate
       costs a little. Anomalies that the target itself announces, such as a wall that the model of motion got
       wrong, are explained away in the same manner.

    The score of an edge is its gate, the probability of an influence, from state and action alone. An
    influence *stands* if swapping its source almost always makes a difference to the model that sees
    everything (a motor, to the arm it drives); where a target never moves by itself, those stand, too, that
    often make one. The score is then at least the share of rows in which they do, and these sources are known
    to the models of step 1.

    It is at its best where influences come and go: contacts, clicks, switches. It cannot tell where a standing
    influence pauses. It does not see influences far below the noise, nor those that two sources have only
    together. It needs all three steps: interrupted before the gates are trained, ``fit`` raises
    ``KeyboardInterrupt``.

    Attributes:
        width: hidden units of the models of motion.
        gate_width: hidden units of the gates.
        surprise: a residual so many times the usual one is an anomaly.
        sparsity: what it costs to open a gate; an unexplained anomaly costs several units.
        epochs, batch_size, ...: see ``NetworkEstimator``; epochs are those of each of three trainings.

    Time is O(rows · pairs): 40,000 rows of four sprites take about two minutes of one core.
    """

    width: int = 128
    gate_width: int = 64
    surprise: float = 8.0
    sparsity: float = 0.002
    epochs: int = 30
    learning_rate: float = 3e-3
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "width", "gate_width")
        if not (self.surprise > 0 and self.sparsity >= 0):
            raise ValueError(
                "surprise and sparsity: expected a positive number and one that is not negative, "
                f"got {self.surprise!r} and {self.sparsity!r}."
            )

    def build(self, factors: Factorization, scaling: Scaling) -> nn.Module:  # noqa: D102
        require_several(factors)
        return Attribution(Nodes(factors, scaling), self.width, self.gate_width)

    def train(self, network: "Attribution", task: TrainingTask[ScaledBatch]) -> History:
        """Train the models of motion, then the gates on what these make of the data."""
        histories = [self._learn_motion(network, ["full", *network.levels], task)]
        network.find_standing(task.train)
        if network.standing.any():
            histories.append(self._learn_motion(network, network.levels, task))
        train, validation = (network.evidence(rows, self.surprise) for rows in (task.train, task.validation))
        gates = TrainingTask(train, validation, task.training, task.rng, task.progress, f"{task.name}: gates")
        history = in_stages(network.explaining, partial(self.loss, network), gates)
        return replace(history, seconds=history.seconds + sum(each.seconds for each in histories))

    def _learn_motion(self, network: "Attribution", models: Sequence[str], task: TrainingTask[ScaledBatch]) -> History:
        def loss(batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG001
            return network.motion_loss(batch, models)

        trained = nn.ModuleList(network.motion[model] for model in models)
        motion = replace(task, name=f"{task.name}: motion")
        return all_or_nothing(lambda: in_stages(trained, loss, motion), task.name)

    def loss(self, network: "Attribution", batch: "Evidence", generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return how badly the gates explain a batch of ``Evidence``, and what they cost."""
        unexplained, cost = network.explain(batch)
        return unexplained + self.sparsity * cost

    def edges(self, network: "Attribution", batch: ScaledBatch) -> Tensor:  # noqa: D102
        return network.scores(batch)


@dataclass(frozen=True, eq=False)
class Evidence(Rows):
    """A batch, and what the models of motion make of it."""

    batch: ScaledBatch
    ahead: Tensor  # (B, N, X) where each node will be if nothing but actions moves it
    odd: Tensor  # (B, levels, n) whether the factor's motion is an anomaly


class Attribution(nn.Module):
    """Models of motion, and the gates that explain where they err.

    A level is what a factor's motion is predicted from: "driven", itself and the actions, and, if there
    are actions, "alone". Anomalies of the first are explained by state factors, of the second by all.
    """

    standing: Tensor  # (N, n) share of rows in which an influence that is always there shows; 0 for others

    def __init__(self, nodes: Nodes, width: int, gate_width: int) -> None:
        super().__init__()
        self.nodes = nodes
        self.levels = ["driven", "alone"] if nodes.count > nodes.n else ["driven"]
        kinds = nodes.kind[: nodes.n].tolist()
        sizes = [nodes.input_width, *[width] * _LAYERS, 2 * nodes.width]
        self.motion = nn.ModuleDict({name: TypedMLP(kinds, sizes) for name in ("full", *self.levels)})
        self.gates = TypedMLP(nodes.pair_kind.tolist(), [nodes.pair_width, gate_width, gate_width, 1], bias=_RARE)
        self.misfit = TypedMLP(kinds, [nodes.width, gate_width, len(self.levels)], bias=_RARE)
        self.register_buffer("standing", torch.zeros(nodes.count, nodes.n))

    @property
    def explaining(self) -> nn.Module:
        """What is trained in the last step."""
        return nn.ModuleList([self.gates, self.misfit])

    def _visible(self, model: str) -> Tensor:
        """Return which nodes a model of motion sees besides the factor itself, (n, N), zeros and ones."""
        action = torch.arange(self.nodes.count) >= self.nodes.n
        seen = (self.standing.T > 0) | (action if model == "driven" else torch.tensor(model == "full"))
        return (seen & ~torch.eye(self.nodes.n, self.nodes.count, dtype=torch.bool)).float()

    def move(self, model: str, seen: Seen) -> tuple[Tensor, Tensor]:
        """Return the predicted change of each state factor and the usual size of its error, each (B, n, W)."""
        told = self.motion[model](self.nodes.inputs(seen, self._visible(model)))
        change, size = told.split(self.nodes.width, dim=-1)
        return change, _FINEST + functional.softplus(size)

    def motion_loss(self, batch: ScaledBatch, models: Sequence[str]) -> Tensor:
        """Return the absolute errors of changes and of the sizes of errors: both models learn medians."""
        seen, change = self.nodes.see(batch), self.nodes.change(batch)
        total = change.new_zeros(())
        for model in models:
            predicted, usual = self.move(model, seen)
            error = (change - predicted).abs()
            total = total + ((error + (error.detach() - usual).abs()) * self.nodes.real).sum(dim=(1, 2)).mean()
        return total

    @torch.no_grad()
    def find_standing(self, batch: ScaledBatch) -> None:
        """Find which influences are always there, by swapping one source at a time between rows far apart."""
        batch = batch[:: max(1, len(batch) // _ROWS)]
        seen, change = self.nodes.see(batch), self.nodes.change(batch)
        predicted, usual = self.move("full", seen)
        off = self._in_units(change - self.move(self.levels[-1], seen)[0], usual) > _BEYOND
        helpless = off.float().mean(dim=0) >= _NEVER_ALONE
        for source in range(self.nodes.count):
            swapped = Seen(*(x.clone() for x in seen))
            for mixed in swapped:
                mixed[:, source] = mixed[:, source].roll(len(mixed) // 2, dims=0)
            difference = self._in_units(self.move("full", swapped)[0] - predicted, usual)
            self.standing[source] = (difference > _BEYOND).float().mean(dim=0)
        self.standing.fill_diagonal_(0.0)
        clear = self.standing >= _CLEAR
        least = torch.where(clear.any(dim=0), _BESIDE * self.standing.amax(dim=0), _STANDING)
        self.standing *= clear | (helpless & (self.standing >= least))

    def _in_units(self, error: Tensor, usual: Tensor) -> Tensor:
        """Return the size of an error in usual ones, the mean over real columns, (B, n)."""
        real = self.nodes.real
        return (error.abs() / usual * real).sum(dim=-1) / real.sum(dim=-1)

    @torch.no_grad()
    def evidence(self, batch: ScaledBatch, surprise: float) -> Evidence:
        """Return a batch with its anomalies and the places ahead."""
        ahead, odd = [], []
        for some in batch.chunks(_ROWS):
            seen, change = self.nodes.see(some), self.nodes.change(some)
            usual, found = self.move("full", seen)[1], []
            for level in self.levels:
                predicted, own = self.move(level, seen)
                usual = torch.minimum(usual, own)
                found.append(self._in_units(change - predicted, usual) > surprise)
                if level == "driven":
                    ahead.append(self.nodes.ahead(seen.places, predicted))
            both = torch.stack(found, dim=1)
            both[:, 0] = both.all(dim=1)  # what moves as it does alone is no anomaly, whatever actions foretold
            odd.append(both)
        return Evidence(batch, torch.cat(ahead), torch.cat(odd))

    def log_odds(self, seen: Seen, ahead: Tensor) -> Tensor:
        """Return the log odds of every influence, (B, N, n)."""
        nodes = self.nodes
        found: Tensor = self.gates(nodes.pairs(seen, ahead)).squeeze(-1)
        odds = found.new_full((len(found), nodes.count, nodes.n), _NEVER)
        odds[:, nodes.source, nodes.target] = found
        return odds

    def explain(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        """Return the negative log-likelihood of a batch's anomalies, and the number of open gates."""
        seen, n = self.nodes.see(evidence.batch), self.nodes.n
        odds, misfit = self.log_odds(seen, evidence.ahead), self.misfit(seen.tokens[:, :n])
        silent = -functional.softplus(odds)  # log of the probability of no influence
        by_state, by_action = silent[:, :n].sum(dim=1), silent[:, n:].sum(dim=1)
        none = torch.stack([by_state, by_state.detach() + by_action][: len(self.levels)], dim=1)
        none = (none - functional.softplus(misfit).transpose(1, 2)).clamp(max=-1e-6)
        unexplained = -torch.where(evidence.odd, torch.log(-torch.expm1(none)), none)
        cost = torch.sigmoid(odds).sum(dim=(1, 2)) + _MISFIT * torch.sigmoid(misfit).sum(dim=(1, 2))
        return unexplained.sum(dim=(1, 2)).mean(), cost.mean()

    def scores(self, batch: ScaledBatch) -> Tensor:
        """Return the probability of every influence, (B, N, n)."""
        seen = self.nodes.see(batch)
        ahead = self.nodes.ahead(seen.places, self.move("driven", seen)[0])
        scores = torch.maximum(torch.sigmoid(self.log_odds(seen, ahead)), self.standing)
        scores.diagonal(dim1=1, dim2=2).fill_(1.0)
        return scores
