"""The contract of a world and the checks of its inputs, tried on the sprites."""

import numpy as np
import pytest

from counterpoint.worlds import Sprites, check_world


def with_value(array, row, column, value):
    array = array.copy()
    array[row, column] = value
    return array


STATE, ACTION, NOISE = np.full((3, 16), 0.5), np.zeros((3, 2)), np.zeros((3, 8))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((STATE[:, :15], ACTION, NOISE), r"state: expected 16 columns \(sprite0, .*\), got 15. Check"),
        ((STATE[0], ACTION, NOISE), r"state: expected shape \(B, columns\), got \(16,\)"),
        ((with_value(STATE, 2, 5, np.nan), ACTION, NOISE), r"state: row 2, column 5 \(sprite1\) is nan; .*Remove"),
        ((with_value(STATE, 1, 15, -np.inf), ACTION, NOISE), r"state: row 1, column 15 \(sprite3\) is -inf"),
        ((STATE, ACTION[:, :1], NOISE), r"action: expected 2 columns \(action\), got 1"),
        ((STATE, ACTION[:2], NOISE), "action: expected 3 rows, one per row of state, got 2"),
        (
            (STATE, with_value(ACTION, 1, 0, 1.5), NOISE),
            r"action: row 1, column 0 \(action\) is 1.5; expected values in \[-1, 1\]. Scale .* clip",
        ),
        ((STATE, with_value(ACTION, 2, 1, -1.01), NOISE), r"action: row 2, column 1 \(action\) is -1.01; expected"),
        ((STATE, with_value(ACTION, 0, 1, np.nan), NOISE), r"action: row 0, column 1 \(action\) is nan"),
        ((STATE, ACTION, NOISE[:, :7]), "noise: expected 8 columns"),
        ((STATE, ACTION, NOISE[:1]), "noise: expected 3 rows"),
        ((STATE, ACTION, with_value(NOISE, 2, 7, np.inf)), r"noise: row 2, column 7 \(sprite3\) is inf"),
    ],
)
def test_bad_inputs_are_named_by_row_column_and_value(given, message):
    for method in (Sprites().step, Sprites().mask, Sprites().step_and_mask):
        with pytest.raises(ValueError, match=message):
            method(*given)


def test_draws_need_a_size_and_a_generator():
    for draw in (Sprites().reset, Sprites().noise):
        with pytest.raises(ValueError, match="size: expected a number of rows, 0 or more, got -1"):
            draw(-1, np.random.default_rng(0))
        with pytest.raises(TypeError, match="rng: expected a NumPy generator such as np.random.default_rng"):
            draw(3, 0)


class Broken:
    """A world that breaks one rule of the contract, and otherwise is the sprites."""

    def __init__(self, **instead):
        self.inner, self.instead = Sprites(), instead

    def __getattr__(self, name):
        return self.instead.get(name) or getattr(self.inner, name)


fresh = np.random.default_rng(0)


def spoil(state, action, noise):
    after = Sprites().step(state, action, noise)
    state += 1
    return after


@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ({"step": spoil}, "must not change their input"),
        ({"step": lambda s, a, u: Sprites().step(s, a, u).astype(np.float64)}, "must keep shape and dtype"),
        ({"step": lambda s, a, u: Sprites().step(s, a, u) + s.mean()}, "treat a row alone as in a batch"),
        ({"step": lambda s, a, u: Sprites().step(s, a, u) + fresh.normal()}, "same result again"),
        ({"mask": lambda s, a, u=None: Sprites().mask(s, a, u)[:, :4]}, r"mask must be bool of shape \(64, 5, 4\)"),
        ({"mask": lambda s, a, u=None: ~Sprites().mask(s, a, u)}, "edge from every factor to itself"),
        ({"noise_owner": [0, 0]}, "noise_owner must be that of its factors"),
    ],
)
def test_a_world_that_breaks_the_contract_is_found_out(instead, message):
    with pytest.raises(ValueError, match=f"Broken breaks the contract of a world: .*{message}"):
        check_world(Broken(**instead), np.random.default_rng(0))
