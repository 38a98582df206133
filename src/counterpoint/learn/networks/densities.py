"""Mixtures of Gaussians as batches of tensors: their likelihood, and how far two of them are apart.

Tensors end in ``(..., K, D)``: K components of D columns, independent within a component. Columns that
are padding are marked by a mask ``real (..., D)`` of zeros and ones, and count for nothing.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

OUTLIER_WEIGHT = 1e-3  # share of a broad component that every mixture has besides its own
OUTLIER_STD = 5.0  # its standard deviation, in those of the target: nothing real is beyond its reach

_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
_FARTHEST = 50.0  # nats; a divergence is cut off here, since beyond it exponentials underflow


class GaussianMixture(NamedTuple):
    """A mixture for every row of a batch; one with K = 1 is a plain Gaussian."""

    log_weight: Tensor  # (..., K)
    mean: Tensor  # (..., K, D)
    log_std: Tensor  # (..., K, D)

    def log_prob(self, value: Tensor, real: Tensor) -> Tensor:
        """Return the log density at ``value`` (..., D), summed over real columns, (...).

        It is bounded from below: the mixture is blended with a broad outlier component of small fixed
        weight, so that one row far away does not drown all others.
        """
        z = (value.unsqueeze(-2) - self.mean) * torch.exp(-self.log_std)
        each = -0.5 * z.square() - self.log_std - _HALF_LOG_TAU
        inside = torch.logsumexp(self.log_weight + (each * real.unsqueeze(-2)).sum(-1), dim=-1)
        far = -0.5 * (value / OUTLIER_STD).square() - math.log(OUTLIER_STD) - _HALF_LOG_TAU
        outside = (far * real).sum(-1)
        return torch.logaddexp(inside + math.log1p(-OUTLIER_WEIGHT), outside + math.log(OUTLIER_WEIGHT))

    def expectation(self) -> Tensor:
        """Return the mean, (..., D)."""
        return (self.log_weight.exp().unsqueeze(-1) * self.mean).sum(-2)

    def blurred(self, std: Tensor) -> "GaussianMixture":
        """Return the mixture of the same values with Gaussian noise of this standard deviation (..., D) on top."""
        variance = torch.exp(2.0 * self.log_std) + std.square().unsqueeze(-2)
        return self._replace(log_std=0.5 * torch.log(variance))

    def component(self, k: int) -> "GaussianMixture":
        """Return one component as a Gaussian of its own."""
        one = slice(k, k + 1)
        return GaussianMixture(
            torch.zeros_like(self.log_weight[..., one]), self.mean[..., one, :], self.log_std[..., one, :]
        )


def blend(p: GaussianMixture, q: GaussianMixture, share: float = 0.5) -> GaussianMixture:
    """Return the mixture of two mixtures, of which ``share`` is p."""
    weight = torch.cat([p.log_weight + math.log(share), q.log_weight + math.log1p(-share)], dim=-1)
    return GaussianMixture(weight, torch.cat([p.mean, q.mean], dim=-2), torch.cat([p.log_std, q.log_std], dim=-2))


def gaussian_kl(p: GaussianMixture, q: GaussianMixture, real: Tensor) -> Tensor:
    """Return KL(p_k ‖ q_l) in nats for all pairs of components, (..., K, L)."""
    mean, log_std = p.mean.unsqueeze(-2), p.log_std.unsqueeze(-2)
    other, other_log = q.mean.unsqueeze(-3), q.log_std.unsqueeze(-3)
    spread = torch.exp(2.0 * (log_std - other_log)) + (mean - other).square() * torch.exp(-2.0 * other_log)
    each = other_log - log_std + 0.5 * (spread - 1.0)
    return (each * real[..., None, None, :]).sum(-1)


def mixture_kl(p: GaussianMixture, q: GaussianMixture, real: Tensor) -> Tensor:
    """Return about KL(p ‖ q) in nats, (...): the variational approximation of Hershey and Olsen (2007, eq. 18).

    It is exact for Gaussians and for components that lie far apart, and zero if p equals q.
    """
    within = torch.logsumexp(p.log_weight.unsqueeze(-2) - gaussian_kl(p, p, real), dim=-1)
    across = torch.logsumexp(q.log_weight.unsqueeze(-2) - gaussian_kl(p, q, real), dim=-1)
    return (p.log_weight.exp() * (within - across.clamp(min=-_FARTHEST))).sum(-1)


def require_finest(finest: float) -> None:
    """Raise unless the smallest standard deviation that a model may claim is below that of its target."""
    if not 0 < finest < 1:
        raise ValueError(f"finest: expected a share of a standard deviation between 0 and 1, got {finest!r}.")


def kl_to_mixture(p: GaussianMixture, q: GaussianMixture, real: Tensor) -> Tensor:
    """Return about KL(p ‖ q) of a Gaussian p (K = 1) to a mixture q, (...).

    The mean of an upper (variational) and a lower (product) bound, after Durrieu, Thiran and Kelly
    (2012), "Lower and upper bounds for approximation of the Kullback-Leibler divergence between
    Gaussian mixture models".
    """
    upper = -torch.logsumexp(q.log_weight - gaussian_kl(p, q, real).squeeze(-2), dim=-1)
    variance = torch.exp(2.0 * p.log_std) + torch.exp(2.0 * q.log_std)  # (..., L, D), p broadcasts
    overlap = -0.5 * ((p.mean - q.mean).square() / variance + variance.log()) - _HALF_LOG_TAU
    entropy = ((p.log_std.squeeze(-2) + _HALF_LOG_TAU + 0.5) * real).sum(-1)
    product = -entropy - torch.logsumexp(q.log_weight + (overlap * real.unsqueeze(-2)).sum(-1), dim=-1)
    return 0.5 * (upper.clamp(max=_FARTHEST) + product.clamp(min=0.0, max=_FARTHEST))
