"""InputGradient: how much does each prediction move when an input moves a little?"""

import warnings
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_counts
from counterpoint.learn.estimators.estimator import NetworkEstimator
from counterpoint.learn.networks.density_network import steadier_as_changes
from counterpoint.learn.networks.layers import with_self_edges
from counterpoint.learn.networks.message_passing import Network, network_for
from counterpoint.learn.training.fitting import History, TrainingTask, torch_generator
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.stages import in_stages, joined
from counterpoint.learn.training.tokens import node_columns

_BEND = 0.05  # errors beyond this, in standard deviations, count by their size and not by their square


@dataclass(frozen=True, kw_only=True)
class InputGradient(NetworkEstimator):
    """Score an edge i → j by the gradient of the predicted next state of j with respect to factor i.

    An ensemble of forward models is trained. The score is the sum of ``|∂ŝ'_c / ∂x_d|`` over columns d of i
    and c of j, both in standard deviations, averaged over the ensemble and over a small cloud of points
    around (s, a), which evens out kinks (SmoothGrad). It follows the paper's definition of a local mask by
    the Jacobian, and ELDEN (Wang et al., 2023).

    A gradient sees smooth influence. It cannot see a step, such as "hit or not", beyond the reach of the
    cloud, nor an influence that happens to be flat at this point.

    Attributes:
        members: forward models in the ensemble.
        samples: points in the cloud; the first is (s, a) itself.
        radius: its standard deviation, in those of the inputs; 0 with one sample gives plain gradients.
        width: hidden units of a model.
        epochs, batch_size, ...: see ``NetworkEstimator``; epochs are those of each member.

    Time: linear in the rows; ``members * samples`` predictions for each, and as many backward passes for
    each column of the state.
    """

    members: int = 3
    samples: int = 4
    radius: float = 0.1
    width: int = 64
    epochs: int = 20
    learning_rate: float = 2e-3
    warm_up: int = 100
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "members", "samples", "width")
        if not 0 <= self.radius < float("inf"):
            raise ValueError(f"radius: expected 0 or more standard deviations, got {self.radius!r}.")

    def build(self, factors: Factorization, scaling: Scaling) -> "ForwardEnsemble":
        """Return the ensemble."""
        return ForwardEnsemble(factors, scaling, self)

    def loss(self, network: "ForwardEnsemble", batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return the mean error of all members."""
        return torch.stack([network.error(member, batch) for member in network.models]).mean()

    def train(self, network: "ForwardEnsemble", task: TrainingTask[ScaledBatch]) -> History:
        """Train one member after another, each on its own order of the rows; after an interrupt, copy the last one."""
        with torch.no_grad():
            network.cloud[1:].normal_(generator=torch_generator(task.rng))
        histories: list[History] = []
        for number in range(self.members):
            try:
                histories.append(self._train_member(network, number, task))
            except KeyboardInterrupt:
                if not histories:
                    raise
                histories[-1] = replace(histories[-1], stopped="interrupted")
            if histories[-1].stopped == "interrupted":
                warnings.warn(f"{task.name}: {len(histories)} of {self.members} members were trained.", stacklevel=3)
                for member in network.models[len(histories) :]:
                    member.load_state_dict(network.models[len(histories) - 1].state_dict())
                break
        return joined(histories)

    def _train_member(self, network: "ForwardEnsemble", number: int, task: TrainingTask[ScaledBatch]) -> History:
        member = network.models[number]
        with torch.no_grad():
            member.observe(task.train)
        named = replace(task, name=f"{task.name} {number + 1}/{self.members}")
        return in_stages(member, lambda batch, _: network.error(member, batch), named)

    def edges(self, network: "ForwardEnsemble", batch: ScaledBatch) -> Tensor:
        """Return the gradients, pooled over columns, (B, N, n)."""
        inputs = torch.cat([batch.state, batch.action], dim=1)
        total = inputs.new_zeros(len(inputs), network.nodes, network.n)
        for member in network.models:
            for direction in network.cloud:
                total += network.gradients(member, inputs + self.radius * direction)
        return with_self_edges(total / (self.members * self.samples))


class ForwardEnsemble(nn.Module):
    """Several forward models of the same factors."""

    cloud: Tensor  # (samples, S + A)

    def __init__(self, factors: Factorization, scaling: Scaling, settings: InputGradient) -> None:
        super().__init__()
        self.n, self.nodes, self.state_width = factors.n, factors.n + factors.m, factors.state_width
        self.widths = factors.widths[: factors.n]
        outputs, count = max(self.widths), settings.members
        self.models = [network_for(factors, scaling, outputs, settings.width) for _ in range(count)]
        self.members = nn.ModuleList(self.models)  # the same ones, for training and storage
        self.tokens, self.changes = self.models[0].tokens, steadier_as_changes(factors, scaling)
        self.columns = torch.from_numpy(node_columns(factors))
        self.owners = torch.repeat_interleave(torch.arange(self.nodes), torch.tensor(factors.widths))
        self.register_buffer("cloud", torch.zeros(settings.samples, factors.state_width + factors.action_width))

    def error(self, member: Network, batch: ScaledBatch) -> Tensor:
        """Return a member's mean error on a batch."""
        value = torch.where(self.changes, batch.target("change"), batch.target("next"))
        predicted = predict(member, batch).transpose(0, 1)  # (B, n, D)
        real = self.tokens.real[: self.n, : predicted.shape[-1]]
        target = self.tokens.pack_state(value)[..., : predicted.shape[-1]]
        return smooth_l1_loss(predicted[:, real], target[:, real], beta=_BEND)

    def gradients(self, member: Network, inputs: Tensor) -> Tensor:
        """Return the absolute gradients at some inputs (B, S + A), summed within pairs of factors, (B, N, n)."""
        pooled = inputs.new_zeros(len(inputs), self.nodes, self.n)
        with torch.enable_grad():
            inputs = inputs.detach().requires_grad_()
            predicted = predict(member, ScaledBatch(inputs[:, : self.state_width], inputs[:, self.state_width :]))
            for target, width in enumerate(self.widths):
                for column in range(width):
                    (slope,) = torch.autograd.grad(predicted[target, :, column].sum(), inputs, retain_graph=True)
                    pooled[:, :, target].index_add_(1, self.owners, slope[:, self.columns].abs())
        return pooled


def predict(member: Network, batch: ScaledBatch) -> Tensor:
    """Return a model's predictions, (n, B, D)."""
    return member.head(member.total(batch))
