"""TreeAttribution: surprises explained by trees instead of networks, from fewer rows and in less time."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_count, require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.own_course import OwnCourses
from counterpoint.learn.forests.case import Case
from counterpoint.learn.forests.changes import changes
from counterpoint.learn.forests.influences import Influences
from counterpoint.learn.forests.joint import situations
from counterpoint.learn.forests.single import TURNS, blame
from counterpoint.learn.training import storage
from counterpoint.learn.training.fitting import History
from counterpoint.learn.training.inputs import require_inputs, require_several, require_training_data
from counterpoint.learn.training.scaling import Scaling
from counterpoint.learn.training.storable import Storable
from counterpoint.progress import ProgressBar

_ROWS = 8192  # rows that are scored at once, which bounds memory
_UNTRAINED = History((), (), 0, "epochs", 0.0)


@dataclass(frozen=True, eq=False)
class Grown:
    """What fitting adds to the settings."""

    influences: Influences
    scaling: Scaling  # of the data, for the file


@dataclass(frozen=True, kw_only=True)
class TreeAttribution(Storable[Grown]):
    """Explain what factors do that they would not do by themselves, by trees over pairs of factors.

    No labels are used, and no network. There are three steps:

    1. *Laws* say what each factor does by itself, and by what moves it always: a straight one, and small trees for
       what is not straight. What it does beyond its noise is a surprise.
    2. *Trees* over how source and target lie to each other, now and after the step, whether another of the same
       type is nearer, and what else both are like, say how often the source surprises the target, or pushes it
       steadily. The sources, and the target's own state, share out each surprise by how likely each makes it, until
       who only happens to be there has no share left. Whether a row is explained is always told by trees that were
       grown on other episodes.
    3. *Others*: who changes what a source does to a target, as a screen does for a lamp, gets an edge where the
       source has one, and it makes a difference. Two sources that surprise a target only together, as runner and wire
       ring a bell, both get one where they do.

    The score of an edge is the chance of a surprise, or what a push comes to; 1 for what moves a factor always. The
    law of motion and the way in which trees look for influences are those of the witness that ``calibrate`` listens
    to. Fit it to other data than you calibrate on, but remember that the two may be blind to the same things.

    Where many influences are there in nearly every row, and no law finds them, they become part of what is usual.
    Three sources that act only together are not found. The nearest of several is told from the others where positions
    are known, and they are of one type. A policy that goes for an object may make it look as if the object moved the
    arm.

    Attributes:
        halvings: how often the episodes are cut in two; there are twice as many trees for each kind of pair.
        allow_constant: accept state and action columns that never vary in the training data.
        fitted: None, or what ``fit`` learned.

    Example:
        >>> import numpy as np
        >>> from counterpoint import Factorization, Transitions
        >>> from counterpoint.learn import TreeAttribution
        >>> from counterpoint.masks import Threshold
        >>> factors = Factorization.blocks(state={"hand": 1, "cup": 1}, positions={"hand": (0,), "cup": (1,)})
        >>> rng = np.random.default_rng(0)
        >>> before = rng.uniform(-1, 1, (2_000, 2))
        >>> near = np.abs(before[:, 0] - before[:, 1]) < 0.2
        >>> after = 0.9 * before + 0.01 * rng.normal(size=before.shape)
        >>> after[:, 1] += 0.5 * near  # what is near to the hand is pushed
        >>> data = Transitions(before, np.zeros((2_000, 0)), np.zeros(2_000), after, np.zeros(2_000, bool))
        >>> fitted = TreeAttribution(halvings=1).fit(data, factors, rng=rng, progress=False)
        >>> pushes = Threshold(fitted, 0.5)(data.state, data.action)[:, 0, 1]
        >>> bool((pushes == near).mean() > 0.9)
        True

    Time is O(rows · pairs): 20,000 rows of seven factors take about half a minute of one core.
    """

    uses_next_state: ClassVar[bool] = False

    halvings: int = 4
    allow_constant: bool = False

    def __post_init__(self) -> None:
        require_count("halvings", self.halvings, 1)

    def fit(
        self, data: Transitions, factors: Factorization, *, rng: np.random.Generator, progress: bool = True
    ) -> Self:
        """Return a copy of this estimator that has learned from ``data``; this one stays as it is.

        The same data, settings and state of ``rng`` give the same trees.

        Args:
            data: transitions to learn from. With episode ids, halves are made of whole episodes.
            factors: how columns split into factors.
            rng: source of all randomness.
            progress: whether to show a progress bar on the error stream.

        Raises:
            ValueError: if the data does not fit the factors, has too few rows, or has a constant column.
        """
        require_generator(rng)
        require_training_data(data, factors, allow_constant=self.allow_constant)
        require_several(factors)
        with ProgressBar(type(self).__name__, TURNS + 3, "steps", shown=progress) as bar:
            alone = OwnCourses.fit(data, factors, rng)
            bar.advance()
            case = Case.of(alone, data, self.halvings, rng)
            found, forests = blame(case, rng, bar.advance)
            changing = changes(case, found)
            bar.advance()
            joint = situations(case, found, rng)
        learned = Influences(case.outlook, alone.always, case.asked, tuple(forests), changing, joint)
        return replace(self, fitted=Grown(learned, Scaling.of(data)))

    def scores(self, state: Array, action: Array, next_state: Array | None = None, /) -> Floats:  # noqa: ARG002
        """Return how likely each source influences each target, float32 (B, N, n).

        Rows are sources (state factors, then action factors), columns are next-state factors. Works through the
        rows in batches of bounded memory.

        Args:
            state: (B, S).
            action: (B, A).
            next_state: ignored.
        """
        learned = self.learned().influences
        state, action = require_inputs(learned.outlook.factors, state, action, None)
        scores = np.empty((len(state), *learned.always.shape), np.float32)
        for start in range(0, len(scores), _ROWS):
            some = slice(start, start + _ROWS)
            scores[some] = learned.scores(state[some], action[some])
        return scores

    def contents(self) -> dict[str, Any]:
        """Return what a file holds beside name and settings."""
        learned = self.learned()
        factors, weights = learned.influences.outlook.factors, learned.influences.weights()
        return {"factors": factors, "scaling": learned.scaling, "history": _UNTRAINED, "weights": weights}

    def restored(self, record: storage.Record) -> Grown:
        """Return what was learned, from a record that nobody has checked yet."""
        return Grown(Influences.of(record.weights, record.factors), record.scaling)
