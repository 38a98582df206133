"""Estimators made from the exact mask, whose quality is known: two that are unsure, and three that are broken."""

from typing import Any

import numpy as np


class Blurred:
    """The exact mask, averaged over copies of each transition that are jittered a little."""

    def __init__(self, world: Any, jitter: float = 0.02, copies: int = 30) -> None:
        rng = np.random.default_rng(0)
        self.world, self.copies = world, copies
        self.state, self.action = (
            jitter * rng.normal(size=(copies, width))
            for width in (world.factors.state_width, world.factors.action_width)
        )

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the share of the copies that have each edge."""
        total = np.zeros((len(state), self.world.factors.n + self.world.factors.m, self.world.factors.n))
        for by_state, by_action in zip(self.state, self.action, strict=True):
            moved = np.clip(state + by_state, np.minimum(state, -1.0), np.maximum(state, 1.0)).astype(state.dtype)
            total += self.world.mask(moved, np.clip(action + by_action, -1.0, 1.0))
        return np.asarray(total / self.copies)


class Noisy:
    """The exact mask's log odds with noise on top, which is a function of the transition."""

    def __init__(self, world: Any, strength: float = 4.0) -> None:
        self.world, self.strength = world, strength

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return ±strength for edges and others, plus logistic noise."""
        mask = self.world.mask(state, action)
        return np.where(mask, self.strength, -self.strength) + hashed(state, action, mask.shape)


def hashed(state: np.ndarray, action: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers that look logistically distributed and random, but are a function of each transition."""
    flat = np.concatenate([state, action], axis=1).astype(np.float64)
    mixing = np.random.default_rng(1).uniform(1e3, 1e4, (flat.shape[1], int(np.prod(shape[1:]))))
    uniform = np.clip((flat @ mixing) % 1.0, 1e-9, 1.0 - 1e-9)
    return np.log(uniform / (1.0 - uniform)).reshape(shape)


class Random(Noisy):
    """Noise alone."""

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return logistic noise."""
        return hashed(state, action, self.world.mask(state, action).shape)


class Transposed(Blurred):
    """Sources and targets confused; what the actions do is lost, since actions are no targets."""

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the scores of the reverse edges."""
        scores = super().scores(state, action)
        n = scores.shape[2]
        return np.concatenate([scores[:, :n].transpose(0, 2, 1), np.zeros_like(scores[:, n:])], axis=1)


class Identity(Blurred):
    """Self-edges alone."""

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return 1 for self-edges, 0 for others."""
        return np.repeat(np.eye(*self.world.mask(state[:1], action[:1]).shape[1:])[None], len(state), axis=0)


HAND_MADE = {kind.__name__.lower(): kind for kind in (Blurred, Noisy, Random, Transposed, Identity)}
