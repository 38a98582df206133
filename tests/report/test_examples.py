"""The swaps of the gallery: accepted ones were made, rejected ones are rejected by their edge."""

import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.report.gallery import card
from tests.report.reading import check_origin, facts_of, no_reward


def test_rejected_examples_are_rejected_by_their_edge(sprites):
    world, data, made = sprites
    facts = facts_of(world.factors, data, world.mask, made)
    assert facts.rejections.examples
    assert 0 < facts.rejections.rejected < facts.rejections.tried
    for example in facts.rejections.examples:
        source, target = example.edge
        assert example.swapped[source] != example.swapped[target]
        assert example.masks[0, :, source, target].tolist() == [False, False, True]
        assert np.array_equal(world.mask(example.result.state, example.result.action)[0], example.masks[0, 2])
        check_origin(example, data, world.factors)


def test_a_card_says_in_words_what_came_from_whom(sprites):
    world, data, made = sprites
    names, facts = world.factors.names, facts_of(world.factors, data, world.mask, made)
    for example in [*facts.accepted, *facts.rejections.examples]:
        written = card("slug", example, world.factors, None)
        origin = ["donor" if swapped else "base" for swapped in example.swapped]
        for node, name in enumerate(names):
            assert f'{name}</th><td><span class="chip {origin[node]}">from {origin[node]}</span>' in written
            assert (f"{name} is the {origin[node]}’s" in written) == (node in (example.edge or ()))
        assert ("Rejected" in written, "Accepted" in written) == (example.edge is not None, example.edge is None)
        if example.edge:
            assert " → ".join(names[node] for node in example.edge) in written


def test_accepted_examples_are_those_that_were_made(sprites):
    world, data, made = sprites
    facts = facts_of(world.factors, data, world.mask, made)
    assert len(facts.accepted) == 4
    assert len({tuple(example.swapped.tolist()) for example in facts.accepted}) == 4
    for example in facts.accepted:
        assert example.edge is None
        check_origin(example, data, world.factors)


def test_examples_keep_to_the_context_and_derive(rng):
    factors = Factorization.blocks(state={"room": 1, "a": 1, "b": 1}, derived=(3,), context=("room",))

    def derive(state):
        return state[:, 1:2] - state[:, 2:3]

    state, after = rng.random((2, 80, 4))
    state[:, 0] = after[:, 0] = rng.integers(2, size=80)
    for part in (state, after):
        part[:, 3:] = derive(part)
    data = Transitions(state, np.zeros((80, 0)), np.zeros(80), after, np.zeros(80, bool))

    def mask(state, action):
        edges = np.broadcast_to(np.eye(3, dtype=bool), (len(state), 3, 3)).copy()
        edges[:, 0], edges[:, 1, 2] = True, state[:, 3] > 0.2
        return edges

    made = Augmenter(factors, mask, no_reward, derive=derive).fill(data, 100, rng=rng)
    facts = facts_of(factors, data, mask, made, derive=derive)
    assert facts.rejections.examples
    for example in facts.rejections.examples:
        assert example.base.state[0, 0] == example.donor.state[0, 0]
        assert not example.swapped[0]
        assert np.allclose(example.result.state[:, 3:], derive(example.result.state))
    assert facts.real.factored == pytest.approx(np.mean(state[:, 3] <= 0.2))
