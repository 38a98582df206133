"""SANDy-Mixture: sparse networks, mixed by a gate, whose weights bound their Jacobians."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_choice, require_counts
from counterpoint.learn.estimators.predictor import Predictor
from counterpoint.learn.networks.layers import add_identity, mlp
from counterpoint.learn.networks.typed import layered, uniform
from counterpoint.learn.training.fitting import History, TrainingTask
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.stages import in_stages
from counterpoint.learn.training.tokens import node_columns

Pooling = Literal["max", "sum"]
SparsityForm = Literal["l1", "log"]
SparsityOn = Literal["mixture", "experts"]

_EXPERT_LAYERS = 3  # linear layers of an expert


@dataclass(frozen=True, kw_only=True)
class SandyMixture(Predictor):
    """A mixture of networks that predict the next state (paper, appendix "Inferring Local Factorization").

    Every expert is an MLP, and the product of the absolute values of its weight matrices bounds its
    Jacobian. A gate, itself a network, mixes predictions and bounds: where it chooses an expert that
    ignores an input, that input has no influence. Sparsity of the bounds is part of the loss:

        MSE + sparsity · mean bound + gate_penalty · mean √gate + balance · KL(mean gate, uniform),

    and Adam's weight decay.

    Inside, masks are of single columns; the score of a factor's edge pools the columns of its block. As
    inputs and targets are standardised, a score says by how many of its standard deviations the target
    may move at most, to first order, per standard deviation of the source. Self-edges get 1 added.

    The gate must tell regimes apart sharply, such as the spheres of the paper's NonstationaryMP. So it also sees
    the squares of columns, which makes "far from the mean" a linear question. A soft gate evades sparsity,
    because dependence through the gate costs nothing; ``gate_penalty`` prevents that. A decided gate tends to
    settle on a few experts; ``balance`` keeps all of them in use. The mixture is at its best where the graph is
    constant. On sprites it is poor, as the paper says.

    Attributes:
        experts: number of experts. As many as there are kinds of graphs is enough.
        width: hidden units of experts and gate.
        gate_layers: hidden layers of the gate.
        target: predict the "next" state, as the paper does, or its "change".
        sparsity: weight of the sparsity of bounds (paper: λ1).
        sparsity_form: "l1", as in the paper, or "log" for log(1 + bound), as in its code.
        sparsity_on: bounds of the "mixture", state by state, or of all "experts" alike.
        gate_penalty: weight of the penalty on undecided gates (paper: λ2).
        balance: weight of the penalty on experts that are seldom chosen.
        pooling: "max" or "sum" over the columns of source and target.
        identity: whether self-edges get 1 added.
        epochs, batch_size, ...: see ``NetworkEstimator``; ``weight_decay`` is the paper's λ3, on the
            squared norm.

    Deviations from the paper, which gives no sizes and no λ, and from its code:

    - Its penalty of the gate, the root of the mean, is constant for a gate that sums to one. The code's
      mean of roots is used, which asks for decided gates; the high entropy that the paper's text asks
      for is that of the mean gate, by ``balance``.
    - ``sparsity_on="mixture"``; the paper's formula averages experts whether they are used or not.
    - Eight experts and a gate of two hidden layers that sees squares (code: 3 or 4, one, and no squares).
    - Inputs and targets are standardised; weights of the code's penalties were for raw ones.
    - Early stopping watches the whole loss on validation rows; the learning rate falls in three stages.
    """

    experts: int = 8
    width: int = 256
    gate_layers: int = 2
    sparsity: float = 0.05
    sparsity_form: SparsityForm = "l1"
    sparsity_on: SparsityOn = "mixture"
    gate_penalty: float = 0.2
    balance: float = 0.1
    pooling: Pooling = "max"
    identity: bool = True
    epochs: int = 30
    batch_size: int = 500
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "experts", "width", "gate_layers")
        require_choice(self, "pooling", get_args(Pooling))
        require_choice(self, "sparsity_form", get_args(SparsityForm))
        require_choice(self, "sparsity_on", get_args(SparsityOn))

    def build(self, factors: Factorization, scaling: Scaling) -> nn.Module:  # noqa: ARG002, D102
        return ExpertMixture(factors, experts=self.experts, width=self.width, gate_layers=self.gate_layers)

    def loss(self, network: "ExpertMixture", batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG002, D102
        prediction, gate = network(batch)
        error = (prediction - batch.target(self.target)[:, network.outputs]).square().mean()
        bounds = network.bounds()
        if self.sparsity_on == "mixture":
            bounds = mixed(gate, bounds)
        sparse = torch.log1p(bounds).mean() if self.sparsity_form == "log" else bounds.mean()
        undecided = (gate + 1e-12).sqrt().mean()
        used = gate.mean(dim=0)
        unbalanced = (used * (len(used) * used + 1e-12).log()).sum()
        penalty = self.sparsity * sparse + self.gate_penalty * undecided + self.balance * unbalanced
        return torch.as_tensor(error + penalty)

    def train(self, network: "ExpertMixture", task: TrainingTask[ScaledBatch]) -> History:
        """Train in stages of falling learning rate."""
        return in_stages(network, partial(self.loss, network), task)

    def prediction(self, network: "ExpertMixture", batch: ScaledBatch) -> Tensor:  # noqa: D102
        return torch.as_tensor(network(batch)[0])

    def edges(self, network: "ExpertMixture", batch: ScaledBatch) -> Tensor:  # noqa: D102
        columns = mixed(network.gate(network.columns(batch)), network.bounds())
        scores = network.pool(columns, self.pooling)
        return add_identity(scores) if self.identity else scores


class ExpertMixture(nn.Module):
    """Experts and gate. Letters: K experts, C columns that factors own, in node order, D those of the state."""

    def __init__(self, factors: Factorization, *, experts: int, width: int, gate_layers: int) -> None:
        super().__init__()
        self.inputs = torch.from_numpy(node_columns(factors))  # (C,)
        self.outputs = self.inputs[self.inputs < factors.state_width]  # (D,)
        self.widths = list(factors.widths)
        self.n = factors.n
        sizes = [len(self.inputs), *[width] * (_EXPERT_LAYERS - 1), len(self.outputs)]
        self.weights = nn.ParameterList(uniform(experts, a, b, fan=a) for a, b in pairwise(sizes))
        self.biases = nn.ParameterList(uniform(experts, 1, b, fan=a) for a, b in pairwise(sizes))
        self.gating = mlp([2 * len(self.inputs), *[width] * gate_layers, experts])

    def columns(self, batch: ScaledBatch) -> Tensor:
        """Return the columns of states and actions in node order, (B, C)."""
        return torch.cat([batch.state, batch.action], dim=1)[:, self.inputs]

    def gate(self, columns: Tensor) -> Tensor:
        """Return how much each expert counts, (B, K); rows sum to one."""
        return torch.softmax(self.gating(torch.cat([columns, columns.square()], dim=1)), dim=1)

    def forward(self, batch: ScaledBatch) -> tuple[Tensor, Tensor]:
        """Return the mixed prediction, (B, D), and the gate, (B, K)."""
        columns = self.columns(batch)
        gate = self.gate(columns)
        each = layered(columns.expand(gate.shape[1], *columns.shape), self.weights, self.biases)
        return torch.einsum("bk,kbd->bd", gate, each), gate

    def bounds(self) -> Tensor:
        """Return the bound of each expert's Jacobian, (K, C, D): rows are sources."""
        first, second, third = (weight.abs() for weight in self.weights)
        return torch.bmm(torch.bmm(first, second), third)

    def pool(self, columns: Tensor, pooling: Pooling) -> Tensor:
        """Pool scores of columns, (B, C, D), into scores of factors, (B, N, n)."""
        for dim, widths in ((1, self.widths), (2, self.widths[: self.n])):
            blocks = torch.split(columns, widths, dim=dim)
            parts = [block.amax(dim) if pooling == "max" else block.sum(dim) for block in blocks]
            columns = torch.stack(parts, dim=dim)
        return columns


def mixed(gate: Tensor, bounds: Tensor) -> Tensor:
    """Return the bounds that hold in each row, gate (B, K) and bounds (K, C, D) to (B, C, D)."""
    return torch.einsum("bk,kcd->bcd", gate, bounds)
