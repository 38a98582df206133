"""Acceptance of the two ways to choose what is swapped, as the number of factors grows."""

import numpy as np

from benchmarks.engine import reward
from counterpoint import Augmenter, Factorization, Sparse, Transitions, Uniform
from counterpoint.masks import Proximity
from experiments import pages


def crowded(n: int, rows: int, rng: np.random.Generator) -> tuple[Factorization, Transitions, Proximity]:
    """Balls in a unit square, each with as many neighbours on average whatever their number."""
    factors = Factorization.blocks(state={f"ball{i}": 2 for i in range(n)}, action={"push": 2})
    state = rng.random((rows, 2 * n), np.float32)
    data = Transitions(state, rng.random((rows, 2), np.float32), np.zeros(rows), state, np.zeros(rows, bool))
    return factors, data, Proximity(factors, dict(factors.state), 0.1 * (4 / n) ** 0.5, attached=("ball0",))


def main() -> None:
    rows = []
    for n in (4, 16, 64):
        factors, data, mask = crowded(n, 4000, np.random.default_rng(0))
        shares = []
        for policy in (Uniform(), Sparse()):
            funnel = Augmenter(factors, mask, reward, pairs=4000, policy=policy)(
                data, rng=np.random.default_rng(1)
            ).funnel
            shares += [funnel.acceptance, funnel.accepted / funnel.pairs]
        rows.append([n, *shares])
    pages.print_table(
        "Acceptance of proposals and rows per pair (balls in a square, equally crowded)",
        ["n", "uniform", "per pair", "sparse", "per pair"],
        rows,
    )


if __name__ == "__main__":
    main()
