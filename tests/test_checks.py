import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.checks import CheckFailed, audit, check_counterfactuals, check_mask_fn, check_reward_fn
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors

FACTORS = make_factors(3, 1)


def world(state, action, noise=0.0):
    """Each factor doubles, the first one is pushed; s2 also feels s1 wherever that is above a half."""
    nxt = 2 * state + noise
    nxt[:, :2] += action
    nxt[:, 4:] += np.where(state[:, 2:4] > 0.5, state[:, 2:4], 0)
    return nxt


def exact(state, action):
    mask = np.broadcast_to(Constant.edges(FACTORS, [("a0", "s0")]).adjacency, (len(state), 4, 3)).copy()
    mask[:, 1, 2] = (state[:, 2:4] > 0.5).any(axis=1)
    return mask


@pytest.fixture
def data(rng):
    data = make_data(FACTORS, 300, rng)
    return data.replace(
        next_state=world(data.state, data.action), reward=first_column(None, None, world(data.state, data.action))
    )


def test_the_simulator_confirms_what_the_exact_mask_accepts(data, rng):
    made = Augmenter(FACTORS, exact, first_column).fill(data, 2000, rng=rng)
    found = check_counterfactuals(made, world)
    assert found.confirmed == 1.0
    assert str(found) == "100.00% of 2,000 counterfactuals confirmed, 0 wrong"
    assert check_counterfactuals(data, world).confirmed == 1.0


def test_the_audit_bites_on_a_wrong_mask(data, rng):
    made = Augmenter(FACTORS, Constant.identity(FACTORS), first_column).fill(data, 2000, rng=rng)
    found = audit(made, world)
    assert 0 < found.confirmed < 0.7
    assert (found.error[found.wrong] > 1e-6).all()
    with pytest.raises(
        AssertionError, match=r"wrong, expected at least 100.00%. Worst is row .* \(from rows .* missed edge"
    ):
        check_counterfactuals(made, world)
    assert check_counterfactuals(made, world, at_least=found.confirmed).confirmed == found.confirmed


def test_noise_is_given_back_and_nan_is_wrong(data, rng):
    noisy = data.replace(noise=rng.random((300, 6)), next_state=world(data.state, data.action))
    assert audit(noisy, world).confirmed == 0
    noisy = noisy.replace(next_state=world(data.state, data.action, noisy.noise))
    assert audit(noisy, world).confirmed == 1
    assert audit(noisy, lambda s, a, u: s * np.nan).confirmed == 0
    with pytest.raises(ValueError, match=r"step: expected next states of shape \(300, 6\), got \(300, 1\)"):
        audit(noisy, lambda s, a, u: a)


def test_check_mask_fn(data):
    check_mask_fn(exact, data, FACTORS)
    flip = np.random.default_rng(0)
    with pytest.raises(ValueError, match="called twice .* must not be random"):
        check_mask_fn(lambda s, a: flip.random((len(s), 4, 3)) < 0.5, data, FACTORS)
    with pytest.raises(ValueError, match="depends on the others of its batch"):
        check_mask_fn(
            lambda s, a: np.broadcast_to((s[:, :1] > s[:, 0].mean())[..., None], (len(s), 4, 3)), data, FACTORS
        )
    with pytest.raises(TypeError, match="Threshold"):
        check_mask_fn(lambda s, a: np.ones((len(s), 4, 3)), data, FACTORS)


def test_check_reward_fn(data):
    check_reward_fn(first_column, data)
    with pytest.raises(AssertionError, match="differs from the data in .* the data says .*, reward_fn says"):
        check_reward_fn(lambda s, a, n: n[:, 1], data)


class TestStaticSwapsAreCountedApart:
    """Swaps of a goal are true whatever the mask says, so they must not make a bad mask look good."""

    factors = Factorization.blocks(state={"a": 1, "b": 1, "goal": 1})

    def made(self, share, rng):
        """Of the truth, a acts on b; the mask misses it."""
        state = np.column_stack([rng.random((400, 2)), rng.integers(0, 9, 400)])
        data = Transitions(state, np.zeros((400, 0)), np.zeros(400), self.step(state), np.zeros(400, bool))
        blind = Augmenter(self.factors, Constant.identity(self.factors), lambda s, a, s2: s2[:, 0], static_share=share)
        return blind.fill(data, 500, rng=rng)

    @staticmethod
    def step(state, action=None):
        return np.column_stack([state[:, 0] + 1, state[:, 0] + state[:, 1], state[:, 2]])

    def test_shares_speak_of_the_others(self, rng):
        made = self.made(0.5, rng)
        found = audit(made, self.step)
        apart = made.static
        assert apart.sum() == made.funnel.static > 100
        assert found.confirmed < 0.01  # every swap of a or b is wrong
        assert found.exact < 0.01
        assert len(found.moving.error) == 500 - apart.sum()
        assert (found.still.confirmed, len(found.still.error)) == (1.0, apart.sum())
        assert f"apart from these, {apart.sum():,} that exchange only what never changes, 0 wrong" in str(found)
        both = found + found
        assert (both.confirmed, len(both.still.error)) == (found.confirmed, 2 * apart.sum())
        with pytest.raises(CheckFailed, match="apart from these"):
            check_counterfactuals(made, self.step, at_least=0.3)  # half of all rows are right

    def test_pure_relabelling_is_judged_by_what_there_is(self, rng):
        found = audit(self.made(1.0, rng), self.step)
        assert found.confirmed == 1.0
        assert len(found.moving.error) == 500
        assert not len(found.still.error)

    def test_a_goal_that_the_simulator_moves_is_found(self, rng):
        with pytest.raises(CheckFailed, match="expected at least"):
            check_counterfactuals(self.made(0.5, rng), lambda s, a: self.step(s) + np.eye(3)[2], at_least=0.0001)


def test_windows_are_named_as_windows(rng):
    factors = Factorization.blocks(state={"a": 1, "b": 1})
    state = rng.random((60, 2))
    data = Transitions(
        state, np.zeros((60, 0)), np.zeros(60), np.roll(state, -1, axis=0), np.zeros(60, bool),
        episode=np.repeat(np.arange(3), 20), step=np.tile(np.arange(20), 3),
    )  # fmt: skip
    made = Augmenter(factors, Constant.identity(factors), lambda s, a, s2: s2[:, 0], window=5).fill(data, 40, rng=rng)
    message = "of 40 counterfactual windows of 5 rows confirmed, 40 wrong.* Worst is window"
    with pytest.raises(CheckFailed, match=message):
        check_counterfactuals(made, lambda s, a: s + 1)
