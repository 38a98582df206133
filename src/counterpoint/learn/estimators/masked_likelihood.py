"""MaskedLikelihood: how much worse is the prediction of a factor without another one?"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_counts
from counterpoint.learn.estimators.estimator import NetworkEstimator
from counterpoint.learn.networks.densities import GaussianMixture, blend, mixture_kl, require_finest
from counterpoint.learn.networks.density_network import DensityNetwork
from counterpoint.learn.networks.layers import with_self_edges
from counterpoint.learn.networks.message_passing import Contributions, without
from counterpoint.learn.training.fitting import History, TrainingTask
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.stages import GENTLE, in_stages

_BATCH = 4096  # rows that are judged at once
_TOLERATED = 0.25  # share of the usual error up to which a difference is none
_FEWEST_RARE = 5  # held-out rows that the bound of ordinary likelihoods rests on, at least


@dataclass(frozen=True, kw_only=True)
class MaskedLikelihood(NetworkEstimator):
    """Score an edge i → j by how much likelihood the next state of j loses when i is not known.

    One network predicts each factor's next state, as a mixture of Gaussians, from any set of sources
    that lacks at most one: it is trained on all of them and, half as often, without one drawn at random. Let
    p be the density given all sources and q the one without i. The score is in nats:

    - without the next state, KL(p ‖ q): how much likelihood is lost on average;
    - with it, the larger of that and of log p(s') − log q(s'), the loss on what happened. Then the shortfall of
      log p(s') from ordinary values is added: what the model cannot explain might depend on everything, so it
      counts as entangled with everything.

    The mixture matters. If you do not know where an obstacle is, two outcomes are possible, hit and miss. The
    one that occurred stays likely, and a miss keeps a small score. A single Gaussian would spread over both.

    There are two ways of not knowing a source: leave it out, or average the predictions over values from other
    rows. The first misses sharp laws that cannot be learned without the source. The second leaves the data
    where sources belong together. Half of q is the one and half the other: where either finds what happened
    likely, the source was not needed.

    Densities are compared as if all were blurred by a quarter of the usual error, for each column that of
    held-out rows: no model should be believed beyond it.

    Related work: conditional mutual information by masking in CDL (Wang et al., 2022), pointwise in ELDEN
    and SkiLD, and Granger tests in HIntS.

    Attributes:
        uses_next_state: whether ``scores`` is given the next state. Training does not depend on it, so
            ``dataclasses.replace(fitted, uses_next_state=False)`` needs no new fit.
        width: hidden units of the network.
        components: Gaussians of each mixture.
        draws: how many rows lend their values to a source that is not to be known.
        finest: smallest standard deviation of a Gaussian, in those of the target. The model claims no better
            precision than this. If it is smaller than the real errors, every score is noise.
        worst: share of rows that count as badly predicted; interactions are rare and are among them.
        oversample: share of the rows of later stages that are drawn from the worst; 0 treats all alike.
        surprise: share of held-out rows whose likelihood counts as extraordinary, five rows at least.
        epochs, batch_size, ...: see ``NetworkEstimator``.

    Time: training and scoring are linear in the rows. For each row training takes N·n messages and 1.5 n
    predictions, scoring ``N * (draws + 1)`` times as many. 40,000 rows of four sprites take about five
    minutes of one core, and scores of 10,000 about 35 seconds; fewer ``draws`` are quicker and less exact.
    """

    uses_next_state: bool = True  # type: ignore[misc]
    width: int = 128
    components: int = 4
    draws: int = 16
    finest: float = 0.01
    worst: float = 0.05
    oversample: float = 0.0
    surprise: float = 0.001
    epochs: int = 80
    learning_rate: float = 6e-3
    warm_up: int = 100
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "width", "components", "draws")
        require_finest(self.finest)
        if not 0 < self.worst < 1 or not 0 <= self.oversample < 1 or not 0 <= self.surprise < 1:
            shares = f"{self.worst!r}, {self.oversample!r} and {self.surprise!r}"
            raise ValueError(f"worst, oversample and surprise: expected shares between 0 and 1, got {shares}.")

    def build(self, factors: Factorization, scaling: Scaling) -> "MaskedNetwork":
        """Return a network of densities; also of how likely each factor's next state should be."""
        return MaskedNetwork(
            factors, scaling, components=self.components, width=self.width, finest=self.finest, draws=self.draws
        )

    def loss(self, network: "MaskedNetwork", batch: ScaledBatch, generator: torch.Generator) -> Tensor:
        """Return the mean negative log-likelihood, given all sources and, in half of the rows, without one of them."""
        parts, value = network.encode(batch), network.target(batch)
        some = slice(max(1, len(batch) // 2))
        source = torch.randint(network.nodes, (len(batch),), generator=generator)[some]
        fewer = without(Contributions(parts.total[:, some], parts.each[:, :, some]), source)
        both = network.densities(torch.cat([parts.total, fewer], dim=1))
        likelihood = both.log_prob(torch.cat([value, value[:, some]], dim=1), network.real)
        other = source != torch.arange(network.n).unsqueeze(1)  # of itself a factor is always told
        counts = torch.cat([torch.ones_like(value[..., 0], dtype=torch.bool), other], dim=1)
        return -likelihood[counts].mean()

    def train(self, network: "MaskedNetwork", task: TrainingTask[ScaledBatch]) -> History:
        """Train in stages, the later ones on more of the rows that were predicted badly."""
        network.observe(task.train, task.rng)
        more = partial(more_of_the_worst, network, task, self.oversample, self.worst) if self.oversample else None
        history = in_stages(network, partial(self.loss, network), task, stages=GENTLE, rows=more)
        network.settle(task.validation)
        rare = min(1.0, max(self.surprise, _FEWEST_RARE / len(task.validation)))  # one odd row alone decides nothing
        network.usual.copy_(network.judge(task.validation)[0].quantile(rare, dim=1))
        return history

    def edges(self, network: "MaskedNetwork", batch: ScaledBatch) -> Tensor:
        """Return the loss of likelihood in nats, (B, N, n)."""
        parts = network.encode(batch)
        full = network.densities(parts.total).blurred(network.tolerance)
        rows = []
        for node in range(network.nodes):
            dropped = network.densities(without(parts, torch.full((len(batch),), node)))
            rest = blend(dropped, network.redrawn(batch, node)).blurred(network.tolerance)
            rows.append(self._lost(network, batch, full, rest))
        scores = torch.stack(rows)  # (N, n, B)
        if self.uses_next_state:
            likelihood = full.log_prob(network.target(batch), network.real)
            scores = scores + (network.usual.unsqueeze(1) - likelihood).clamp(min=0.0)
        return with_self_edges(scores.permute(2, 0, 1))

    def _lost(
        self, network: "MaskedNetwork", batch: ScaledBatch, full: GaussianMixture, rest: GaussianMixture
    ) -> Tensor:
        """Return what likelihood is lost, on average or on what happened, (n, B)."""
        expected = mixture_kl(full, rest, network.real)
        if not self.uses_next_state:
            return expected
        value = network.target(batch)
        return torch.maximum(expected, full.log_prob(value, network.real) - rest.log_prob(value, network.real))


class MaskedNetwork(DensityNetwork):
    """A network of densities that knows, after training, how well it predicts."""

    usual: Tensor  # (n,) what log-likelihood nearly all rows exceed
    tolerance: Tensor  # (n, 1, D) a difference that is small against the usual error

    def __init__(self, factors: Factorization, scaling: Scaling, **settings: Any) -> None:
        super().__init__(factors, scaling, **settings)
        self.register_buffer("usual", torch.full((factors.n,), -torch.inf))
        self.register_buffer("tolerance", torch.zeros(factors.n, 1, self.columns))

    def told(self, batch: ScaledBatch) -> GaussianMixture:
        """Return the predictions given all sources, (n, B)."""
        return self.densities(self.network.total(batch))

    def settle(self, validation: ScaledBatch) -> None:
        """Find out on held-out rows which differences are small against the usual error."""
        self.tolerance.copy_(_TOLERATED * self.judge(validation)[1].mean(1, keepdim=True))

    def judge(self, batch: ScaledBatch) -> tuple[Tensor, Tensor]:
        """Return how likely it was what happened, a logarithm (n, B), and the error of the expectation, (n, B, D)."""
        likelihood, error = [], []
        with torch.no_grad():
            for chunk in batch.chunks(_BATCH):
                found, value = self.densities(self.network.total(chunk)), self.target(chunk)
                likelihood.append(found.blurred(self.tolerance).log_prob(value, self.real))
                error.append((value - found.expectation()).abs())
        return torch.cat(likelihood, dim=1), torch.cat(error, dim=1)


def more_of_the_worst(
    network: MaskedNetwork, task: TrainingTask[ScaledBatch], oversample: float, worst: float = 0.05
) -> ScaledBatch:
    """Return the training rows and, drawn again and again, those with the least usual likelihood.

    Each factor is measured by its own spread of likelihoods, or one that nobody can predict would take
    all the places.

    Args:
        network: what predicts.
        task: the training rows.
        oversample: share of all rows that are drawn again.
        worst: share of the training rows that these are drawn from.
    """
    likelihood, _ = network.judge(task.train)  # (n, B)
    low, middle, high = likelihood.quantile(torch.tensor([0.25, 0.5, 0.75]), dim=1).unsqueeze(-1)
    badly = ((middle - likelihood) / (high - low).clamp(min=1e-6)).amax(0)
    candidates = badly.topk(max(1, round(worst * len(badly)))).indices.numpy()
    extra = round(oversample / (1.0 - oversample) * len(badly))
    again = torch.from_numpy(task.rng.choice(candidates, extra))
    return task.train[torch.cat([torch.arange(len(badly)), again])]
