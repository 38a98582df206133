"""Factors packed into tokens."""

import pytest
import torch

from counterpoint import Factorization
from counterpoint.learn.training.tokens import Tokens, node_columns

RAGGED = Factorization(
    state={"a": (4, 1), "b": (0,), "c": (2, 3)},
    action={"u": (1,), "v": (0, 2)},
    derived=(5,),
    types={"a": "x", "c": "x"},
)


@pytest.mark.parametrize(
    ("embedding", "starts", "width"), [("padded", (0, 0, 0, 0, 0), 2), ("typed", (0, 2, 0, 3, 4), 6),
                                       ("blocks", (0, 2, 3, 5, 6), 8)],
)  # fmt: skip
def test_tokens_hold_each_factor_once(rng, embedding, starts, width):
    tokens = Tokens(RAGGED, embedding)
    state, action = torch.from_numpy(rng.random((7, 6))), torch.from_numpy(rng.random((7, 3)))
    packed = tokens.pack(state, action)
    assert packed.shape == (7, 5, width)
    values = {**{k: state[:, list(c)] for k, c in RAGGED.state.items()},
              **{k: action[:, list(c)] for k, c in RAGGED.action.items()}}  # fmt: skip
    for node, (own, start) in enumerate(zip(values.values(), starts, strict=True)):
        assert torch.equal(packed[:, node, start : start + own.shape[1]], own)
        assert tokens.real[node].sum() == own.shape[1]
    assert (packed[:, ~tokens.real] == 0).all()
    assert torch.equal(tokens.pack_state(state), packed[:, :3])


def test_state_and_action_factors_are_different_types_even_undeclared():
    factors = Factorization.blocks(state={"a": 2, "b": 2}, action={"u": 2})
    assert Tokens(factors, "typed").real.tolist() == [[True, True, False, False]] * 2 + [[False, False, True, True]]


def test_node_columns():
    assert node_columns(RAGGED).tolist() == [4, 1, 0, 2, 3, 7, 6, 8]
