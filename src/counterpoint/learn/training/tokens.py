"""Factors of different widths, packed into one token per node."""

from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.arrays import Ints
from counterpoint.core.factors import Factorization

Embedding: TypeAlias = Literal["padded", "marked", "typed", "blocks"]


class Tokens:
    """Factors of different widths as one tensor with a token per node, (B, N, W), zero where padded.

    Args:
        factors: how columns split into factors.
        embedding: ``"padded"``: every factor starts at feature 0, so different kinds share features;
            ``"marked"``: the same, followed by a one-hot mark of the factor's kind; ``"typed"``: every
            kind has features of its own; ``"blocks"``: every factor has (block-diagonal). The kind of a
            factor is its type; those that declare none are alike if they are both of the state, or both
            of the action, and of the same width.

    Attributes:
        width: number of features of a token (``W``), marks not counted.
        marks: the marks of the nodes, (N, M); M is 0 unless they are asked for.
        real: which features of a token are not padding, (N, W) bool.
    """

    def __init__(self, factors: Factorization, embedding: Embedding = "padded") -> None:
        columns = [np.array(c) for c in factors.state.values()]
        columns += [np.array(c) + factors.state_width for c in factors.action.values()]
        starts = _starts(factors, embedding)
        self.n, self._state_width = factors.n, factors.state_width
        self.width = max(start + len(c) for start, c in zip(starts, columns, strict=True))
        padding = factors.state_width + factors.action_width
        index = np.full((len(columns), self.width), padding)
        for node, (start, own) in enumerate(zip(starts, columns, strict=True)):
            index[node, start : start + len(own)] = own
        self.real = torch.from_numpy(index != padding)
        kinds = _kinds(factors) if embedding == "marked" else []
        self.marks = torch.tensor([[float(kind == other) for other in dict.fromkeys(kinds)] for kind in kinds])
        self.marks = self.marks.reshape(len(columns), -1)
        self._index = torch.from_numpy(index)

    def pack(self, state: Tensor, action: Tensor) -> Tensor:
        """Pack states (B, S) and actions (B, A) into tokens with their marks, (B, N, W + M)."""
        flat = torch.cat([state, action, state.new_zeros(len(state), 1)], dim=1)
        return torch.cat([flat[:, self._index], self.marks.expand(len(state), -1, -1)], dim=2)

    def pack_state(self, state: Tensor) -> Tensor:
        """Pack states alone, or next states or changes, (B, S) into (B, n, W)."""
        flat = torch.cat([state, state.new_zeros(len(state), 1)], dim=1)
        return flat[:, self._index[: self.n].clamp(max=state.shape[1])]

    def unpack_state(self, tokens: Tensor) -> Tensor:
        """Return tokens of state factors (B, n, W) as a state, (B, S), zero in derived columns."""
        state = tokens.new_zeros(len(tokens), self._state_width)
        state[:, self._index[: self.n][self.real[: self.n]]] = tokens[:, self.real[: self.n]]
        return state


def node_columns(factors: Factorization) -> Ints:
    """Return, for each owned column of ``[state, action]`` in node order, its place there, (C,)."""
    parts = [*factors.state.values(), *(tuple(c + factors.state_width for c in own) for own in factors.action.values())]
    return np.concatenate([np.array(part) for part in parts])


def _starts(factors: Factorization, embedding: Embedding) -> list[int]:
    """Return the first feature of each node's columns within its token."""
    widths = factors.widths
    if embedding in ("padded", "marked"):
        return [0] * len(widths)
    if embedding == "blocks":
        return [sum(widths[:node]) for node in range(len(widths))]
    kinds = _kinds(factors)
    first = {kind: kinds.index(kind) for kind in kinds}
    owners = sorted(first.values())
    return [sum(widths[node] for node in owners if node < first[kind]) for kind in kinds]


def _kinds(factors: Factorization) -> list[object]:
    """Return the kind of each node: its declared type, or else its space and width."""
    return [
        (name in factors.state, width) if factors.types[name] == name else factors.types[name]
        for name, width in zip(factors.names, factors.widths, strict=True)
    ]
