"""Record an environment with everything that the simulator needs to take the same step again."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from counterpoint.adapters.mujoco.anatomy import anatomy
from counterpoint.adapters.mujoco.contacts import Contacts
from counterpoint.adapters.mujoco.packing import whole_state
from counterpoint.adapters.mujoco.rows import noise_row
from counterpoint.core.arrays import Array, Floats
from counterpoint.core.require import require_count, require_generator
from counterpoint.core.transitions import Transitions


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that remembers every step, with the simulator's state before it.

    Put it around your environment, play as usual, and take ``transitions()`` at the end.

    Args:
        env: an environment with a MuJoCo simulator.
        islands: also record who touched whom, so that `Islands` need not simulate recorded rows again.
        fresh: before every step, compute what follows from positions and velocities, unless the environment does it
            itself. Some read values that lag one substep behind, and those cannot be restored. Switch it off only to
            see how much it matters.
        everything: record the whole integration state, also what looks as if it were always zero.
    """

    def __init__(self, env: Any, *, islands: bool = True, fresh: bool = True, everything: bool = False) -> None:
        inside = anatomy(env)
        super().__init__(env)
        self.inside, self.fresh = inside, fresh and not inside.trial.fresh
        self.packing = inside.packing.everything() if everything else inside.packing
        self.contacts = Contacts(inside.way.data, inside.bodies) if islands else None
        self.rows: list[tuple[Any, ...]] = []
        self._state: Floats | None = None
        self._episode, self._step = -1, 0

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        shown, info = self.env.reset(**settings)
        self._state = self._flat(shown)
        self._episode, self._step = self._episode + 1, 0
        return shown, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step and remember it."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("There is no episode yet: call reset() first.")
        way = self.inside.way
        if self.fresh:
            way.refresh()
        packed = self.packing.pack(whole_state(way.model, way.data))
        shown, reward, terminated, truncated, info, ties = self._stepped(action)
        before, self._state = self._state, self._flat(shown)
        taken = np.array(action)
        noise = noise_row(self.inside, packed, taken, ties)
        self.rows.append((before, taken, reward, self._state, terminated, self._episode, self._step, noise))
        self._step += 1
        return shown, reward, terminated, truncated, info

    def transitions(self) -> Transitions:
        """Return all steps so far."""
        if not self.rows:
            raise ValueError("Recorder: no step was taken yet.")
        state, action, reward, after, terminated, episode, step, noise = (
            np.array(column) for column in zip(*self.rows, strict=True)
        )
        flags = terminated.astype(np.bool_)
        return Transitions(state, action, reward.astype(np.float64), after, flags, episode, step, noise)

    def _stepped(self, action: Any) -> tuple[Any, ...]:
        if self.contacts is None:
            return (*self.env.step(action), None)
        with self.contacts.watched():
            stepped = self.env.step(action)
        return (*stepped, self.contacts.words())

    def _flat(self, shown: Any) -> Floats:
        return self.inside.layout.state(shown, self.inside.way.data.qpos)


def collect(
    env: Any,
    policy: Callable[[Any, np.random.Generator], Array] | None,
    size: int,
    *,
    rng: np.random.Generator,
) -> Transitions:
    """Play and record so many steps.

    Args:
        env: an environment with a MuJoCo simulator, such as ``gymnasium.make("FetchPush-v4")``.
        policy: ``(observation, rng) -> action``; None acts at random.
        size: how many steps.
        rng: source of randomness, also of the episodes' seeds.

    Returns:
        Transitions whose noise columns hold the hidden state; `factorization` says which factor owns them.

    Example:
        >>> import gymnasium
        >>> import numpy as np
        >>> import counterpoint.worlds.fetch  # registers the environment
        >>> env = gymnasium.make("counterpoint/FetchPushDisentangled-v0")
        >>> data = collect(env, None, 60, rng=np.random.default_rng(0))
        >>> len(data), data.state.shape[1]
        (60, 25)
    """
    require_count("size", size)
    require_generator(rng)
    recorder = env if isinstance(env, Recorder) else Recorder(env)
    recorder.action_space.seed(int(rng.integers(2**31)))
    over = True
    shown: Any = None
    for _ in range(size):
        if over:
            shown, _ = recorder.reset(seed=int(rng.integers(2**31)))
        action = recorder.action_space.sample() if policy is None else policy(shown, rng)
        shown, _, terminated, truncated, _ = recorder.step(action)
        over = terminated or truncated
    return recorder.transitions()
