"""How each source lies to each target, also one step ahead and at close quarters."""

import torch
from torch import Tensor, nn

from counterpoint.core.factors import Factorization
from counterpoint.learn.networks.features import Nodes
from counterpoint.learn.training.scaling import ScaledBatch, Scaling

_ROUNDS = 20  # of reweighted least squares
_CLOSEST = 0.01  # distances are told apart down to this share of the spread of positions
_CLOSE = 0.05  # offsets are on a plain scale below this share of it, on a logarithmic one beyond


class Relations(nn.Module):
    """Features of all pairs of a source and another target, differentiable.

    These are the features of ``Nodes.pairs`` and, where both have positions, their distances and offsets
    on logarithmic scales: what happens at close quarters is decided there, and is lost on a plain scale.
    "Ahead" is the own position plus its usual change, a robust linear function of the factor's own columns
    that ``observe`` fits, so that velocities need not be declared.

    Attributes:
        nodes: the pairs, and what is seen of a batch.
        width: number of features of a pair.
    """

    drift: Tensor  # (N, W + 1, X)

    def __init__(self, factors: Factorization, scaling: Scaling) -> None:
        super().__init__()
        self.nodes = Nodes(factors, scaling)
        self.width = self.nodes.pair_width + 3 * (self.nodes.axes + 1)
        self.register_buffer("drift", torch.zeros(self.nodes.count, self.nodes.width + 1, self.nodes.axes))

    def forward(self, batch: ScaledBatch) -> Tensor:
        """Return the features of all pairs, (B, P, width)."""
        seen = self.nodes.see(batch)
        ahead = seen.places + torch.einsum("bnw,nwx->bnx", _with_one(seen.tokens), self.drift)
        i, j, here = self.nodes.source, self.nodes.target, seen.places
        offsets = torch.stack([here[:, i] - here[:, j], here[:, i] - ahead[:, j], ahead[:, i] - ahead[:, j]], dim=-2)
        distance = 0.5 * torch.log(offsets.square().sum(-1) + _CLOSEST**2)  # (B, P, 3)
        close = torch.cat([distance, torch.asinh(offsets / _CLOSE).flatten(-2)], dim=-1)
        both = (self.nodes.placed[i] & self.nodes.placed[j]).unsqueeze(-1)
        return torch.cat([self.nodes.pairs(seen, ahead), close * both], dim=-1)

    def observe(self, batch: ScaledBatch) -> None:
        """Fit the usual change of positions by least absolute deviations, pooled over factors of a type."""
        nodes = self.nodes
        seen = nodes.see(batch)
        moved = nodes.ahead(seen.places, nodes.change(batch)) - seen.places
        own = _with_one(seen.tokens)
        for kind in sorted(set(nodes.kind[: nodes.n].tolist())):
            alike = torch.nonzero((nodes.kind == kind) & nodes.placed).squeeze(-1)
            if len(alike) and nodes.axes:
                self.drift[alike] = _median_fit(own[:, alike].flatten(0, 1), moved[:, alike].flatten(0, 1))


def _with_one(tokens: Tensor) -> Tensor:
    return torch.cat([tokens, tokens.new_ones(*tokens.shape[:2], 1)], dim=-1)


def _median_fit(inputs: Tensor, outputs: Tensor) -> Tensor:
    """Return the linear map (inputs, outputs) of least absolute deviations, by reweighted least squares."""
    x, y = inputs.double(), outputs.double()
    ridge = 1e-9 * len(x) * torch.eye(x.shape[1], dtype=x.dtype)
    smallest = 1e-3 * y.square().mean().sqrt().item() + 1e-12
    weight, fit = torch.ones(len(x), 1, dtype=x.dtype), torch.zeros(x.shape[1], y.shape[1])
    for _ in range(_ROUNDS):
        fit = torch.linalg.solve(x.T @ (weight * x) + ridge * weight.mean(), x.T @ (weight * y))
        weight = 1.0 / (y - x @ fit).norm(dim=1, keepdim=True).clamp(min=smallest)
    return fit.float()
