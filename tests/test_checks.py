import numpy as np
import pytest

from counterpoint import Augmenter
from counterpoint.checks import audit, check_counterfactuals, check_mask_fn, check_reward_fn
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
