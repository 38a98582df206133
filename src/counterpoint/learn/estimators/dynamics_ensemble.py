"""DynamicsEnsemble: a forward model that knows how much it does not know."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import get_args

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import RewardFn, TerminalFn
from counterpoint.core.require import require_choice, require_count, require_counts, require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.learn.networks.typed import layered
from counterpoint.learn.training.fitting import flushed_denormals
from counterpoint.learn.training.inputs import require_inputs
from counterpoint.learn.training.learner import Learner
from counterpoint.learn.training.scaling import Moments, ScaledBatch, Scaling, Target
from counterpoint.replay import Rollouts
from counterpoint.replay.rollouts import DrawActions

_CHUNK = 4096  # rows that are predicted at once
_WIDEST, _NARROWEST = 0.5, -10.0  # logarithms of variances, where their learned bounds begin
_BOUND_COST = 0.01  # what it costs to move these bounds apart, as in MBPO


@dataclass(frozen=True, kw_only=True)
class DynamicsEnsemble(Learner):
    """Several networks that predict the next state with its spread, in the manner of MBPO (Janner et al., 2019).

    Each member gives a Gaussian with a diagonal spread and is trained by maximum likelihood. All members see the
    same rows and differ in their initial weights; they are trained as one batched program. What they disagree
    about, the data did not tell them. The defaults are those of the paper's appendix "Batch RL".

    Attributes:
        members: number of networks.
        layers: hidden layers of each.
        width: hidden units of each layer.
        target: predict the "change" of the state, as MBPO does, or the "next" state, as the paper's code does.
        epochs, batch_size, ...: as in ``Learner``. Training keeps the weights of the epoch that was best for all
            members together.

    Example:
        >>> import numpy as np
        >>> from counterpoint.worlds import Sprites, collect, uniform_policy
        >>> world, rng = Sprites(), np.random.default_rng(0)
        >>> data = collect(world, uniform_policy(world), 500, rng)
        >>> model = DynamicsEnsemble(members=2, layers=1, width=8, epochs=1).fit(
        ...     data, world.factors, rng=rng, progress=False
        ... )
        >>> model.predict(data.state, data.action).shape, model.disagreement(data.state, data.action).shape
        ((500, 16), (500,))
    """

    members: int = 7
    layers: int = 4
    width: int = 200
    target: Target = "change"
    epochs: int = 100
    weight_decay: float = 5e-5
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "members", "layers", "width")
        require_choice(self, "target", get_args(Target))

    def build(self, factors: Factorization, scaling: Scaling) -> nn.Module:  # noqa: ARG002, D102
        if factors.derived:
            raise ValueError(
                f"factors: state columns {factors.derived} are derived, so a model should not predict them. "
                "Fit without them, and compute them from the prediction."
            )
        inputs = factors.state_width + factors.action_width
        return Members(self.members, [inputs, *[self.width] * self.layers, 2 * factors.state_width])

    def loss(self, network: "Members", batch: ScaledBatch, generator: torch.Generator) -> Tensor:
        """Return the negative log-likelihood of a column, the mean over members, and the cost of the bounds."""
        return self.validation_loss(network, batch, generator) + network.bound_cost()

    def validation_loss(self, network: "Members", batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG002, D102
        mean, log_variance = network(batch)
        error = (batch.target(self.target) - mean).square()
        both = 0.5 * (error * torch.exp(-log_variance) + log_variance + math.log(2.0 * math.pi))
        return torch.as_tensor(both.mean())

    def predict(self, state: Array, action: Array, /) -> Floats:
        """Return the next state that is expected, the mean over members, (B, S)."""
        return self._next_states(state, action, lambda mean, _: mean.mean(dim=0))

    def sample(self, state: Array, action: Array, /, *, rng: np.random.Generator) -> Floats:
        """Draw a next state for each row, (B, S), from the Gaussian of a member that is drawn for that row."""
        require_generator(rng)

        def draw(mean: Tensor, log_variance: Tensor) -> Tensor:
            member = torch.from_numpy(rng.integers(len(mean), size=mean.shape[1]))
            rows = torch.arange(mean.shape[1])
            noise = torch.from_numpy(rng.standard_normal(mean.shape[1:], np.float32))
            return mean[member, rows] + torch.exp(0.5 * log_variance[member, rows]) * noise

        return self._next_states(state, action, draw)

    def rollouts(
        self,
        data: Transitions,
        size: int,
        *,
        rng: np.random.Generator,
        reward_fn: RewardFn,
        terminal_fn: TerminalFn | None = None,
        steps: int = 5,
        draw_actions: DrawActions | None = None,
    ) -> Transitions:
        """Imagine ``size`` transitions: rollouts from states of ``data``, each step sampled from a random member.

        Their ``origin`` says that they are a model's.

        Args:
            data: real transitions; rollouts begin in their states.
            size: number of rows; first steps come first.
            rng: source of randomness.
            reward_fn: ``(state, action, next_state) -> (B,)``, labels what is imagined.
            terminal_fn: ``(state, action, next_state) -> bool (B,)``; a rollout ends there.
            steps: length of a rollout.
            draw_actions: ``(B, rng) -> action (B, A)``; without it, actions are uniform in [-1, 1].
        """
        require_count("size", size)

        def uniform(rows: int, rng: np.random.Generator) -> Array:
            return rng.uniform(-1.0, 1.0, (rows, data.action.shape[1])).astype(data.action.dtype)

        parts: list[Transitions] = []
        while (missing := size - sum(map(len, parts))) > 0:
            starts = -(-missing // steps)
            sizes = {"starts": starts, "steps": steps}
            model = partial(self.sample, rng=rng)
            imagine = Rollouts(model, reward_fn, terminal_fn, **sizes, draw_actions=draw_actions or uniform)
            parts.append(imagine(data, rng=rng))
        return Transitions.concat(*parts)[:size].labelled("model")

    def disagreement(self, state: Array, action: Array, /) -> Floats:
        """Return how far the members' expectations lie apart, (B,), in standard deviations of the usual change.

        It is the standard deviation over members, root mean square over columns: near 0 where the data taught all
        members the same, large where there was none.
        """
        learned, found = self.learned(), []
        unit = np.array(self._moments().std) / learned.scaling.change.std
        for mean, _ in self._chunks(state, action):
            spread = mean.std(dim=0, correction=0).numpy() * unit
            found.append(np.sqrt(np.square(spread).mean(axis=1)))
        return np.concatenate(found).astype(np.float32)

    def _next_states(self, state: Array, action: Array, choose: Callable[[Tensor, Tensor], Tensor]) -> Floats:
        moments = self._moments()
        chosen = np.concatenate([choose(*each).numpy() for each in self._chunks(state, action)])
        found = chosen * moments.std + moments.mean + (state if self.target == "change" else 0.0)
        return found.astype(np.result_type(state, np.float32))

    def _chunks(self, state: Array, action: Array) -> list[tuple[Tensor, Tensor]]:
        """Return means and logarithms of variances of all members, each (E, B, S), chunk by chunk."""
        learned = self.learned()
        state, action = require_inputs(learned.factors, state, action, None)
        with torch.no_grad(), flushed_denormals():
            return [
                learned.network(learned.scaling.batch(state[start : start + _CHUNK], action[start : start + _CHUNK]))
                for start in range(0, max(1, len(state)), _CHUNK)
            ]

    def _moments(self) -> Moments:
        scaling = self.learned().scaling
        return scaling.next_state if self.target == "next" else scaling.change


class Members(nn.Module):
    """E networks of the same sizes, side by side: every layer is one batched product."""

    def __init__(self, members: int, sizes: list[int]) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for inputs, outputs in pairwise(sizes):
            bound = 1.0 / math.sqrt(inputs)
            self.weights.append(torch.empty(members, inputs, outputs).uniform_(-bound, bound))
            self.biases.append(torch.empty(members, 1, outputs).uniform_(-bound, bound))
        self.widest = nn.Parameter(torch.full((sizes[-1] // 2,), _WIDEST))
        self.narrowest = nn.Parameter(torch.full((sizes[-1] // 2,), _NARROWEST))

    def forward(self, batch: ScaledBatch) -> tuple[Tensor, Tensor]:
        """Return mean and logarithm of the variance of the standardised target, each (E, B, S)."""
        inputs = torch.cat([batch.state, batch.action], dim=1)
        outputs = layered(inputs.expand(len(self.weights[0]), -1, -1), self.weights, self.biases)
        mean, raw = outputs.chunk(2, dim=-1)
        below = self.widest - nn.functional.softplus(self.widest - raw)
        return mean, self.narrowest + nn.functional.softplus(below - self.narrowest)

    def bound_cost(self) -> Tensor:
        """Return what the bounds of the variances cost, a scalar."""
        return _BOUND_COST * (self.widest - self.narrowest).sum() / len(self.widest)
