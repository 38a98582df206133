"""When counterfactuals are made, how many are kept, and how much of a batch they may be."""

from dataclasses import dataclass

from counterpoint.core.require import require_count, require_counts, require_share


@dataclass(frozen=True)
class Mixing:
    """How real and counterfactual rows are mixed.

    Attributes:
        every: how many real rows come between two rounds of making counterfactuals.
        capacity: how many counterfactual rows to keep; the oldest give way.
        max_fraction: largest share of counterfactual rows in a batch. At 1 a batch is like the union of both kinds.
        seed: of the one generator that makes rows and draws them.
        sources: how many real rows a round looks at, drawn anew each time; None means all of them.
    """

    every: int = 1000
    capacity: int = 4_000_000
    max_fraction: float = 1.0
    seed: int = 0
    sources: int | None = None

    def __post_init__(self) -> None:
        require_counts(self, "every", "capacity")
        if self.sources is not None:
            require_count("sources", self.sources)
        require_share("max_fraction", self.max_fraction)

    def rounds(self, before: int, added: int) -> int:
        """Return how many rounds are due when ``added`` real rows follow the first ``before`` ones.

        With ``every=1000``, 8 rows after 996 bring one round, and 8 after 1000 none.
        """
        return (before + added) // self.every - before // self.every

    def counterfactuals(self, batch_size: int, real: int, counterfactual: int) -> int:
        """Return how many rows of a batch are counterfactual, given how many rows of either kind there are.

        As in the original code, the real share is rounded down. With 1000 real and 7000 counterfactual rows, a batch
        of 1000 has 125 and 875 of them; with ``max_fraction=0.5`` it has 500 and 500.
        """
        if not counterfactual:
            return 0
        proportional = batch_size - batch_size * real // (real + counterfactual)
        return min(proportional, int(self.max_fraction * batch_size))
