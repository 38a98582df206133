import numpy as np

from counterpoint import Factorization, Provenance

FACTORS = Factorization.blocks(state={"a": 1, "b": 1}, action={"push": 1})


def test_real_rows_are_their_own_parents():
    real = Provenance.real(3, FACTORS, first=5)
    assert real.base.tolist() == real.donor.tolist() == [5, 6, 7]
    assert not real.swapped.any()
    assert real.swapped.shape == (3, 3)


def test_joining_moving_and_choosing_rows_agree_with_where_nodes_come_from(rng):
    first, second = (
        Provenance(rng.integers(9, size=4), rng.integers(9, size=4), rng.random((4, 3)) < 0.5) for _ in range(2)
    )
    both = Provenance.concat(first, second)
    assert np.array_equal(both.origin, np.vstack([first.origin, second.origin]))
    assert np.array_equal(both[4:].origin, second.origin)
    assert np.array_equal(both.among(len(both) + 99, 10).origin, both.origin + 10)
    assert np.array_equal(first.origin, np.where(first.swapped, first.donor[:, None], first.base[:, None]))
