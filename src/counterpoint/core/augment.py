"""Transitions in, counterfactual transitions out."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np

from counterpoint.core.coda import derived, mixed, require_derive, require_derived
from counterpoint.core.counterfactuals import AcceptedRows, Counterfactuals
from counterpoint.core.engine import Chunk, Funnel, Recipe, Sources, chunks
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import Uniform, UnionPolicy
from counterpoint.core.pairs import Pairs, same_rows, sharing, uniform
from counterpoint.core.patience import hopeless, why_too_few
from counterpoint.core.protocols import DeriveFn, Mask, RewardFn, TerminalFn, call_reward, call_terminal
from counterpoint.core.provenance import Provenance
from counterpoint.core.require import (
    require_choice,
    require_count,
    require_counts,
    require_data,
    require_functions,
    require_generator,
    require_share,
)
from counterpoint.core.static import StaticShare, static_nodes
from counterpoint.core.transitions import Transitions
from counterpoint.core.windows import beyond, numbered

__all__ = ["Augmenter", "Counterfactuals"]


@dataclass(frozen=True, eq=False)
class Augmenter:
    """Counterfactual data augmentation as a function from transitions to more transitions.

    Attributes:
        factors: how columns split into factors.
        mask_fn: ``(state, action) -> bool (B, N, n)``, who influences whom.
        reward_fn: ``(state, action, next_state) -> float (B,)``, relabels the reward.
        terminal_fn: ``(state, action, next_state) -> bool (B,)``, relabels termination; needed where
            the data holds terminal transitions.
        pairs: how many pairs of transitions a call looks at.
        samples_per_pair: how many different counterfactuals to try for each pair, at the most.
        policy: which unions of components are swapped: ``Uniform()`` as in the paper, or ``Sparse()``.
        pairing: ``"uniform"`` pairs, as in the paper, or only ``"sharing"`` pairs that have an
            independent component in common (one that moves, if there are such pairs).
        derive: ``state -> (B, derived)``, recomputes the derived columns of the factorisation.
        window: how many consecutive rows of an episode are recombined together. What is swapped is then
            swapped at every step, each counterfactual is a window of so many rows, numbered as an episode
            of its own beyond the real ones, and sizes and the funnel count windows. A window that would be
            terminal before its last row is left out.
        static_share: how much of the counterfactuals may exchange nothing but static factors, such as goals,
            at most, where there are others. 1.0 makes no others: pure relabelling.

    Example:
        >>> import numpy as np
        >>> from counterpoint import Augmenter, Factorization, Transitions
        >>> from counterpoint.masks import Constant
        >>> rng = np.random.default_rng(0)
        >>> factors = Factorization.blocks(state={"left": 2, "right": 2}, action={"push": 1})
        >>> s, a, s2 = rng.random((9, 4)), rng.random((9, 1)), rng.random((9, 4))
        >>> data = Transitions(s, a, np.zeros(9), s2, np.zeros(9, bool))
        >>> augmenter = Augmenter(factors, Constant.identity(factors), lambda s, a, s2: s2[:, 0])
        >>> made = augmenter.fill(data, 20, rng=rng)
        >>> len(made), made.funnel.accepted
        (20, 20)
    """

    factors: Factorization
    mask_fn: Mask
    reward_fn: RewardFn
    terminal_fn: TerminalFn | None = None
    pairs: int = 2000
    samples_per_pair: int = 5
    _: KW_ONLY
    policy: UnionPolicy = field(default_factory=Uniform)
    pairing: Literal["uniform", "sharing"] = "uniform"
    derive: DeriveFn | None = None
    window: int = 1
    static_share: float = 0.1

    def __post_init__(self) -> None:
        require_share("static_share", self.static_share)
        require_counts(self, "pairs", "samples_per_pair", "window")
        require_functions(self, "mask_fn", "reward_fn")
        require_choice(self, "pairing", ("uniform", "sharing"))
        require_derive(self.factors, self.derive)
        if not isinstance(self.policy, UnionPolicy):
            raise TypeError(f"policy: expected Uniform() or Sparse(), got {self.policy!r}.")

    def __call__(self, data: Transitions, *, rng: np.random.Generator) -> Counterfactuals:
        """Look at ``pairs`` pairs and return all counterfactuals that are accepted: one round of the paper."""
        sources, pairs, key = self._start(data, rng)
        every = chunks(sources, pairs, key, Funnel(), most_pairs=self.pairs, most_rows=np.iinfo(np.int64).max)
        made = [chunk.accepted() for chunk in every]
        out = AcceptedRows(data, self.factors, sum(chunk.funnel.accepted for chunk in made), self.window)
        for chunk in made:
            out.append(chunk)
        return out.counterfactuals(self._relabelled)

    def fill(
        self,
        data: Transitions,
        size: int,
        *,
        rng: np.random.Generator,
        progress: Callable[[int], object] | None = None,
    ) -> Counterfactuals:
        """Look at as many pairs as it takes until exactly ``size`` counterfactuals are accepted.

        Args:
            data: the real transitions.
            size: how many counterfactuals to return; with windows, how many of those.
            rng: source of randomness.
            progress: called with the number of counterfactuals accepted so far, now and then.

        Raises:
            ValueError: if that many cannot be made; the message says why.
        """
        require_count("size", size)
        require_data(data, self.factors)
        out = AcceptedRows(data, self.factors, size, self.window)
        for chunk in self._chunks(data, size, rng, Funnel()):
            out.append(chunk)
            if progress is not None:
                progress(out.funnel.accepted)
        return out.counterfactuals(self._relabelled)

    def stream(
        self,
        data: Transitions,
        size: int,
        *,
        rng: np.random.Generator,
        after: Funnel | None = None,
        bases: int | None = None,
    ) -> Iterator[Counterfactuals]:
        """Yield the rows of ``fill`` one chunk after another, so that memory does not grow with ``size``.

        Args:
            data: the real transitions.
            size: how many counterfactuals to make.
            rng: source of randomness.
            after: the sum of the funnels of the chunks that are there already, to go on where they end; the
                generator must be in the state in which it was at their beginning.
            bases: only so many of the first rows are bases; those behind them are donors for these. All rows are
                both, by default.

        Raises:
            ValueError: as ``fill``.
        """
        require_count("size", size)
        before = (after or Funnel()).accepted
        for chunk in self._chunks(data, size, rng, after or Funnel(), bases):
            made = chunk.accepted()
            rows = self._finished(made.proposal, data, before)
            yield Counterfactuals(rows, made.provenance, made.funnel, self.window, made.static_nodes)
            before += made.funnel.accepted

    def rebuild(self, data: Transitions, provenance: Provenance, *, before: int = 0) -> Transitions:
        """Make the rows again whose provenance is known, without asking the mask.

        Args:
            data: the real transitions that they were made of.
            provenance: their parents, and what was swapped.
            before: how many windows were made before these; they are numbered from there on.
        """
        require_data(data, self.factors)
        provenance.require_parents(len(data), self.factors)
        rows = mixed(data, provenance, self.factors)
        return self._finished(derived(rows, self.factors, self.derive), data, before)

    def _chunks(
        self, data: Transitions, size: int, rng: np.random.Generator, funnel: Funnel, bases: int | None = None
    ) -> Iterator[Chunk]:
        """Yield chunks of proposals until ``size`` rows are accepted; raise if that does not come to pass."""
        sources, pairs, key = self._start(data, rng, bases)
        if 2 * size >= len(sources.windows):
            sources.need()
        for chunk in chunks(sources, pairs, key, funnel, most_pairs=pairs.total, most_rows=size):
            funnel += chunk.funnel
            yield chunk
            if funnel.accepted < size and hopeless(funnel):
                break
        if funnel.accepted < size:
            raise ValueError(why_too_few(funnel, size, sources))

    def _start(
        self, data: Transitions, rng: np.random.Generator, bases: int | None = None
    ) -> tuple[Sources, Pairs, np.uint64]:
        """Check the data and draw the order of its pairs."""
        require_data(data, self.factors)
        require_generator(rng)
        if bases is not None:
            require_count("bases", bases)
        if self.terminal_fn is None and data.terminated.any():
            raise ValueError(
                f"terminal_fn: {int(data.terminated.sum())} of {len(data)} transitions are terminal, and whether "
                "a recombined transition is terminal cannot be copied from its parents. Give "
                "terminal_fn(state, action, next_state) -> bool (B,), or leave the terminal rows out."
            )
        static = static_nodes(data, self.factors)
        recipe = Recipe(
            factors=self.factors,
            mask_fn=self.mask_fn,
            policy=self.policy,
            samples_per_pair=self.samples_per_pair,
            derive=self.derive,
            window=self.window,
            static=StaticShare(static, self.static_share) if static.any() else None,
            terminal_fn=self.terminal_fn,
        )
        for start in range(0, len(data), 65536):
            require_derived(data[start : start + 65536], self.factors, self.derive)
        pair_key, union_key = rng.integers(2**64, size=2, dtype=np.uint64)
        sources = Sources(data, recipe)
        groups = sources.windows.groups(same_rows(data.state[:, self.factors.context_columns]))
        own = None if bases is None else sources.windows.order[sources.windows.starts] < bases
        if self.pairing == "uniform":
            return sources, uniform(groups, pair_key, own), union_key
        context = self.factors.nodes(*self.factors.context)
        sources.need()
        labels = sources.overlaid(np.arange(len(sources.windows)))
        aside = context | static if self.static_share < 1 else context
        pairs = sharing(groups, labels, aside, pair_key, own)
        if not pairs.total:  # nothing that moves can be exchanged
            pairs = sharing(groups, labels, context, pair_key, own)
        return sources, pairs, union_key

    def _finished(self, rows: Transitions, data: Transitions, before: int) -> Transitions:
        """Relabel rows; those of windows become episodes, numbered beyond the real ones and those made before."""
        made = self._relabelled(rows)
        return made if self.window == 1 else numbered(made, self.window, beyond(data.episode) + before)

    def _relabelled(self, made: Transitions) -> Transitions:
        """Relabel reward and termination in place, chunk by chunk."""
        for start in range(0, len(made), 65536):
            rows = slice(start, start + 65536)
            made.reward[rows] = call_reward(self.reward_fn, made[rows])
            if self.terminal_fn is not None:
                made.terminated[rows] = call_terminal(self.terminal_fn, made[rows])
        return made
