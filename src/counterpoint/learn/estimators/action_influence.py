"""ActionInfluence: which factors does the action make a difference to, here and now?"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_counts
from counterpoint.learn.estimators.estimator import NetworkEstimator
from counterpoint.learn.networks.densities import blend, kl_to_mixture, require_finest
from counterpoint.learn.networks.density_network import DensityNetwork
from counterpoint.learn.networks.layers import with_self_edges
from counterpoint.learn.training.fitting import History, TrainingTask
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.stages import in_stages


@dataclass(frozen=True, kw_only=True)
class ActionInfluence(NetworkEstimator):
    """Score an edge from an action to a factor by the information that the action has about its next state.

    A Gaussian model of each factor's next state given everything is asked what would follow if the action
    were another, for actions drawn from the data. Let p be its prediction for the action that was taken
    and q the mixture of its predictions for that one and the drawn ones. The score is KL(p ‖ q), in nats,
    at most ``log(actions + 1)``. Its mean over actions is their mutual information with the next state,
    given the state: the causal action influence of Seitzer et al. (2021). Several action factors are
    exchanged one at a time.

    Only edges from action factors are scored. Those between other factors score zero, so that they are
    never drawn: join it to an estimator of the rest by
    ``Union(Threshold(rest, t1), Threshold(influence, t2))``.

    Attributes:
        actions: how many actions to compare with.
        pointwise: score the action that was taken. Otherwise the score is the mean over actions, which
            asks whether *any* action matters in this state: the original measure, and a more cautious one.
            It costs more, since all drawn actions are compared with all.
        width: hidden units of the network.
        finest: smallest standard deviation of a Gaussian, in those of the target.
        epochs, batch_size, ...: see ``NetworkEstimator``.

    Time: linear in the rows; ``m * actions`` predictions for each.
    """

    actions: int = 64
    pointwise: bool = True
    width: int = 128
    finest: float = 0.02
    epochs: int = 20
    learning_rate: float = 2e-3
    warm_up: int = 100
    clip: float | None = 10.0
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "actions", "width")
        require_finest(self.finest)

    def build(self, factors: Factorization, scaling: Scaling) -> DensityNetwork:
        """Return a network of one Gaussian for each factor."""
        if not factors.m:
            raise ValueError(
                "factors: there is no action factor, so there is no influence of actions to learn. Declare the "
                "action's columns with Factorization(..., action=...), or use an estimator of all edges, such as "
                "MaskedLikelihood."
            )
        return DensityNetwork(factors, scaling, components=1, width=self.width, finest=self.finest, draws=self.actions)

    def loss(self, network: DensityNetwork, batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return the mean negative log-likelihood."""
        predicted = network.densities(network.network.total(batch))
        return -predicted.log_prob(network.target(batch), network.real).mean()

    def train(self, network: DensityNetwork, task: TrainingTask[ScaledBatch]) -> History:
        """Draw the actions to compare with, then train in stages."""
        network.observe(task.train, task.rng)
        return in_stages(network, partial(self.loss, network), task)

    def edges(self, network: DensityNetwork, batch: ScaledBatch) -> Tensor:
        """Return the influence in the rows of action factors, (B, N, n)."""
        taken = network.densities(network.network.total(batch))
        scores = batch.state.new_zeros(len(batch), network.nodes, network.n)
        for node in range(network.n, network.nodes):
            everything = blend(taken, network.redrawn(batch, node), share=1.0 / (self.actions + 1.0))
            chosen = [taken] if self.pointwise else [everything.component(k) for k in range(self.actions + 1)]
            influence = [kl_to_mixture(one, everything, network.real) for one in chosen]
            scores[:, node] = torch.stack(influence).mean(0).T
        return with_self_edges(scores)
