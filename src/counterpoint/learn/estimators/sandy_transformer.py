"""SANDy-Transformer: stacked attention whose maps, multiplied, say who looked at whom."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_choice, require_counts
from counterpoint.learn.estimators.predictor import Predictor
from counterpoint.learn.networks.layers import add_identity, mlp
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.tokens import Embedding, Tokens

QueryKey = Literal["separate", "shared"]


@dataclass(frozen=True, kw_only=True)
class SandyTransformer(Predictor):
    """Attention between factors that predicts the next state (paper, appendix "Inferring Local Factorization").

    Every factor is a token. A block maps each token to a query, a key and a value, and lets it look at all
    tokens, itself included. The score of i → j is how much token j looked at token i, all blocks taken
    together: the product of their attention maps. Factors of different widths are padded with zeros.

    Attributes:
        blocks: attention blocks, one after the other.
        layers: linear layers of the networks for queries, keys and values.
        width: their hidden units and outputs; the paper's 512 take hours without a GPU, 128 some minutes.
        query_key: "separate" networks for queries and keys, or "shared" layers with two outputs, as in the code.
        embedding: what a token looks like, see ``counterpoint.learn.training.inputs.Tokens``.
        sparsity: weight of a penalty on looking elsewhere; the paper has none.
        identity: whether self-edges get 1 added.
        target: predict the "next" state, as the paper does, or its "change".
        epochs, batch_size, ...: see ``NetworkEstimator``.

    As in the paper there is no scaling, no residual path, no normalisation and one head. Training is slow to
    leave the plateau on which every factor is predicted from itself.

    Deviations from the paper's code: rows are sources (theirs were mixed up for actions), self-edges are added,
    inputs and targets are standardised, and early stopping is real.
    """

    blocks: int = 2
    layers: int = 2
    width: int = 512
    query_key: QueryKey = "separate"
    embedding: Embedding = "padded"
    sparsity: float = 0.0
    identity: bool = True
    epochs: int = 125
    batch_size: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "blocks", "layers", "width")
        require_choice(self, "query_key", get_args(QueryKey))
        require_choice(self, "embedding", get_args(Embedding))

    def build(self, factors: Factorization, scaling: Scaling) -> nn.Module:  # noqa: ARG002, D102
        tokens = Tokens(factors, self.embedding)
        return Attention(
            tokens, blocks=self.blocks, layers=self.layers, width=self.width, shared=self.query_key == "shared"
        )

    def loss(self, network: "Attention", batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG002, D102
        prediction, attention = network(batch)
        target = network.owned(network.tokens.pack_state(batch.target(self.target)))
        error = (network.owned(prediction) - target).square().mean()
        if not self.sparsity:
            return torch.as_tensor(error)
        elsewhere = 1.0 - attention.diagonal(dim1=1, dim2=2)[:, : network.tokens.n].mean()
        return torch.as_tensor(error + self.sparsity * elsewhere)

    def prediction(self, network: "Attention", batch: ScaledBatch) -> Tensor:  # noqa: D102
        return network.owned(network(batch)[0])

    def edges(self, network: "Attention", batch: ScaledBatch) -> Tensor:  # noqa: D102
        _, attention = network(batch)
        scores = attention.transpose(1, 2)[:, :, : network.tokens.n]
        return add_identity(scores) if self.identity else scores


class Attention(nn.Module):
    """Stacked blocks on one token per node."""

    def __init__(self, tokens: Tokens, *, blocks: int, layers: int, width: int, shared: bool) -> None:
        super().__init__()
        self.tokens = tokens
        inputs = [tokens.width + tokens.marks.shape[1], *[width] * (blocks - 1)]
        self.blocks = nn.ModuleList(Block(size, layers=layers, width=width, shared=shared) for size in inputs)
        self.output = nn.Linear(width, tokens.width)

    def forward(self, batch: ScaledBatch) -> tuple[Tensor, Tensor]:
        """Return the prediction, (B, N, W), and the product of the attention maps, (B, N, N), rows being targets."""
        x = self.tokens.pack(batch.state, batch.action)
        looked = torch.eye(x.shape[1]).expand(len(x), -1, -1)
        for block in self.blocks:
            x, attention = block(x)
            looked = attention @ looked
        return self.output(x), looked

    def owned(self, values: Tensor) -> Tensor:
        """Return the columns of state factors, one factor after another, from tokens, (B, n or N, W) to (B, D)."""
        return values[:, : self.tokens.n][:, self.tokens.real[: self.tokens.n]]


class Block(nn.Module):
    """One attention layer: no scaling, no residual path, no normalisation, one head, as in the paper."""

    def __init__(self, inputs: int, *, layers: int, width: int, shared: bool) -> None:
        super().__init__()
        hidden = [width] * (layers - 1)
        heads = [2 * width] if shared else [width, width]
        self.query_key = nn.ModuleList(mlp([inputs, *hidden, size]) for size in heads)
        self.value = mlp([inputs, *hidden, width])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return what each token (B, N, inputs) becomes, (B, N, width), and where it looked, (B, N, N)."""
        query, key = torch.cat([net(x) for net in self.query_key], dim=-1).chunk(2, dim=-1)
        attention = torch.softmax(query @ key.transpose(1, 2), dim=-1)
        return attention @ self.value(x), attention
