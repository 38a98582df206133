"""Which tree each column shows: read off what moved when one tree alone was moved."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from counterpoint.adapters.mujoco.bodies import Bodies
from counterpoint.adapters.mujoco.layout import Layout, copies
from counterpoint.adapters.mujoco.probing import Probe
from counterpoint.core.arrays import Bools, Floats, Ints, listed

SAME = 1e-9  # columns that agree this well in all trials are the same quantity
FEWEST_AXES = 2  # along which a body has to show where it is


@dataclass(frozen=True, eq=False)
class ObservedColumns:
    """The owners of the columns of a state."""

    of_group: tuple[Ints, ...]  # columns that show one group alone, for each group
    goal: Ints  # columns of the desired goal
    constant: Ints  # other columns that nothing moves
    differences: tuple[tuple[int, int, int], ...]  # derived column, and the two whose difference it is


class Relative(NamedTuple):
    """A raw column that shows one group relative to a column of another."""

    column: int
    other: int
    group: int  # the group whose absolute value stands beside the observation


def columns(bodies: Bodies, shape: Layout, trial: Probe) -> tuple[Layout, ObservedColumns]:
    """Find the owner of each column, and what has to stand beside the observation.

    Raises:
        ValueError: if columns mix trees in a way that cannot be undone, or change for reasons that cannot be seen.
    """
    moves = (trial.nudged != trial.places[:, None]).any(axis=0)  # (groups, R)
    seen, wanted, _ = shape.sizes
    owner = np.where(moves.sum(axis=0) == 1, moves.argmax(axis=0), -1)
    achieved = copies(trial.rows(), np.arange(seen + wanted, sum(shape.sizes)), np.arange(seen))
    if wanted and achieved is not None:
        shape = replace(shape, achieved=achieved)
    differences: list[tuple[int, int, int]] = []
    relative: list[Relative] = []
    for column in np.flatnonzero(moves.sum(axis=0) > 1).tolist():
        if shape.column(column) is None:
            continue
        pair = _difference(trial, moves, owner, column)
        half = _half(trial, moves, owner, column)
        if pair is not None:
            differences.append((column, *pair))
        elif half is not None:
            relative.append(half)
        else:
            raise ValueError(_mixed(bodies, moves, column))
    shown = {*owner.tolist(), *(each.group for each in relative)}
    entries = [entry for entry, group in enumerate(bodies.of_qpos().tolist()) if group not in shown]
    shape = replace(shape, absolute=tuple(each[:2] for each in relative), unseen=tuple(entries))
    return shape, _placed(bodies, shape, trial, owner, (differences, relative))


def coordinates(rows: Floats, points: Floats) -> dict[int, int]:
    """Return which columns are the coordinates of one point, by axis: of the point that shows most axes.

    Args:
        rows: (B, C) columns of one group in all trials.
        points: (B, K, 3) bodies and sites of the group in the same.
    """
    same = np.abs(rows[:, :, None, None] - points[:, None]).max(axis=0, initial=0) < SAME  # (C, K, 3)
    if not same.any():
        return {}
    most = int(same.any(axis=0).sum(axis=1).argmax())
    return {axis: int(same[:, most, axis].argmax()) for axis in range(3) if same[:, most, axis].any()}


def _placed(
    bodies: Bodies,
    shape: Layout,
    trial: Probe,
    owner: Ints,
    mixed: tuple[list[tuple[int, int, int]], list[Relative]],
) -> ObservedColumns:
    """Translate raw columns into columns of the state, and give those beside the observation to their groups."""
    differences, relative = mixed
    seen, wanted, _ = shape.sizes
    groups: list[list[int]] = [[] for _ in bodies.names]
    constant: list[int] = []
    left = {each[0] for each in (*differences, *relative)} | set(range(seen, seen + wanted))
    for raw, group in enumerate(owner.tolist()):
        column = shape.column(raw)
        if column is not None and raw not in left:
            (groups[group] if group >= 0 else constant).append(column)
            if group < 0:
                _require_constant(trial, raw)
    for place, each in enumerate(relative):
        groups[each.group].append(seen + place)
    for place, entry in enumerate(shape.unseen):
        groups[int(bodies.of_qpos()[entry])].append(seen + len(relative) + place)
    table = [_translated(shape, *each) for each in differences]
    for place, each in enumerate(relative):
        column, other, _ = _translated(shape, each.column, each.other, 0)
        table.append((column, seen + place, other))
    goal = np.arange(seen, seen + wanted) + shape.beside
    ordered = tuple(np.array(sorted(own), np.int64) for own in groups)
    return ObservedColumns(ordered, goal, np.array(constant, np.int64), tuple(sorted(table)))


def _translated(shape: Layout, *raws: int) -> tuple[int, int, int]:
    one, two, three = (shape.column(raw) or 0 for raw in raws)
    return one, two, three


def _difference(trial: Probe, moves: Bools, owner: Ints, column: int) -> tuple[int, int] | None:
    """Find two columns of single groups whose difference a mixed column is."""
    rows, groups = trial.rows(), np.flatnonzero(moves[:, column])
    if len(groups) != 2:
        return None
    for one, two in (groups, groups[::-1]):
        plus, minus = np.flatnonzero(owner == one), np.flatnonzero(owner == two)
        apart = np.abs(rows[:, plus, None] - rows[:, None, minus] - rows[:, column, None, None]).max(axis=0, initial=0)
        found = np.argwhere(apart < SAME)
        if len(found):
            return int(plus[found[0][0]]), int(minus[found[0][1]])
    return None


def _half(trial: Probe, moves: Bools, owner: Ints, column: int) -> Relative | None:
    """Find a column that is subtracted from something absolute, which is not shown, to give a mixed column."""
    groups = np.flatnonzero(moves[:, column]).tolist()
    if len(groups) != 2:
        return None
    shift = trial.nudged - trial.places[:, None]  # (P, groups, R)
    for group, rest in (groups, groups[::-1]):
        for other in np.flatnonzero(owner == group).tolist():
            if np.abs(shift[:, group, column] + shift[:, group, other]).max() < SAME:
                return Relative(column, other, rest)
    return None


def _mixed(bodies: Bodies, moves: Bools, column: int) -> str:
    names = [bodies.names[group] for group in np.flatnonzero(moves[:, column])]
    return (
        f"env: column {column} of the observation mixes {listed(names)}, and is not the difference of two other "
        "columns, so it cannot be recomputed after a swap. Leave it out, for instance with "
        "gymnasium.wrappers.TransformObservation."
    )


def _require_constant(trial: Probe, raw: int) -> None:
    if trial.changing[raw]:
        raise ValueError(
            f"env: column {raw} of the observation changes from step to step, but no position or velocity moves it. "
            "It shows something that the simulator does not hold (a clock, the last action): leave it out."
        )
