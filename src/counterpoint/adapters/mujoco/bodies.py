"""Which parts of a model move on their own: kinematic trees, merged where something joins them always."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from counterpoint.core.arrays import Ints

JOINT_WIDTH = {mujoco.mjtJoint.mjJNT_FREE: 7, mujoco.mjtJoint.mjJNT_BALL: 4}
EQUALITY_OF_BODIES = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
OBJECT_OF_WRAP = {
    int(mujoco.mjtWrap.mjWRAP_JOINT): "joint",
    int(mujoco.mjtWrap.mjWRAP_SITE): "site",
    int(mujoco.mjtWrap.mjWRAP_SPHERE): "geom",
    int(mujoco.mjtWrap.mjWRAP_CYLINDER): "geom",
}


@dataclass(frozen=True, eq=False)
class Bodies:
    """The groups of trees that become factors, and what of the simulator's state belongs to each.

    Attributes:
        names: of the groups, after the first body of each tree.
        of_tree: (trees,) the group of each kinematic tree.
        joined: for each merge, a sentence that says what joins the trees.
    """

    model: Any
    names: tuple[str, ...]
    of_tree: Ints
    joined: tuple[str, ...]

    @cached_property
    def driven(self) -> int:
        """The group that owns what belongs to none: the first that an actuator or a mocap weld moves."""
        for trees in (*self._of_actuators, *self._of_welded_mocaps.values()):
            if len(trees):
                return int(self.of_tree[trees[0]])
        return 0

    def of_dofs(self) -> Ints:
        """The group of each degree of freedom, (nv,)."""
        return np.asarray(self.of_tree[self.model.dof_treeid])

    def of_qpos(self) -> Ints:
        """The group of each entry of ``qpos``, (nq,)."""
        tree = self.model.dof_treeid[self.model.jnt_dofadr]
        widths = [JOINT_WIDTH.get(mujoco.mjtJoint(kind), 1) for kind in self.model.jnt_type]
        return np.asarray(self.of_tree[np.repeat(tree, widths)])

    def of_bodies(self) -> Ints:
        """The group of each body, (nbody,); those that cannot move belong to the driven group."""
        tree = self.model.body_treeid
        return np.asarray(np.where(tree >= 0, self.of_tree[np.maximum(tree, 0)], self.driven))

    def of_actuators(self) -> Ints:
        """The group of each actuator, (nu,)."""
        return self._groups(self._of_actuators)

    def of_mocaps(self) -> Ints:
        """The group of each mocap body, (nmocap,): the one that it is welded to."""
        return self._groups([self._of_welded_mocaps.get(mocap, ()) for mocap in range(self.model.nmocap)])

    def of_equalities(self) -> Ints:
        """The group of each equality constraint, (neq,)."""
        return self._groups([_trees_of_equality(self.model, index) for index in range(self.model.neq)])

    def of_activations(self) -> Ints:
        """The group of each activation variable, (na,)."""
        group = np.full(self.model.na, self.driven)
        for actuator, owner in enumerate(self.of_actuators()):
            first, count = self.model.actuator_actadr[actuator], self.model.actuator_actnum[actuator]
            if first >= 0:
                group[first : first + count] = owner
        return group

    def _groups(self, trees: Any) -> Ints:
        return np.array([self.of_tree[each[0]] if len(each) else self.driven for each in trees], np.int64)

    @cached_property
    def _of_actuators(self) -> list[list[int]]:
        return [_trees_of_actuator(self.model, index) for index in range(self.model.nu)]

    @cached_property
    def _of_welded_mocaps(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for index in range(self.model.neq):
            if self.model.eq_type[index] in EQUALITY_OF_BODIES:
                mocaps = [self.model.body_mocapid[body] for body in _bodies_of_equality(self.model, index)]
                found |= {int(mocap): _trees_of_equality(self.model, index) for mocap in mocaps if mocap >= 0}
        return found


def bodies(model: Any) -> Bodies:
    """Group the kinematic trees of a model.

    Raises:
        ValueError: if nothing in it can move.
    """
    if not model.ntree:
        raise ValueError("env: nothing in this model can move, so there is nothing to factor.")
    group = np.arange(model.ntree)
    sentences = []
    for what, trees in _always_joined(model):
        if len(set(group[trees])) > 1:
            sentences.append(f"{what} joins {' and '.join(_tree_name(model, tree) for tree in trees)}")
            group[np.isin(group, group[trees])] = group[trees].min()
    first, of_tree = np.unique(group, return_inverse=True)
    names = ["+".join(_tree_name(model, tree) for tree in np.flatnonzero(group == one).tolist()) for one in first]
    unique = tuple(name if names.count(name) == 1 else f"{name} {k}" for k, name in enumerate(names))
    return Bodies(model, unique, of_tree.astype(np.int64), tuple(sentences))


def _tree_name(model: Any, tree: int) -> str:
    """Return the name of the tree's first body that has one."""
    names = [model.body(body).name for body in np.flatnonzero(model.body_treeid == tree)]
    return next((str(name) for name in names if name), f"tree {tree}")


def _always_joined(model: Any) -> Iterator[tuple[str, list[int]]]:
    """Yield what joins trees in every step, and which."""
    for index in range(model.neq):
        if model.eq_active0[index]:
            name = model.equality(index).name or index
            yield f"equality constraint {name}", _trees_of_equality(model, index)
    for index in range(model.ntendon):
        yield f"tendon {model.tendon(index).name or index}", _trees_of_tendon(model, index)
    for index in range(model.nu):
        yield f"actuator {model.actuator(index).name or index}", _trees_of_actuator(model, index)


def _bodies_of_equality(model: Any, index: int) -> list[int]:
    ids = [int(model.eq_obj1id[index]), int(model.eq_obj2id[index])]
    kind = model.eq_type[index]
    if kind in EQUALITY_OF_BODIES:
        of_sites = model.eq_objtype[index] == mujoco.mjtObj.mjOBJ_SITE
        return [int(model.site_bodyid[one]) for one in ids] if of_sites else [one for one in ids if one >= 0]
    if kind == mujoco.mjtEq.mjEQ_JOINT:
        return [int(model.jnt_bodyid[one]) for one in ids if one >= 0]
    return []


def _trees_of_equality(model: Any, index: int) -> list[int]:
    if model.eq_type[index] == mujoco.mjtEq.mjEQ_TENDON:
        ids = [int(one) for one in (model.eq_obj1id[index], model.eq_obj2id[index]) if one >= 0]
        return sorted({tree for one in ids for tree in _trees_of_tendon(model, one)})
    return _trees(model, _bodies_of_equality(model, index))


def _trees_of_tendon(model: Any, index: int) -> list[int]:
    first, count = model.tendon_adr[index], model.tendon_num[index]
    touched = []
    for kind, one in zip(model.wrap_type[first : first + count], model.wrap_objid[first : first + count], strict=True):
        what = OBJECT_OF_WRAP.get(int(kind))
        if what is not None and one >= 0:
            touched.append(int(getattr(model, {"joint": "jnt"}.get(what, what) + "_bodyid")[one]))
    return _trees(model, touched)


def _trees_of_actuator(model: Any, index: int) -> list[int]:
    one, two = (int(each) for each in model.actuator_trnid[index])
    kind = mujoco.mjtTrn(model.actuator_trntype[index])
    if kind in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT):
        return _trees(model, [int(model.jnt_bodyid[one])])
    if kind == mujoco.mjtTrn.mjTRN_TENDON:
        return _trees_of_tendon(model, one)
    if kind == mujoco.mjtTrn.mjTRN_BODY:
        return _trees(model, [one])
    return _trees(model, [int(model.site_bodyid[site]) for site in (one, two) if site >= 0])


def _trees(model: Any, touched: list[int]) -> list[int]:
    return sorted({int(model.body_treeid[body]) for body in touched if model.body_treeid[body] >= 0})
