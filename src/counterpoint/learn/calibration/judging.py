"""Masks on trial: what one would accept, and what a witness says of that, on transitions held out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, NodeSet
from counterpoint.core.coda import propose
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import independent
from counterpoint.core.pairs import drawn
from counterpoint.core.protocols import DeriveFn, declared
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.counting import Finding
from counterpoint.learn.calibration.sight import alone, tried
from counterpoint.learn.calibration.witness import Witness
from counterpoint.masks import Supported
from counterpoint.masks.pairs import beside

_FEWEST = 4  # judged rows that a region must have, or nobody knows what happens there
_TOLD = 0.07  # share of wrong ones by what others tell, from which on that is believed more than pairs are


@dataclass(frozen=True, eq=False)
class Asked:
    """A mask, or an estimator, together with what it takes to ask it about transitions."""

    estimator: Any
    factors: Factorization
    derive: DeriveFn | None = None

    @cached_property
    def context(self) -> NodeSet:
        """The nodes whose edges tie nothing together, (N,)."""
        return self.factors.nodes(*self.factors.context)

    @property
    def uses_next_state(self) -> bool:
        """Whether it looks at the next state."""
        return "next_state" in declared(self.estimator)

    def __call__(self, data: Transitions) -> Array:
        """Return scores or edges of transitions, checked, (B, N, n)."""
        shape = (len(data), self.factors.n + self.factors.m, self.factors.n)
        if not len(data):
            return np.zeros(shape)
        ask: Callable[..., Array] = getattr(self.estimator, "scores", self.estimator)
        answer = np.asarray(ask(data.state, data.action, *(getattr(data, name) for name in declared(self.estimator))))
        if answer.shape != shape or answer.dtype.kind not in "fb":
            raise ValueError(f"estimator: expected scores, floats of shape {shape}, got {answer.dtype} {answer.shape}.")
        if answer.dtype.kind == "f" and np.isnan(answer).any():
            raise ValueError("estimator: some scores are NaN, which is neither an edge nor the lack of one.")
        return answer

    def edges(self, answer: Array, tau: float | Floats) -> Bools:
        """Return the mask that a threshold makes of scores; edges stay as they are. Context ties nothing."""
        edges = answer if answer.dtype == np.bool_ else answer > tau
        return np.asarray(edges & ~self.context[:, None])


@dataclass(frozen=True, eq=False)
class Swaps:
    """Accepted proposals."""

    base: Ints  # (R,) rows of the judged transitions
    donor: Ints  # (R,)
    nodes: NodeSet  # (R, N) what came from the donor
    proposal: Transitions
    static: int  # accepted swaps of what never changes, which are left out

    def __len__(self) -> int:
        return len(self.base)

    @property
    def origin(self) -> Ints:
        """The real transition that each node comes from, (R, N)."""
        return np.where(self.nodes, self.donor[:, None], self.base[:, None])


@dataclass(frozen=True, eq=False)
class Hearing:
    """What the witness says of accepted proposals."""

    paired: Floats  # (R,) chance of each to be wrong, by what pairs tell
    told: Floats  # (R,) the same by what all others together tell of a target
    faint: float  # share that may be wrong as well by that, for all that is surely known
    unsure: float  # standard error of that
    unknown: Bools  # (R,) whether nobody can know
    rejected: Bools  # (R,) whether masks.Supported would reject it
    lawless: Bools  # (R,) whether a factor is parted from what could move it, in a row in which none of its laws holds
    error: float  # standard error of what was counted, for each proposal
    unexplained: float  # surprises of the parents that neither the witness nor the mask explains, for each proposal
    usual: float  # how many of these are usual, for each proposal
    sight: float | None  # share of what influences that the mask sees do, which the witness sees too; None: untried
    alone: float  # how often an edge of the mask comes alone, of the target of which that is least often
    deaf: float  # influences of a row that the mask sees, and of whose kind the witness does not see that many
    gaps: Bools  # (R, N, n) pairs across the cut that nobody knows
    judged: int  # rows that this rests on

    @property
    def wrong(self) -> Floats:
        """Chance of each to be wrong, (R,)."""
        return self.believed(self.paired)

    def believed(self, paired: Array) -> Floats:
        """Return the chance to be wrong, given what pairs tell: the more others tell, the more they are believed."""
        told = float(self.told.mean())
        trusted = told**2 / (told**2 + _TOLD**2)
        return np.asarray(trusted * self.told + (1.0 - trusted) * paired)


@dataclass(frozen=True, eq=False)
class Trial:
    """Transitions to try masks on, always with the same pairs of them."""

    asked: Asked
    witness: Witness
    support: Supported
    answer: Array  # (T, N, n) scores or edges of the judged rows
    hiding: Array  # (T, N, n) the same if the next state hid all influences, as it does in a proposal
    seed: int
    pairs: int
    _known: dict[Any, tuple[Swaps, Hearing | None]] = field(default_factory=dict)  # what has been heard, by threshold

    def at(self, tau: float | Floats) -> tuple[Swaps, Hearing | None]:
        """Return what a mask accepts, and what the witness says of it; None if it accepts nothing."""
        key = np.asarray(tau).tobytes()
        if key not in self._known:
            swaps = self.swaps(tau)
            self._known[key] = swaps, self.hear(swaps, tau) if len(swaps) else None
        return self._known[key]

    def swaps(self, tau: float | Floats) -> Swaps:
        """Make one proposal for each pair, and return those that the mask accepts."""
        asked, data, rng = self.asked, self.witness.judged, np.random.default_rng(self.seed)
        base, donor = drawn(data, asked.factors, self.pairs, rng)
        edges = asked.edges(self.answer, tau)
        proposal, nodes = propose(
            data[base], data[donor], edges[base] | edges[donor], asked.factors, rng=rng, derive=asked.derive
        )
        tried = np.flatnonzero(nodes.any(axis=1) & (base != donor))
        proposal, nodes = proposal[tried], nodes[tried]
        kept = independent(asked.edges(asked(proposal), tau), nodes)
        lively = np.append(~self.witness.alone.still, np.ones(asked.factors.m, np.bool_)) & ~asked.context
        moving = nodes[:, lively]
        real = moving.any(axis=1) & ~moving.all(axis=1)
        rows = np.flatnonzero(kept & real)
        return Swaps(base[tried[rows]], donor[tried[rows]], nodes[rows], proposal[rows], int((kept & ~real).sum()))

    def hear(self, swaps: Swaps, tau: float | Floats) -> Hearing:
        """Ask the witness about accepted proposals."""
        factors, witness = self.asked.factors, self.witness
        hiding = self.asked.edges(self.hiding, tau)
        findings = witness.findings(hiding)
        cross = (swaps.nodes[:, :, None] != swaps.nodes[:, None, : factors.n]) & ~self.asked.context[:, None]
        where = witness.where(swaps.proposal)
        thin = witness.spread(witness.thin(hiding, _FEWEST), where) > 0
        lively = ~witness.alone.still & ~np.append(witness.alone.still, np.zeros(factors.m, np.bool_))[:, None]
        gaps = cross & lively & self.support.unknown(swaps.proposal.state, swaps.proposal.action)
        rejected = gaps.any(axis=(1, 2))
        gaps |= cross & lively & thin
        edges = self.asked.edges(self.answer, tau)
        odd, usual = self._unexplained(swaps, edges)
        sight, deaf = tried(witness, edges)
        right, doubt = self._together(swaps, edges)
        paired = 1.0 - (1.0 - self._wrong(swaps, findings, where, cross)) * right
        others = witness.telling.hear(self._free(tau), swaps.origin, swaps.proposal, swaps.nodes)
        told = np.where((cross & witness.alone.always).any(axis=(1, 2)), 1.0, others.wrong)
        return Hearing(
            paired=paired,
            told=told,
            faint=others.faint,
            unsure=others.error,
            unknown=gaps.any(axis=(1, 2)),
            rejected=rejected,
            lawless=self._lawless(swaps, edges, cross & lively),
            error=float(np.hypot(self._error(findings, swaps, where, cross), doubt)),
            unexplained=odd,
            usual=usual,
            sight=sight,
            alone=alone(witness, edges),
            deaf=deaf,
            gaps=gaps,
            judged=len(witness.judged),
        )

    @cached_property
    def _learning(self) -> Array:
        """Scores or edges of the rows that it is learned from what others tell, (L, N, n)."""
        witness, rows = self.witness, self.witness.telling.learn
        if self.asked.uses_next_state:
            rows = witness.alone.hidden(rows, witness.telling.surprised)
        return self.asked(rows)

    def _free(self, tau: float | Floats) -> tuple[Bools, Bools]:
        """Return the rows in which a mask has no edge to a target, in both halves, (L, n) and (T, n)."""
        witness = self.witness
        learnt = witness.moved(self.asked.edges(self._learning, tau), witness.telling.learn)
        moved = learnt, witness.moved(self.asked.edges(self.hiding, tau))
        there, here = (np.asarray(~each.any(axis=1)) for each in moved)
        return there, here

    def _wrong(self, swaps: Swaps, findings: list[Finding], where: list[list[Ints]], cross: Bools) -> Floats:
        """Return the chance that an influence across the cut shows and should not, or should and does not, (R,)."""
        witness = self.witness
        hidden = witness.spread([each.chance for each in findings], where)
        right = np.where(cross, (1.0 - self._shown(swaps, findings)) * (1.0 - hidden), 1.0).prod(axis=(1, 2))
        return np.where((cross & witness.alone.always).any(axis=(1, 2)), 1.0, 1.0 - right)

    def _together(self, swaps: Swaps, edges: Bools) -> tuple[Floats, float]:
        """Return the chance that nothing that two sources do together makes a proposal wrong, (R,).

        It is counted where the mask has no edge to the target; the standard error of the mean comes second.
        """
        witness, rows = self.witness, beside(swaps.proposal.state, swaps.proposal.action)
        calm = witness.known & ~witness.loud.any(axis=1)  # (T, n)
        free = calm & ~witness.moved(edges).any(axis=1)
        right, squared = np.ones(len(swaps)), 0.0
        for each in witness.together:
            odd, counted = witness.surprised[:, each.target], free[:, each.target]
            chance, error = each.missed(odd, witness.expected[:, each.target], counted, calm[:, each.target])
            if not (chance.any() or error.any()):
                continue
            asked, weight = witness.pairs.features(each.kind, rows, rows), np.zeros(len(chance))
            origin = swaps.origin[:, each.target]
            for where, features, cross in zip(each.where, asked, each.crossing(swaps.nodes), strict=True):
                there, shown = each.regions(features), ((chance[where] > 0) & odd & counted)[origin]
                right *= np.where(cross, (1.0 - chance[there]) * ~shown, 1.0)
                weight += np.bincount(there, cross, len(chance)) + np.bincount(where[origin], cross, len(chance))
            squared += float((np.square(weight / max(1, len(swaps))) * error).sum())
        return right, float(np.sqrt(squared))

    def _shown(self, swaps: Swaps, findings: list[Finding]) -> Floats:
        """Return the chance that a source across the cut moved a target in the row it comes from, (R, N, n).

        There the outcome is known: a factor without a surprise was not moved by what would have surprised.
        """
        witness = self.witness
        chance, power, usual = (
            witness.own([getattr(each, name) for each in findings]) for name in ("chance", "power", "usual")
        )
        odd = chance * power / np.maximum(chance * power + (1.0 - chance) * usual, 1e-9)
        even = chance * (1.0 - power) / np.maximum(chance * (1.0 - power) + (1.0 - chance) * (1.0 - usual), 1e-9)
        known = np.where(witness.surprised[:, None], odd, even)
        known = np.where(witness.known[:, None], known, chance)
        known /= np.maximum(known.sum(axis=1, keepdims=True), 1.0)
        return self._of_parents(swaps, known)

    def _of_parents(self, swaps: Swaps, values: Array) -> Array:
        """Return what is known of a pair in the row that the target comes from, (R, N, n)."""
        n, nodes = self.asked.factors.n, np.arange(values.shape[1])
        return np.asarray(values[swaps.origin[:, None, :n], nodes[:, None], nodes[:n]])

    def _unexplained(self, swaps: Swaps, edges: Bools) -> tuple[float, float]:
        """Return how many surprises of a proposal's parents have no cause that anybody knows, and how many are usual.

        What is beyond the usual is the blindness of both, witness and mask.
        """
        n, witness = self.asked.factors.n, self.witness
        calm = witness.known & ~witness.loud.any(axis=1) & ~witness.joint & ~witness.moved(edges).any(axis=1)
        origin = swaps.origin[:, :n]
        counted = calm & witness.puzzled, calm * witness.usual(edges)
        odd, usual = (np.take_along_axis(each, origin, axis=0) for each in counted)
        return float(odd.sum(axis=1).mean()), float(usual.sum(axis=1).mean())

    def _lawless(self, swaps: Swaps, edges: Bools, cross: Bools) -> Bools:
        """Return the proposals that part a factor from what could move it, where none of its laws holds, (R,)."""
        witness, n = self.witness, self.asked.factors.n
        lawless = (witness.lawless & ~witness.moved(edges).any(axis=1))[swaps.origin[:, :n], np.arange(n)]
        could = self._of_parents(swaps, witness.could_move(witness.judged)) | witness.could_move(swaps.proposal)
        return np.asarray((lawless[:, None] & cross & could).any(axis=(1, 2)))

    def _error(self, findings: list[Finding], swaps: Swaps, where: list[list[Ints]], cross: Bools) -> float:
        """Return the standard error of the influences expected for a proposal and its parents."""
        total, rows, origin = 0.0, max(1, len(cross)), swaps.origin
        for each, finding, regions in zip(self.witness.testimonies, findings, where, strict=True):
            weight = np.zeros(len(each.regions))
            for (i, j), region, own in zip(each.kind.pairs, regions, each.where, strict=True):
                weight += np.bincount(region, cross[:, i, j], len(weight))
                weight += np.bincount(own[origin[:, j]], cross[:, i, j], len(weight))
            weight /= rows
            total += float(np.square(weight * finding.doubt).sum())
            total += float(np.square((weight * finding.slope).sum() * finding.error))
        return float(np.sqrt(total))
