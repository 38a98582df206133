"""Everything a report says, as numbers: measured once, on a bounded number of rows."""

from dataclasses import dataclass, replace

import numpy as np

from counterpoint.checks import Audit
from counterpoint.core.arrays import listed
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_data, require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.report import examples
from counterpoint.report.coverage import Coverage, coverage
from counterpoint.report.distributions import Comparison, compare, features
from counterpoint.report.graphs import Graphs, graphs, rows_of
from counterpoint.report.options import Extras
from counterpoint.report.provenance import Parents, SwapSet, parents, swap_sets
from counterpoint.report.scene import scene

MOST_ROWS = 20_000  # rows of data, and of counterfactuals, that distributions and graphs are measured on
MOST_PROVENANCE = 1_000_000  # counterfactuals whose parents are counted


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a set of counterfactuals and of the data behind it."""

    data: Transitions
    made: Counterfactuals
    factors: Factorization
    mask_name: str
    audit: Audit | None
    extras: Extras
    real: Graphs
    synthetic: Graphs
    sets: list[SwapSet]
    different_sets: int
    parents: Parents
    traced: int  # counterfactuals whose parents were counted
    coverage: Coverage
    reward: Comparison
    features: list[Comparison]  # those that moved most first
    accepted: list[examples.Example]
    rejections: examples.Rejections

    @property
    def noun(self) -> str:
        """What the augmenter made: single counterfactuals, or windows."""
        return "counterfactual" if self.made.window == 1 else "counterfactual window"

    @property
    def static_names(self) -> list[str]:
        """Names of the factors that never change."""
        nodes = self.made.static_nodes
        return [] if nodes is None else [name for name, still in zip(self.factors.names, nodes, strict=True) if still]

    def blend(self, real: float, synthetic: float) -> float:
        """Return the share in data and counterfactuals together, from the shares in each."""
        rows, made = len(self.data), len(self.made)
        return (rows * real + made * synthetic) / (rows + made)


def measure(
    data: Transitions,
    made: Counterfactuals,
    augmenter: Augmenter,
    *,
    rng: np.random.Generator,
    audit: Audit | None = None,
    extras: Extras = Extras(),  # noqa: B008 (frozen)
) -> Facts:
    """Measure everything that a report says; the arguments are those of ``write_report``."""
    _require(data, made, augmenter)
    factors, mask_fn = augmenter.factors, augmenter.mask_fn
    _require_audit(audit, made, factors)
    extras.require_labels(factors)
    require_generator(rng)
    seen = rows_of(len(data), MOST_ROWS, rng)
    real = data[seen]
    some = made.transitions[rows_of(len(made), MOST_ROWS, rng)]
    traced = made.provenance[rows_of(len(made), MOST_PROVENANCE, rng)]
    sets, different = swap_sets(traced)
    pool, numbers = (real, seen) if made.window == 1 else (data, np.arange(len(data)))  # windows need neighbours
    tried = examples.rejected(pool, numbers, replace(augmenter, window=made.window), rng=rng)
    extras = extras if extras.draw is not None else replace(extras, draw=scene(real, factors))
    return Facts(
        data=data,
        made=made,
        factors=factors,
        mask_name=str(getattr(mask_fn, "__qualname__", type(mask_fn).__qualname__)),
        audit=audit,
        extras=extras,
        real=graphs(real, mask_fn, factors),
        synthetic=graphs(some, mask_fn, factors),
        sets=sets,
        different_sets=different,
        parents=parents(traced),
        traced=len(traced),
        coverage=coverage(real, some, factors),
        reward=compare("reward per step", real.reward, some.reward),
        features=features(real, some, factors, extras.labels),
        accepted=examples.accepted(data, made, mask_fn, factors, rng),
        rejections=tried,
    )


def _require(data: Transitions, made: Counterfactuals, augmenter: Augmenter) -> None:
    """Raise unless counterfactuals, data and augmenter belong together."""
    if not isinstance(augmenter, Augmenter):
        raise TypeError(f"augmenter: expected the Augmenter that made them, got {type(augmenter).__name__}.")
    factors = augmenter.factors
    require_data(data, factors)
    if not isinstance(made, Counterfactuals):
        raise TypeError(f"made: expected Counterfactuals, as an Augmenter returns them, got {type(made).__name__}.")
    factors.require_widths(made.transitions.state.shape[1], made.transitions.action.shape[1])
    last = int(max(made.base.max(initial=-1), made.donor.max(initial=-1)))
    if last >= len(data):
        raise ValueError(
            f"made: it has a parent in row {last:,}, but the data holds {len(data):,} rows. Give the report the same "
            "transitions that the augmenter was given."
        )
    if made.swapped.shape != (len(made), len(factors.names)):
        raise ValueError(
            f"made: it swapped {made.swapped.shape[1]} factors, but factors has {len(factors.names)}: "
            f"{listed(factors.names)}. Give the report the augmenter that made them."
        )


def _require_audit(audit: Audit | None, made: Counterfactuals, factors: Factorization) -> None:
    """Raise unless the audit is one of these counterfactuals."""
    if audit is None:
        return
    if not isinstance(audit, Audit):
        raise TypeError(f"audit: expected what counterpoint.checks.audit returns, got {audit!r}.")
    if len(audit.error) > len(made.windows) or len(audit.columns) != factors.state_width:
        raise ValueError(
            f"audit: it judged {len(audit.error):,} rows of {len(audit.columns)} columns, but there are "
            f"{len(made.windows):,} counterfactuals of {factors.state_width}. Audit the counterfactuals that the "
            "report is about."
        )
