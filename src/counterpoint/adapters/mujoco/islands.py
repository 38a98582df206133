"""The exact local mask of a MuJoCo environment, from the simulator's own contacts."""

from typing import Any

import numpy as np

from counterpoint.adapters.mujoco.contacts import exactness
from counterpoint.adapters.mujoco.rows import known_ties
from counterpoint.adapters.mujoco.workers import Bench
from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.progress import Progress

REMEMBERS = (
    "the environment keeps a state of its own outside of MuJoCo, such as a controller's last target: the same step "
    "from the same state of the simulator does not end the same, so recorded rows cannot be put back"
)
CREEP = 1e-7  # a difference that rounding has made too large to be one


class Islands:
    """A mask: trees that shared a contact island in some substep influenced each other, and no others did.

    Recorded rows carry their islands with them. Swapped rows are put into the simulator and stepped, which costs
    as much as simulating them.

    Islands say what acts on what, but rounding errors can creep from one to another, because the solver chooses one
    starting point for all of them. A tree that is about to tip can amplify them. So by default the mask also ties a
    swapped row whose trees end up somewhere else than expected although nothing touched them.

    Args:
        env: the environment, or a function that makes it. The mask changes its state: reset it before you use it again.
        factors: how columns split into factors, if not as `factorization` proposes.
        strict: also tie what ends up more than 1e-7 away from where it should, without a contact.
        workers: processes; one per core by default. Few rows need none.
        progress: called with the number of rows simulated, for each call.

    Attributes:
        exact: whether islands tell the whole story in this model, up to rounding.
        remarks: what else can carry an influence, a sentence each; and what the environment's own code reads.

    Example:
        >>> import gymnasium
        >>> import numpy as np
        >>> import counterpoint.worlds.fetch  # registers the environment
        >>> from counterpoint.adapters.mujoco import collect
        >>> env = gymnasium.make("counterpoint/FetchPushDisentangled-v0")
        >>> data = collect(env, None, 10, rng=np.random.default_rng(0))
        >>> Islands(env)(data.state, data.action, data.noise)[0].astype(int)  # the gripper is in the air
        array([[1, 0, 0],
               [0, 1, 0],
               [0, 0, 1],
               [1, 0, 0]])
    """

    uses_noise = True
    rows_at_once = 500  # proposals are simulated: not many more than are needed

    def __init__(
        self,
        env: Any,
        factors: Factorization | None = None,
        *,
        strict: bool = True,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.bench, self.progress, self.uses_next_state = Bench(env, workers), progress, strict
        inside = self.bench.inside
        self.factors = inside.factors if factors is None else factors
        self.exact, remarks = exactness(inside.way.model)
        read = [
            f"the environment's own code lets {inside.bodies.names[source]} influence {inside.bodies.names[target]}"
            for source, target in np.argwhere(inside.trial.reading)
        ]
        kept = () if inside.trial.repeats else (REMEMBERS,)
        remodels = (inside.why_another_model,) if inside.trial.remodels else ()
        self.exact &= inside.trial.repeats
        self.remarks = (*inside.bodies.joined, *read, *kept, *remodels, *remarks)
        self._place = inside.factor_of(self.factors)
        self._always = self._standing()

    def __call__(self, state: Floats, action: Floats, *more: Floats) -> Bools:
        """Return who influenced whom, (B, N, n), from states, actions, perhaps next states, and noise."""
        noise = np.asarray(more[-1])
        ties, known = known_ties(self.bench.inside, action, noise)
        new = np.flatnonzero(~known)
        if len(new):
            found = self.bench.run(state[new], action[new], noise[new], watch=True, progress=self.progress)
            ties[new] = found.ties
            if len(more) > 1:
                ties[new] |= self._elsewhere(found.next_state, more[0][new])
        mask = np.repeat(self._always[None], len(state), axis=0)
        for one, first in enumerate(self._place):
            for two, second in enumerate(self._place):
                mask[:, first, second] |= ties[:, one, two]
        return mask

    def _elsewhere(self, simulated: Floats, said: Floats) -> Bools:
        """Tie each group that ends up elsewhere than it is said to with all others, (B, groups, groups)."""
        far = [(np.abs(simulated - said)[:, own] > CREEP).any(axis=1) for own in self.bench.inside.columns.of_group]
        off = np.stack(far, axis=1)
        return np.asarray(off[:, :, None] | off[:, None, :])

    def close(self) -> None:
        """End the worker processes."""
        self.bench.close()

    def _standing(self) -> Bools:
        """Return the edges that are always there, (N, n): of factors to themselves, of actions, of code that reads."""
        inside, factors = self.bench.inside, self.factors
        mask = np.eye(factors.n + factors.m, factors.n, dtype=np.bool_)
        for index, columns in enumerate(factors.action.values()):
            for group in np.flatnonzero(inside.drives[list(columns)].any(axis=0)):
                mask[factors.n + index, self._place[group]] = True
        for source, target in np.argwhere(inside.trial.reading):
            mask[self._place[source], self._place[target]] = True
        return mask
