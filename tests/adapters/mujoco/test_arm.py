"""Somebody else's robot: an arm with two cubes, whatever integrates it."""

import mujoco
import numpy as np
import pytest

from counterpoint import Augmenter
from counterpoint.adapters.mujoco import Islands, Simulator, collect, factorization
from counterpoint.adapters.mujoco.contacts import exactness
from counterpoint.adapters.mujoco.packing import fingerprint
from counterpoint.checks import audit, check_counterfactuals
from counterpoint.core.protocols import call_mask
from tests.adapters.mujoco.arm import Arm, arm_model
from tests.adapters.mujoco.test_islands import nothing

COLD = int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)


def made_with(env, mask, data, size, rng):
    return Augmenter(factorization(env), mask, nothing).fill(data, size, rng=rng)


@pytest.fixture(scope="module")
def warm():
    env = Arm("implicitfast")
    return env, collect(env, None, 400, rng=np.random.default_rng(0))


def test_the_arm_and_the_cubes_are_factors(warm):
    env, data = warm
    factors = factorization(env)
    assert factors.names == ("base", "cube0", "cube1", "action")
    mask = call_mask(Islands(env, workers=1), data, factors)
    assert mask[:, 0, 1:].any()  # it hits them
    assert not mask[:, 0, 1:].all()
    assert mask[:, 3, 0].all()
    assert not mask[:, 3, 1:].any()


def test_strict_islands_accept_nothing_wrong(warm, rng):
    env, data = warm
    mask = Islands(env, workers=1)
    made = made_with(env, mask, data, 400, rng)
    found = check_counterfactuals(made, Simulator(env, real=data, workers=1), atol=1e-6)
    assert found.confirmed == 1.0
    assert mask.exact
    assert "rounding" in mask.remarks[-1]


@pytest.mark.parametrize(
    ("integrator", "size"), [("euler", 150), ("implicit", 150), ("implicitfast", 300), ("rk4", 60)]
)
def test_without_warm_start_islands_are_exact_to_the_bit(integrator, size, rng):
    """So neither contacts nor the integrator couple trees; the solver's common start is all that does."""
    env = Arm(integrator, disableflags=COLD)
    data = collect(env, None, size, rng=rng)
    mask = Islands(env, workers=1, strict=False)
    assert call_mask(mask, data, factorization(env))[:, 0, 1:3].any()
    assert audit(made_with(env, mask, data, size, rng), Simulator(env, real=data, workers=1)).exact == 1.0
    assert exactness(env.model) == (True, ())


def test_a_solver_that_takes_all_trees_together_ties_them_all():
    """Found by trying: where nothing touches, a nudge of a cube still shows in the arm."""
    mask = Islands(Arm(disableflags=int(mujoco.mjtDisableBit.mjDSBL_ISLAND)), workers=1)
    assert not mask.exact
    assert any("influence" in each for each in mask.remarks)


def test_a_model_with_other_options_is_another_model():
    assert fingerprint(arm_model()) == fingerprint(arm_model())
    assert fingerprint(arm_model()) != fingerprint(arm_model(impratio=5))


def test_trees_that_sleep_are_not_exact():
    exact, remarks = exactness(arm_model(enableflags=int(mujoco.mjtEnableBit.mjENBL_SLEEP)))
    assert not exact
    assert "asleep" in remarks[0]
