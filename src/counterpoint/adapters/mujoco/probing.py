"""Find out by trying what a model file does not say: which columns show which tree, and what an action moves."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np

from counterpoint.adapters.mujoco.access import Access, access
from counterpoint.adapters.mujoco.bodies import Bodies
from counterpoint.adapters.mujoco.contacts import Contacts
from counterpoint.adapters.mujoco.layout import Layout
from counterpoint.adapters.mujoco.packing import WHOLE, fingerprint, owners, parts, whole_state
from counterpoint.core.arrays import Bools, Floats, Ints

PLACES = 6  # states in which everything is tried
STEPS = 4  # between two of them
NUDGE = 0.05  # of positions and velocities, metres or radians, and per second
GENTLE = 1e-3  # the same before a step, which a violent nudge could blow up
COMPUTED = (
    "xpos",
    "xquat",
    "site_xpos",
    "cvel",
    "sensordata",
    "qfrc_bias",
    "actuator_force",
    "qacc",
    "qfrc_constraint",
)
SEEN = 1e-6  # a smaller difference after a step is rounding


@dataclass(frozen=True, eq=False)
class Probe:
    """What was seen while an environment was tried out."""

    states: Floats  # (K, W) whole states along a few random steps, the first after a reset
    places: Floats  # (P, R) raw columns in some of them
    nudged: Floats  # (P, groups, R) raw columns after each group alone was moved
    changing: Bools  # (R,) raw columns that differ along the steps
    wholes: Floats  # (P, groups + 1, W) whole states while those were seen, the untouched first
    points: Floats  # (P, groups + 1, K, 3) where all bodies and then all sites were, at the same time
    moved: Bools  # (A, groups) which groups each action column moves
    reading: Bools  # (groups, groups) source and target: moved without a tie, by the environment's own code
    repeats: bool  # whether the same step from the same state ends the same
    remodels: bool  # whether a reset changes the model itself
    fresh: bool  # whether a step leaves nothing behind that is one substep old

    def rows(self) -> Floats:
        """Return all raw columns that were seen, a row for each whole state."""
        return np.concatenate([self.places[:, None], self.nudged], axis=1).reshape(-1, self.places.shape[1])


def tried(env: Any, way: Access, bodies: Bodies, shape: Layout) -> Probe:
    """Try an environment out: a few random steps, and then one nudge at a time. Takes about a second.

    The environment's random numbers are put back; its episode is lost.
    """
    rng = np.random.default_rng(0)
    before = getattr(env.unwrapped, "np_random", None)
    shown, _ = env.reset(seed=0)
    _require_kept(env, way)
    _require_same(shape.raw(shown), shape.raw(way.observe()))
    env.action_space.seed(0)
    states, raws, fresh = [whole_state(way.model, way.data)], [shape.raw(shown)], True
    for _ in range(PLACES * STEPS):
        raws.append(shape.raw(env.step(env.action_space.sample())[0]))
        left = _computed(way)
        way.refresh()
        fresh &= np.array_equal(left, _computed(way))
        states.append(whole_state(way.model, way.data))
    chosen = states[STEPS::STEPS]
    seen = [list(_nudges(way, bodies, shape, state, rng)) for state in chosen]
    moved, reading, repeats = _steps(env, way, bodies, chosen, rng)
    first = fingerprint(way.model)
    env.reset(seed=1)
    remodels = fingerprint(way.model) != first
    if before is not None:
        env.unwrapped.np_random = before
    return Probe(
        states=np.array(states),
        places=np.array([place[0].raw for place in seen]),
        nudged=np.array([[each.raw for each in place[1:]] for place in seen]),
        changing=(np.array(raws) != raws[0]).any(axis=0),
        wholes=np.array([[each.whole for each in place] for place in seen]),
        points=np.array([[each.points for each in place] for place in seen]),
        moved=moved,
        reading=reading,
        repeats=repeats,
        remodels=remodels,
        fresh=bool(fresh),
    )


def _computed(way: Access) -> Floats:
    """Return what MuJoCo computes from positions and velocities, and an environment's code may read."""
    return np.concatenate([getattr(way.data, name) for name in COMPUTED], axis=None)


def _require_kept(env: Any, way: Access) -> None:
    if access(env).data is not way.data:
        raise ValueError(
            "env: reset() builds a new simulator, so there is none to put rows back into. Let it keep the one it has; "
            "with robosuite, robosuite.make(..., hard_reset=False)."
        )


def _require_same(shown: Floats, observed: Floats) -> None:
    if shown.shape != observed.shape:
        raise ValueError(
            f"env: reset() showed {len(shown)} columns, but {len(observed)} can be shown again. A wrapper that adds "
            "something to what is shown is the usual reason: put it outside of the recorder."
        )
    wrong = np.flatnonzero(shown != observed)
    if len(wrong):
        raise ValueError(
            f"env: what reset() showed cannot be shown again: {len(wrong)} of {len(shown)} columns differ, first "
            f"column {wrong[0]}. Observation noise or a wrapper that remembers is the usual reason: switch it off (in "
            "Kitchen robot_noise_ratio=0.0 and object_noise_ratio=0.0), or put the wrapper outside of the recorder."
        )


class _Sight(NamedTuple):
    """What was seen in one state."""

    raw: Floats
    whole: Floats
    points: Floats


def _nudges(way: Access, bodies: Bodies, shape: Layout, state: Floats, rng: np.random.Generator) -> Iterator[_Sight]:
    """Yield what is seen in a state, and after each group alone was moved a little."""
    for group in (None, *range(len(bodies.names))):
        whole = state if group is None else nudge(way, bodies, state, group, rng)
        put(way, whole)
        points = np.concatenate([way.data.xpos, way.data.site_xpos])
        yield _Sight(shape.raw(way.observe()), whole, points)


def nudge(way: Access, bodies: Bodies, state: Floats, group: int, rng: np.random.Generator) -> Floats:
    """Return a state in which one group has other positions, velocities, activations and controls."""
    other = _shifted(way, bodies, state, group, NUDGE * rng.normal(size=way.model.nv))
    for own in _entries(way, bodies, group, "QVEL", "ACT", "CTRL"):
        other[own] += NUDGE * rng.normal(size=len(own))
    return other


def gentle_nudge(way: Access, bodies: Bodies, state: Floats, group: int, rng: np.random.Generator) -> Floats:
    """Return a state that can still be stepped from: positions moved a little, velocities scaled a little."""
    other = _shifted(way, bodies, state, group, GENTLE * rng.normal(size=way.model.nv))
    for own in _entries(way, bodies, group, "QVEL"):
        other[own] *= 1 + GENTLE * rng.normal(size=len(own))
    return other


def _entries(way: Access, bodies: Bodies, group: int, *names: str) -> Iterator[Ints]:
    """Yield the entries of a whole state that belong to a group, part by part."""
    places, owner = parts(way.model), owners(bodies)
    for name in names:
        own = np.arange(places[name].start, places[name].stop)
        yield own[owner[own] == group]


def _shifted(way: Access, bodies: Bodies, state: Floats, group: int, by: Floats) -> Floats:
    """Return a state in which the joints of one group are moved; all other entries keep their bits."""
    (own,) = _entries(way, bodies, group, "QPOS")
    other, place = state.copy(), parts(way.model)["QPOS"]
    qpos = state[place].copy()
    mujoco.mj_integratePos(way.model, qpos, np.where(bodies.of_dofs() == group, by, 0.0), 1.0)
    other[own] = qpos[own - place.start]
    return other


def put(way: Access, state: Floats) -> None:
    """Put a whole state into the simulator, with everything that follows from it."""
    mujoco.mj_setState(way.model, way.data, state, WHOLE)
    way.refresh()
    if way.remember is not None:
        way.remember()


def _steps(
    env: Any, way: Access, bodies: Bodies, states: list[Floats], rng: np.random.Generator
) -> tuple[Bools, Bools, bool]:
    """Step from nudged states and with nudged actions, and see which groups end up elsewhere without a tie.

    Where the untouched step does not end the same after all that, the environment keeps a state of its own, and what
    it reads cannot be told from what it remembers.
    """
    groups, columns = len(bodies.names), env.action_space.shape[0]
    moved, reading = np.zeros((columns, groups), np.bool_), np.zeros((groups, groups), np.bool_)
    repeats = True
    contacts = Contacts(way.data, bodies)
    for state in states:
        action = env.action_space.sample()
        base, free = _stepped(env, way, contacts, state, action)
        for column in range(columns):
            other = action.copy()
            other[column] = rng.uniform(env.action_space.low[column], env.action_space.high[column])
            ends, ties = _stepped(env, way, contacts, state, other)
            moved[column] |= _apart(bodies, base, ends) & _alone(free | ties)
        repeats &= np.array_equal(base, _stepped(env, way, contacts, state, action)[0])
        for group in range(groups):
            ends, ties = _stepped(env, way, contacts, gentle_nudge(way, bodies, state, group, rng), action)
            reading[group] |= _apart(bodies, base, ends) & ~_reached(free | ties)[group]
    return moved, reading & repeats, repeats


def _stepped(env: Any, way: Access, contacts: Contacts, state: Floats, action: Any) -> tuple[Floats, Bools]:
    put(way, state)
    with contacts.watched():
        env.step(action)
    return np.concatenate([way.data.qvel, way.data.qpos]), contacts.ties()


def _apart(bodies: Bodies, one: Floats, two: Floats) -> Bools:
    """Return which groups differ after a step, (groups,)."""
    owner = np.concatenate([bodies.of_dofs(), bodies.of_qpos()])
    far = np.abs(one - two) > SEEN
    return np.bincount(owner[far], minlength=len(bodies.names)) > 0


def _alone(ties: Bools) -> Bools:
    """Return which groups are tied to no other; what moves these is no push."""
    return np.asarray(ties.sum(axis=1) == 1)


def _reached(ties: Bools) -> Bools:
    """Return who can reach whom along ties, (groups, groups)."""
    reach = ties.copy()
    for _ in range(len(ties)):
        reach = (reach.astype(np.int64) @ ties.astype(np.int64)) > 0
    return reach
