import numpy as np
import pytest

from counterpoint.core import require
from tests.examples import make_data, make_factors


class Settings:
    many, few, kind, share, run = 3, 0, "oval", 1.5, "not a function"


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: require.require_count("size", 0), ValueError, "size: expected a whole number, 1 or more, got 0"),
        (lambda: require.require_count("size", 1.0), TypeError, "size: expected a whole number, 1 or more, got 1.0"),
        (lambda: require.require_count("size", True), TypeError, "got True"),
        (lambda: require.require_count("n", 15, 16, "number of pixels"), ValueError, "a number of pixels, 16 or more"),
        (lambda: require.require_counts(Settings, "many", "few"), ValueError, "few: expected a whole number"),
        (lambda: require.require_choice(Settings, "kind", ("round", "flat")), ValueError, "'round' or 'flat', got 'ov"),
        (lambda: require.require_share("share", 1.5), ValueError, "share: expected a share between 0 and 1, got 1.5"),
        (lambda: require.require_share("share", float("nan")), ValueError, "got nan"),
        (lambda: require.require_share("share", "half"), TypeError, "got 'half'"),
        (lambda: require.require_functions(Settings, "run"), TypeError, "run: expected a function, got 'not"),
        (lambda: require.require_generator(7), TypeError, "rng: expected a NumPy generator"),
        (lambda: require.require_data([1, 2], make_factors(1, 1)), TypeError, "data: expected Transitions, got list"),
    ],
)
def test_the_wrong_kind_is_a_type_error_and_the_wrong_value_a_value_error(check, error, message):
    with pytest.raises(error, match=message):
        check()


def test_what_is_fine_passes(rng):
    factors = make_factors(2, 1)
    require.require_count("size", np.int64(4))
    require.require_count("size", 0, 0)
    require.require_choice(Settings, "kind", ("oval",))
    require.require_share("share", np.float32(0.5))
    require.require_functions(np, "sin", "cos")
    require.require_generator(rng)
    require.require_data(make_data(factors, 2, rng), factors)
