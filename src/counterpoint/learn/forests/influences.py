"""What trees have learned about influences: scores of edges, and how it is stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.threads import run
from counterpoint.learn.forests.changes import Meddling, change_features
from counterpoint.learn.forests.forest import Forest
from counterpoint.learn.forests.joint import Situation
from counterpoint.learn.forests.kernels import score_changes, score_single, score_together
from counterpoint.learn.forests.outlook import Outlook, Placed
from counterpoint.learn.forests.single import Pairs
from counterpoint.masks.pairs import beside

_WORTH = 0.5, 2.0, 0.25  # pushes from which on they count, up to how many units beyond, and what each adds to a score
_FAINT = 0.01  # what a source does by no more than this, nobody changes
_FEWEST = 256  # rows for a thread


Loop = Callable[..., None]


@dataclass(frozen=True, eq=False)
class Influences:
    """What was learned."""

    outlook: Outlook
    always: Bools  # (N, n) edges that are there in every transition
    asked: Bools  # (N, n) pairs that may have one that comes and goes
    forests: tuple[Forest, ...]  # for each kind of pair the chance of a surprise, and the push
    changes: tuple[Meddling, ...]  # of what single sources do, by third nodes
    situations: tuple[Situation, ...]  # of two sources that act together

    def scores(self, state: Array, action: Array) -> Floats:
        """Return scores, (B, N, n)."""
        rows, n = self.outlook.placed(beside(state, action)), self.always.shape[1]
        scores = np.zeros((len(rows), *self.always.shape))
        for pairs, forest in zip(self.outlook.kinds(self.asked), self.forests, strict=True):
            self._run(score_single, rows, pairs, np.array(pairs), forest.votes, _WORTH, scores)
        for each in self.situations:
            pairs, votes = each.pairs, each.forest.votes
            self._run(score_together, rows, pairs, np.array(pairs), each.target, votes, each.forest.most, scores)
        single = scores.copy() if self.changes else scores
        for meddling in self.changes:
            votes, bounds = meddling.forest.votes, (_FAINT, meddling.forest.most)
            self._run(score_changes, rows, meddling.pairs, meddling.by_third, votes, bounds, single, scores)
        scores[:, self.always | np.eye(len(self.always), n, dtype=np.bool_)] = 1.0
        return scores

    def _run(self, loop: Loop, rows: Placed, pairs: Pairs, *given: object) -> None:
        """Run a kernel over rows that needs to know some pairs; a few rows are enough for a thread."""
        outlook, width = self.outlook, max(self.outlook.width(i, j) for i, j in pairs)
        run(loop, len(rows), rows.arrays, (outlook.plan, outlook.near(pairs), width), *given, fewest=_FEWEST)

    def weights(self) -> dict[str, Tensor]:
        """Return what it takes to build it again, by names."""
        arrays: dict[str, Array] = {
            "drift": self.outlook.drift,
            "always": self.always,
            "asked": self.asked,
        }
        for k, forest in enumerate(self.forests):
            arrays |= {f"forest.{k}.{name}": each for name, each in forest.arrays().items()}
        for k, each in enumerate(self.situations):
            arrays |= {f"situation.{k}.{name}": values for name, values in each.forest.arrays().items()}
            arrays[f"situation.{k}.nodes"] = np.array([(*pair, each.target) for pair in each.pairs], np.int64)
        for k, meddling in enumerate(self.changes):
            arrays |= {f"change.{k}.{name}": values for name, values in meddling.forest.arrays().items()}
            arrays[f"change.{k}.nodes"] = np.array(meddling.triples, np.int64)
        return {name: torch.from_numpy(np.array(each)) for name, each in arrays.items()}

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], factors: Factorization) -> "Influences":
        """Build it from weights that nobody has checked yet."""
        arrays = {name: each.numpy() for name, each in weights.items()}
        size, width = (factors.n + factors.m, factors.n), factors.state_width + factors.action_width
        outlook, always, asked = Outlook(factors, arrays["drift"]), arrays["always"], arrays["asked"]
        if outlook.drift.shape != (width + 1, width) or not np.isfinite(outlook.drift).all():
            raise ValueError("the drift has another shape than the factors, or is no number")
        if always.shape != size or asked.shape != size or not always.dtype == asked.dtype == np.bool_:
            raise ValueError("the edges have another shape than the factors")
        if (asked & (always | np.eye(*size, dtype=np.bool_))).any():
            raise ValueError("an edge cannot come and go and always be there")
        kinds, row = outlook.kinds(asked), _row(outlook)
        forests = tuple(
            Forest.of(_part(arrays, f"forest.{k}."), outlook.pair(*pairs[0], row, row).shape[1])
            for k, pairs in enumerate(kinds)
        )
        return cls(outlook, always, asked, forests, _changes(arrays, outlook, size), _situations(arrays, outlook, size))


def _changes(arrays: Mapping[str, Array], outlook: Outlook, size: tuple[int, int]) -> tuple[Meddling, ...]:
    """Return who changes what others do; files of before 2026-11-19 say only that they do."""
    found, row = [], _row(outlook)
    if len(arrays.get("changers", ())):
        found.append(Meddling.everywhere(_nodes(arrays["changers"], (size[0], size[1], size[0]))))
    while f"change.{len(found)}.nodes" in arrays:
        part = _part(arrays, f"change.{len(found)}.")
        triples = _nodes(part.pop("nodes"), (size[0], size[1], size[0]))
        found.append(Meddling(triples, Forest.of(part, change_features(outlook, triples[0], row, row).shape[1])))
    return tuple(found)


def _situations(arrays: Mapping[str, Array], outlook: Outlook, size: tuple[int, int]) -> tuple[Situation, ...]:
    """Return situations of two sources."""
    found: list[Situation] = []
    row = _row(outlook)
    while f"situation.{len(found)}.nodes" in arrays:
        part = _part(arrays, f"situation.{len(found)}.")
        nodes = _nodes(part.pop("nodes"), (size[0], size[0], size[1]))
        pairs = tuple((a, b) for a, b, _ in nodes)
        found.append(Situation(nodes[0][2], pairs, Forest.of(part, outlook.pair(*pairs[0], row, row).shape[1])))
    return tuple(found)


def _row(outlook: Outlook) -> Placed:
    """Return any row, to count features by."""
    return outlook.placed(np.zeros((1, len(outlook.drift) - 1)))


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}


def _nodes(triples: Array, below: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
    """Return triples of nodes, checked."""
    if triples.ndim != 2 or not len(triples) or (triples < 0).any() or (triples >= list(below)).any():
        raise ValueError("a situation has nodes that the factors do not have")
    return tuple((int(a), int(b), int(c)) for a, b, c in triples)
