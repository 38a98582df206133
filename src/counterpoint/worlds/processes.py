"""The paper's synthetic Markov processes: random maps of factors, with and without global interactions.

There are no actions and no noise (A = U = 0): the next state is a deterministic function of the state.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.kernels import kernel
from counterpoint.worlds.world import check_draw, check_inputs, doubles, float_dtype

HIDDEN = 32  # hidden units of every map


class Net(NamedTuple):
    """A map with one hidden layer and exact GELU."""

    inner: Array  # (HIDDEN, inputs)
    inner_bias: Array  # (HIDDEN,)
    outer: Array  # (outputs, HIDDEN)
    outer_bias: Array  # (outputs,)


@dataclass(frozen=True, kw_only=True)
class _Process(ABC):
    """What both processes share; ``_spreads`` says which factors act on everything."""

    splits: tuple[int, ...] = (4, 3, 2)
    seed: int = 0
    features: bool = False
    normalise: bool = False
    dtype: Any = np.float32

    noise_per_episode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", float_dtype(self.dtype))
        object.__setattr__(self, "splits", tuple(self.splits))
        if not self.splits or any(not isinstance(size, int) or size < 1 for size in self.splits):
            raise ValueError(
                f"splits: expected how many columns each factor has, such as (4, 3, 2), got {self.splits!r}."
            )

    @cached_property
    def factors(self) -> Factorization:
        """One factor per split, ``factor0`` ..., or with ``features`` one per column, ``x0`` ..."""
        if self.features:
            return Factorization.blocks(state={f"x{column}": 1 for column in range(sum(self.splits))})
        return Factorization.blocks(state={f"factor{i}": size for i, size in enumerate(self.splits)})

    @property
    def noise_owner(self) -> Ints:
        """There is no noise: (0,)."""
        return self.factors.noise_owner

    def reset(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw initial states from N(0, I), (B, S)."""
        check_draw(size, rng)
        return rng.standard_normal((size, sum(self.splits))).astype(self.dtype)

    def noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Return the empty noise of a deterministic process, (B, 0)."""
        check_draw(size, rng)
        return np.zeros((size, 0), self.dtype)

    def step(self, state: Floats, action: Floats, noise: Floats | None = None) -> Floats:
        """Return the next states, (B, S), in the dtype of ``state``; ``action`` is (B, 0)."""
        state, _, _ = check_inputs(state, action, noise, self.factors)
        values = doubles(state)
        norms = self._norms(values)
        scales = np.where(norms > 0, norms, 1.0) if self.normalise else np.ones_like(norms)
        spreads, everywhere = self._spreads(norms), np.ones(len(state), bool)
        after = np.zeros_like(values)
        for i, (own, (local, spread)) in enumerate(zip(self._columns, self._nets, strict=True)):
            factor = values[:, own] / scales[:, i : i + 1]
            _add(factor, everywhere, local, after, own.start)
            _add(factor, np.ascontiguousarray(spreads[:, i]), spread, after, 0)
        return after.astype(state.dtype, copy=False)

    def mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> Bools:
        """Return the local causal graphs, (B, n, n): blocks, and full rows where a factor acts on all."""
        state, _, _ = check_inputs(state, action, noise, self.factors)
        spreads = self._spreads(self._norms(doubles(state)))
        k = len(self.splits)
        mask: Bools = np.eye(k, dtype=bool) | spreads[:, :, None]
        if self.features:
            block = np.repeat(np.arange(k), self.splits)
            mask = mask[:, block[:, None], block]
        return np.ascontiguousarray(mask)

    @abstractmethod
    def _spreads(self, norms: Array) -> Bools:
        """Tell from the norms of the factors, (B, k), which of them act on everything, (B, k)."""

    def _norms(self, values: Array) -> Array:
        norms = np.empty((len(values), len(self.splits)))
        _measure(values, np.array([own.stop for own in self._columns]), norms)
        return norms

    @cached_property
    def _columns(self) -> list[slice]:
        stops = np.cumsum(self.splits).tolist()
        return [slice(stop - size, stop) for size, stop in zip(self.splits, stops, strict=True)]

    @cached_property
    def _nets(self) -> list[tuple[Net, Net]]:
        """The local and the global map of each factor; local ones first, so both processes share them."""
        rng = np.random.default_rng(self.seed)
        local = [random_net(size, size, rng) for size in self.splits]
        spread = [random_net(size, sum(self.splits), rng) for size in self.splits]
        return list(zip(local, spread, strict=True))


class StationaryMP(_Process):
    """Factors that evolve on their own, each by its own random map (paper, StationaryMP).

    Attributes:
        splits: number of columns of each factor; the paper's 9 columns are split 4, 3, 2.
        seed: which random maps: inputs → 32 → outputs, GELU, all parameters U(±1/√fan-in).
        features: describe the state as one factor per column; masks are then (B, 9, 9) with blocks.
        normalise: feed each map its factor divided by its norm, as the original code did (a factor of
            norm 0 stays 0).
        dtype: dtype of initial states.

    Both processes contract within a few steps, so prefer fresh initial states: ``collect`` with
    ``episode_length=1``.

    Example:
        >>> import numpy as np
        >>> world = StationaryMP()
        >>> state, action = world.reset(2, np.random.default_rng(0)), np.zeros((2, 0))
        >>> world.step(state, action).shape, world.mask(state, action)[0].astype(int).tolist()
        ((2, 9), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    """

    def _spreads(self, norms: Array) -> Bools:
        return np.zeros(norms.shape, bool)


@dataclass(frozen=True, kw_only=True)
class NonstationaryMP(_Process):
    """A StationaryMP with global interactions (paper, ε-NonstationaryMP).

    A factor whose norm exceeds ``epsilon`` adds a second random map of itself to the whole state. It
    then has an edge to every factor: its **rows** of the mask are full. (The original labels filled
    columns, and with the wrong offsets.)

    Attributes:
        epsilon: the norm beyond which a factor acts on everything.
        splits, seed, features, normalise, dtype: as in ``StationaryMP``; with the same seed the local
            maps are the same.

    Example:
        >>> import numpy as np
        >>> world = NonstationaryMP(epsilon=1.5)
        >>> state = np.zeros((1, 9))
        >>> state[0, 5] = 2.0  # in the second factor
        >>> world.mask(state, np.zeros((1, 0)))[0].astype(int).tolist()
        [[1, 0, 0], [1, 1, 1], [0, 0, 1]]
    """

    epsilon: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon: expected a norm, 0 or more, got {self.epsilon!r}.")

    def _spreads(self, norms: Array) -> Bools:
        return np.asarray(norms > self.epsilon)


def random_net(inputs: int, outputs: int, rng: np.random.Generator) -> Net:
    """Draw a map inputs → 32 → outputs whose weights and biases are U(±1/√fan-in), layer by layer."""
    shapes = ((HIDDEN, inputs), (HIDDEN,), (outputs, HIDDEN), (outputs,))
    fans = (inputs, inputs, HIDDEN, HIDDEN)
    return Net(*(rng.uniform(-1, 1, shape) / math.sqrt(fan) for shape, fan in zip(shapes, fans, strict=True)))


@kernel
def _add(factor: Array, rows: Array, net: Net, out: Array, start: int) -> None:
    """Add net(factor) to the marked rows of ``out``, from column ``start`` on.

    Sums run in one order within each row, so the size of a batch changes no bit.
    """
    for row in range(len(factor)):
        if rows[row]:
            for o in range(len(net.outer_bias)):
                out[row, start + o] += net.outer_bias[o]
            for h in range(len(net.inner_bias)):
                x = net.inner_bias[h]
                for i in range(factor.shape[1]):
                    x += net.inner[h, i] * factor[row, i]
                active = 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))
                for o in range(len(net.outer_bias)):
                    out[row, start + o] += net.outer[o, h] * active


@kernel
def _measure(values: Array, stops: Array, norms: Array) -> None:
    """Write the Euclidean norm of each factor, (B, k)."""
    for row in range(len(values)):
        start = 0
        for i in range(len(stops)):
            total = 0.0
            for column in range(start, stops[i]):
                total += values[row, column] * values[row, column]
            norms[row, i] = math.sqrt(total)
            start = stops[i]
