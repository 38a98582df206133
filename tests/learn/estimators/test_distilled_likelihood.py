"""Distilled likelihood: what the teacher says, what the student makes of it, and rows that are recombined."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from counterpoint import Factorization, Transitions
from counterpoint.checks import check_mask_fn
from counterpoint.learn import DistilledLikelihood, load
from counterpoint.learn.estimators.distilled_likelihood import Distilled, recombined
from counterpoint.learn.networks.layers import SELF
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.masks import Threshold
from tests.learn.examples import EDGES, FACTORS, NETWORKS, ONE_WAY, make_data, one_way

TINY = DistilledLikelihood(width=8, components=2, draws=2, epochs=4, lessons=200, student_width=8, student_epochs=3)
QUICK = DistilledLikelihood(width=32, components=2, draws=6, epochs=20, batch_size=64, lessons=3000, student_epochs=20)


@pytest.fixture(scope="module")
def fitted():
    return QUICK.fit(one_way(np.random.default_rng(0)), ONE_WAY, rng=np.random.default_rng(1), progress=False)


def test_a_one_way_edge_is_found_in_its_own_direction(fitted):
    data = one_way(np.random.default_rng(2), rows=300)
    scores, names = np.median(fitted.scores(data.state, data.action), axis=0), ONE_WAY.names
    others = [(i, j) for i in range(4) for j in range(3) if i != j and (names[i], names[j]) not in EDGES]
    strongest = max(scores[i, j] for i, j in others)
    for source, target in EDGES:
        assert scores[names.index(source), names.index(target)] > 0.5 + 1.5 * strongest, (source, target, scores)
    assert (scores[range(3), range(3)] == SELF).all()


def test_the_student_says_what_the_teacher_says(fitted):
    """On rows that it has not seen, recorded and recombined, in logarithms of nats."""
    network, nodes = fitted.learned().network, fitted.learned().network.student.relations.nodes
    data, other = (one_way(np.random.default_rng(seed), rows=300) for seed in (2, 3))
    base, donor = (fitted.learned().scaling.batch(each.state, each.action) for each in (data, other))
    mixed = recombined(base, donor, torch.rand(300, 4) < 0.5, network.owner)
    for batch in (base, mixed):
        with torch.no_grad():
            asked = torch.log(network.answers(batch).clamp(min=0.0) + 0.01)
            said = torch.log(fitted.edges(network, batch)[:, nodes.source, nodes.target] + 0.01)
        assert np.corrcoef(asked.flatten(), said.flatten())[0, 1] > 0.7


def test_an_influence_that_depends_on_a_third_factor():
    """The wind moves the leaf while the door is open: the student must hear of the door."""
    rng = np.random.default_rng(0)
    factors = Factorization.blocks(state={"door": 1, "wind": 1, "leaf": 1})

    def rows(count):
        state = rng.normal(size=(count, 3))
        after = 0.5 * state
        after[:, 2] += 2.0 * (state[:, 0] > 0) * state[:, 1]
        return Transitions(state, np.zeros((count, 0)), np.zeros(count), after, np.zeros(count, bool))

    data, test = rows(3000), rows(1000)
    scores = QUICK.fit(data, factors, rng=rng, progress=False).scores(test.state, test.action)
    windy = (test.state[:, 0] > 0.4) & (np.abs(test.state[:, 1]) > 0.4)
    calm = test.state[:, 0] < -0.4
    assert np.median(scores[windy, 1, 2]) > 2.0 * np.median(scores[calm, 1, 2])
    assert np.median(scores[:, 2, 1]) < 0.5 * np.median(scores[windy, 1, 2])


def test_recombined_rows_hold_whole_factors_of_their_parents(rng):
    factors = Factorization(state={"a": (2, 0), "b": (1,)}, action={"u": (0,)}, derived=(3,))
    owner = Distilled(factors, torch.nn.Identity(), torch.nn.Identity()).owner
    base = ScaledBatch(torch.zeros(50, 4), torch.zeros(50, 1))
    donor = ScaledBatch(torch.ones(50, 4), torch.ones(50, 1))
    swapped = torch.from_numpy(rng.random((50, 3)) < 0.5)
    mixed = recombined(base, donor, swapped, owner)
    for columns, node in (([0, 2], 0), ([1], 1)):
        assert torch.equal(mixed.state[:, columns] == 1, swapped[:, [node]].expand(-1, len(columns)))
    assert torch.equal(mixed.action[:, 0] == 1, swapped[:, 2])
    assert (mixed.state[:, 3] == 0).all()


def test_the_answer_is_nothing_where_a_source_is_ignored(rng):
    """A teacher whose messages are silent loses nothing."""
    data = make_data(rng)
    scaling = Scaling.of(data)
    network = TINY.build(FACTORS, scaling)
    batch = scaling.batch(data.state, data.action, data.next_state)
    network.teacher.observe(batch, rng)
    with torch.no_grad():
        for parameter in network.teacher.network.first.parameters():
            parameter.zero_()
        assert network.answers(batch[:20]).abs().max() < 1e-4


@NETWORKS
def test_ragged_factors_save_load_and_seeds(rng, factors, tmp_path):
    data = make_data(rng, factors=factors)
    first, second = (TINY.fit(data, factors, rng=np.random.default_rng(3), progress=False) for _ in range(2))
    scores = first.scores(data.state, data.action)
    assert scores.shape == (300, 4, 3)
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    np.testing.assert_array_equal(scores, second.scores(data.state, data.action))
    first.save(tmp_path / "mask.safetensors")
    again = load(tmp_path / "mask.safetensors", factors=factors)
    assert again == first
    np.testing.assert_array_equal(again.scores(data.state, data.action), scores)
    check_mask_fn(Threshold(first, 1.0), data, factors)


def test_interrupted_before_the_student_nothing_is_kept(rng, monkeypatch):
    def impatient(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Distilled, "answers", impatient)
    with pytest.raises(KeyboardInterrupt):
        TINY.fit(make_data(rng), FACTORS, rng=rng, progress=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lessons": 0}, "lessons: expected a whole number, 1 or more, got 0"),
        ({"recombined": 1.5}, "recombined: expected a share between 0 and 1, got 1.5"),
        ({"oversample": 1.0}, "oversample: expected a share from 0 to less than 1, got 1.0"),
        ({"finest": 0.0}, "finest: expected a share of a standard deviation"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **settings)


def test_one_factor_alone_is_refused(rng):
    lonely = Factorization.blocks(state={"all": 4})
    with pytest.raises(ValueError, match="'all' is the only one"):
        TINY.fit(make_data(rng, factors=lonely), lonely, rng=rng, progress=False)
