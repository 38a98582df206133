"""Mixtures of Gaussians: likelihood and divergence against formulas, torch's distributions and samples."""

import math

import pytest
import torch

from counterpoint.learn.networks.densities import (
    OUTLIER_STD,
    OUTLIER_WEIGHT,
    GaussianMixture,
    blend,
    gaussian_kl,
    kl_to_mixture,
    mixture_kl,
)


def random_mixture(seed, components=3, columns=2, rows=(4, 5)):
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(*rows, components, generator=draw).log_softmax(-1)
    mean, log_std = torch.randn(2, *rows, components, columns, generator=draw)
    return GaussianMixture(weight, mean, 0.3 * log_std - 0.5)


def normal(mixture, k):
    return torch.distributions.Normal(mixture.mean[..., k, :], mixture.log_std[..., k, :].exp())


def test_the_likelihood_is_that_of_the_mixture_and_its_outliers():
    """Against torch's own distributions, one component and one column at a time."""
    mixture, value = random_mixture(0), torch.randn(4, 5, 2)
    real = torch.tensor([1.0, 0.0])
    inside = sum(mixture.log_weight[..., k].exp() * normal(mixture, k).log_prob(value)[..., 0].exp() for k in range(3))
    outside = torch.distributions.Normal(0.0, OUTLIER_STD).log_prob(value[..., 0]).exp()
    expected = ((1 - OUTLIER_WEIGHT) * inside + OUTLIER_WEIGHT * outside).log()
    torch.testing.assert_close(mixture.log_prob(value, real), expected, rtol=1e-4, atol=1e-5)


def test_a_row_far_away_is_merely_unlikely():
    far = torch.full((4, 5, 2), 20.0)
    mixture = random_mixture(0)._replace(log_std=torch.full((4, 5, 3, 2), -6.0))
    assert (mixture.log_prob(far, torch.ones(2)) > -40.0).all()


def test_the_divergence_of_gaussians_is_the_formula():
    p, q = random_mixture(1), random_mixture(2, components=4)
    found = gaussian_kl(p, q, torch.tensor([0.0, 1.0]))
    assert found.shape == (4, 5, 3, 4)
    for k in range(3):
        for other in range(4):
            expected = torch.distributions.kl_divergence(normal(p, k), normal(q, other))[..., 1]
            torch.testing.assert_close(found[..., k, other], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("divergence", [mixture_kl, kl_to_mixture])
def test_the_divergence_to_a_gaussian_is_exact(divergence):
    """For the second, the mean of two bounds, only where q is p or far from it."""
    p, real = random_mixture(1, components=1), torch.ones(2)
    q = p if divergence is kl_to_mixture else random_mixture(2, components=1)
    expected = gaussian_kl(p, q, real).flatten(2).squeeze(-1)
    found = divergence(p, q, real)
    slack = 0.5 * math.log(2.0) if divergence is kl_to_mixture else 0.0  # of its lower bound, with two columns
    assert (found >= expected - slack - 1e-4).all()
    assert (found <= expected + 1e-4).all()


def test_the_divergence_between_mixtures_is_near_the_truth():
    """Against the mean over many samples."""
    p, q = random_mixture(1, rows=(6,)), random_mixture(2, rows=(6,))
    draw = torch.Generator().manual_seed(0)
    chosen = torch.multinomial(p.log_weight.exp(), 20_000, replacement=True, generator=draw)  # (6, R)
    rows = torch.arange(6).unsqueeze(1)
    value = p.mean[rows, chosen] + p.log_std[rows, chosen].exp() * torch.randn(6, 20_000, 2, generator=draw)

    def log_density(m):
        each = normal(m, slice(None)).log_prob(value.transpose(0, 1).unsqueeze(-2)).sum(-1)
        return torch.logsumexp(m.log_weight + each, dim=-1)

    truth = (log_density(p) - log_density(q)).mean(0)
    found = mixture_kl(p, q, torch.ones(2))
    torch.testing.assert_close(found, truth, rtol=0.2, atol=0.2)


def test_a_mixture_is_at_no_distance_from_itself():
    p, real = random_mixture(3), torch.ones(2)
    torch.testing.assert_close(mixture_kl(p, p, real), torch.zeros(4, 5), atol=1e-5, rtol=0)
    torch.testing.assert_close(mixture_kl(p, blend(p, p), real), torch.zeros(4, 5), atol=1e-5, rtol=0)


def test_a_blend_has_the_mean_density():
    p, q, value, real = random_mixture(1), random_mixture(2, components=2), torch.randn(4, 5, 2), torch.ones(2)
    found = blend(p, q, share=0.25).log_prob(value, real).exp()
    expected = 0.25 * p.log_prob(value, real).exp() + 0.75 * q.log_prob(value, real).exp()
    torch.testing.assert_close(found, expected)


def test_the_divergence_to_a_mixture_lies_between_its_bounds():
    """Components that lie apart: KL to the mixture is the logarithm of their number."""
    mean = 100.0 * torch.arange(5.0).reshape(1, 5, 1)
    everything = GaussianMixture(torch.full((1, 5), -math.log(5.0)), mean, torch.zeros(1, 5, 1))
    one = everything.component(2)
    lower_is_lower = 0.5 * (1.0 - math.log(2.0)) / 2.0  # half the gap of the product bound, in one dimension
    found = kl_to_mixture(one, everything, torch.ones(1)).item()
    assert found == pytest.approx(math.log(5.0) - lower_is_lower, abs=1e-4)
    same = GaussianMixture(torch.full((1, 5), -math.log(5.0)), torch.zeros(1, 5, 1), torch.zeros(1, 5, 1))
    assert kl_to_mixture(one._replace(mean=torch.zeros(1, 1, 1)), same, torch.ones(1)).item() == pytest.approx(0.0)


def test_a_blurred_mixture_is_that_of_noisier_values():
    p = random_mixture(1)
    found = p.blurred(torch.tensor([0.0, 2.0]))
    torch.testing.assert_close(found.log_std[..., 0], p.log_std[..., 0])
    torch.testing.assert_close((2.0 * found.log_std[..., 1]).exp(), (2.0 * p.log_std[..., 1]).exp() + 4.0)


def test_the_expectation_is_the_mean_of_samples():
    p, draw = random_mixture(1, rows=(3,)), torch.Generator().manual_seed(0)
    chosen = torch.multinomial(p.log_weight.exp(), 20_000, replacement=True, generator=draw)
    sampled = p.mean[torch.arange(3).unsqueeze(1), chosen].mean(1)
    torch.testing.assert_close(p.expectation(), sampled, atol=0.05, rtol=0)
