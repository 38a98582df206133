"""Structural and local causal models: section 2 of the paper as code, small enough to read beside it.

A model describes one time slice. Its nodes are the state and action factors at t and the state factors at t+1; each
next factor has an equation ``f(v, u)`` of the values at t and of its own noise. A model is asked over a finite
*domain*, a list of points (s, a), so all is found by enumeration. Values map names of nodes to arrays with B rows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Self, TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Bools, listed
from counterpoint.core.require import require_count, require_generator

Values: TypeAlias = Mapping[str, Array]
Equation: TypeAlias = Callable[[Values, Array], Any]  # f(v, u) -> (B,) or (B, width)
Subspace: TypeAlias = Callable[[Values], Any] | Array  # which points belong to it, (K,) bool
Names: TypeAlias = str | Iterable[str]


@dataclass(frozen=True, eq=False)
class StructuralCausalModel:
    """One time slice of a factored MDP, M = (V, U, F), over a finite domain of points (s, a).

    Attributes:
        domain: values of each node at t, state factors and actions; row k is the k-th point.
        equations: ``f(v, u)`` of each state factor at t+1.
        noise: the values that the noise of a factor may take, (R,) or (R, width). A factor without any
            is deterministic, and its ``u`` is 0.
        inside: tells which points belong to the subspace that the model was restricted to.

    Example:
        >>> import numpy as np
        >>> arms = StructuralCausalModel.over(  # two arms that move as they are told, unless they touch
        ...     {"left": (0, 1, 2), "right": (0, 1, 2), "go": (0, 1)},
        ...     {
        ...         "left": lambda v, u: np.where(v["left"] == v["right"], v["right"], v["left"] + v["go"]),
        ...         "right": lambda v, u: v["right"],
        ...     },
        ... )
        >>> arms.graph.astype(int)  # rows: left, right, go; columns: left and right at t+1
        array([[1, 0],
               [1, 1],
               [1, 0]])
        >>> arms.restrict(lambda v: v["left"] < v["right"]).graph.astype(int)  # apart, right has no say
        array([[1, 0],
               [0, 1],
               [1, 0]])
    """

    domain: Values
    equations: Mapping[str, Equation]
    noise: Values = field(default_factory=dict)
    inside: Callable[[Values], Any] | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in (*self.equations, *self.noise) if name not in self.domain]
        if unknown or not self.equations:
            raise ValueError(
                f"equations: expected some for nodes of the domain; it has no {listed(unknown) or 'node'}."
            )
        for kind in ("domain", "noise"):
            arrays = {name: np.asarray(values) for name, values in getattr(self, kind).items()}
            object.__setattr__(self, kind, arrays)
        lengths = {len(values) for values in self.domain.values()}
        if len(lengths) > 1:
            raise ValueError(f"domain: every node needs one value per point, got {sorted(lengths)} of them.")

    @classmethod
    def over(
        cls, ranges: Mapping[str, Iterable[Any]], equations: Mapping[str, Equation], noise: Values | None = None
    ) -> Self:
        """Build a model whose domain is every combination of the values in ``ranges``."""
        points = list(product(*(list(values) for values in ranges.values())))
        columns = {name: np.array([point[k] for point in points]) for k, name in enumerate(ranges)}
        return cls(columns, equations, noise or {})

    def __len__(self) -> int:
        return len(next(iter(self.domain.values())))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes at t: state factors, then actions."""
        return (*self.equations, *(name for name in self.domain if name not in self.equations))

    @cached_property
    def graph(self) -> Bools:
        """The structurally minimal graph, (N, n): an edge where changing the source alone changes the target.

        This is the paper's assumption, checked by intervention on every pair of points of the domain.
        """
        edges = [[self.depends(target, source) for target in self.equations] for source in self.nodes]
        return np.array(edges, np.bool_)

    def depends(self, target: str, sources: Names) -> bool:
        """Say whether two points that agree in all but ``sources`` lead to different next values of ``target``."""
        asked = target, frozenset(self._known(sources))
        if asked not in self._answers:
            self._answers[asked] = self.table(target, sources) is None
        return self._answers[asked]

    def table(self, target: str, without: Names) -> dict[tuple[Any, ...], Any] | None:
        """Return a factor's equation as a table over all nodes but some, or None if it depends on those, too.

        Keys are the values of the other nodes and the number of the noise value.
        """
        left_out = self._known(without)
        others = [self._rows[name] for name in self.nodes if name not in left_out]
        found: dict[tuple[Any, ...], Any] = {}
        for number, outcome in enumerate(self._outcomes(target)):
            for key, value in zip(zip(*others, strict=True) if others else [()] * len(self), outcome, strict=True):
                if found.setdefault((*key, number), value) != value:
                    return None
        return found

    def sample(self, size: int, rng: np.random.Generator) -> tuple[Values, Values]:
        """Draw points of the domain and noise, all equally likely, and return the values at t and at t+1."""
        require_count("size", size)
        require_generator(rng)
        rows = rng.integers(len(self), size=size)
        now = {name: values[rows] for name, values in self.domain.items()}
        noise = {name: values[rng.integers(len(values), size=size)] for name, values in self.noise.items()}
        return now, {name: self.evaluate(name, now, noise.get(name)) for name in self.equations}

    def evaluate(self, target: str, values: Values, noise: Array | None = None) -> Array:
        """Evaluate the equation of one next factor."""
        rows = len(next(iter(values.values())))
        return np.asarray(self.equations[target](values, np.zeros(rows) if noise is None else noise))

    def do(self, values: Mapping[str, Any]) -> Self:
        """Return the submodel in which nodes have given values, whatever their equations say.

        A name alone is a node at t, and one with a prime, such as ``"left'"``, a node at t+1.
        """
        now = {name: value for name, value in values.items() if not name.endswith("'")}
        self._known(now)
        domain = {
            name: np.broadcast_to(np.asarray(now[name], held.dtype), held.shape) if name in now else held
            for name, held in self.domain.items()
        }
        later = {name[:-1]: value for name, value in values.items() if name.endswith("'")}
        unknown = [name for name in later if name not in self.equations]
        if unknown:
            raise ValueError(f"do: {listed(unknown)} has no equation; these have one: {listed(list(self.equations))}.")
        return replace(self, domain=domain, equations={**self.equations, **{k: _held(v) for k, v in later.items()}})

    def restrict(self, subspace: Subspace) -> Self:
        """Return the local causal model on a subspace of the domain, a function of values or a selection of points."""
        chosen = np.asarray(subspace(self.domain) if callable(subspace) else subspace)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            raise ValueError(f"subspace: expected booleans of shape {(len(self),)}, got {chosen.dtype} {chosen.shape}.")
        smaller = {name: values[chosen] for name, values in self.domain.items()}
        inside, before = subspace if callable(subspace) else _among(smaller), self.inside
        both = inside if before is None else lambda v: np.asarray(before(v)) & np.asarray(inside(v))
        return replace(self, domain=smaller, inside=both)

    def _outcomes(self, target: str) -> list[list[Any]]:
        """Evaluate an equation at all points, once for each value of the noise."""
        drawn = self.noise.get(target, np.zeros(1))
        rows = len(self)
        return [_listed(self.evaluate(target, self.domain, np.stack([u] * rows))) if rows else [] for u in drawn]

    @cached_property
    def _answers(self) -> dict[tuple[str, frozenset[str]], bool]:
        """What has been found out already of who depends on whom."""
        return {}

    @cached_property
    def _rows(self) -> dict[str, list[Any]]:
        return {name: _listed(values) for name, values in self.domain.items()}

    def _known(self, nodes: Names) -> tuple[str, ...]:
        names = (nodes,) if isinstance(nodes, str) else tuple(nodes)
        unknown = [name for name in names if name not in self.domain]
        if unknown:
            raise ValueError(f"no node is called {listed(unknown)}; the nodes are {listed(self.nodes)}.")
        return names


@dataclass(frozen=True, eq=False)
class Answer:
    """What would have happened, and what it took to say so."""

    after: Values  # next value of each state factor
    sure: Bools  # (B,) false where the noise that fits what happened allows several answers, or none fits
    equations: tuple[str, ...]  # those that were evaluated; the other factors keep their next values
    evaluations: int  # how often an equation was evaluated: abduction tries every value of the noise


do = StructuralCausalModel.do  # do(model, values)
restrict = StructuralCausalModel.restrict  # restrict(model, subspace)


def counterfactual(
    model: StructuralCausalModel, before: Values, after: Values, changes: Values, noise: Values | None = None
) -> Answer:
    """Say what would have happened next if some nodes had had other values (abduction, action, prediction).

    Only the equations of the changed nodes' children are evaluated, which in a local model are fewer. Its
    answer is the global model's as long as both the old and the new values lie in its subspace.

    Args:
        model: a global or a local model.
        before: the values at t that were observed.
        after: the next values that were observed.
        changes: other values for some nodes.
        noise: new noise for the factors that are evaluated; by default what it was, as far as the observation tells.

    Raises:
        ValueError: if old or new values lie outside the model's subspace.
    """
    changed = {**before, **{name: np.asarray(changes[name]) for name in model._known(changes)}}
    for what, values in (("before", before), ("changes", changed)):
        if model.inside is not None and not np.asarray(model.inside(values)).all():
            raise ValueError(f"{what}: some values lie outside the subspace of this local model. Ask the global one.")
    children = tuple(name for name in model.equations if model.depends(name, tuple(changes)))
    found, sure = dict(after), np.ones(len(next(iter(before.values()))), np.bool_)
    evaluations = sum(1 if noise is not None else 2 * len(model.noise.get(name, "0")) for name in children)
    for name in children:
        if noise is not None:
            found[name] = model.evaluate(name, changed, noise.get(name))
        else:
            found[name], known = _predicted(model, name, (before, after, changed))
            sure &= known
    return Answer(found, sure, children, evaluations)


def independent(model: StructuralCausalModel, i: Names, j: Names) -> bool:
    """Say whether two groups of nodes are independent mechanisms: neither influences the other's next values."""
    return all(table is not None for table in _tables(model, i, j))


def independent_in_union(model: StructuralCausalModel, first: Subspace, second: Subspace, i: Names, j: Names) -> bool:
    """Decide by Proposition 1 whether two groups of nodes are independent in the union of two subspaces.

    They are if and only if they are independent in both, and their equations are the same in both, where
    these share arguments. The paper's icy room breaks the last condition: within each room the floor explains
    nothing about how things move, but once rooms are mixed it does.

    Args:
        model: the global model.
        first: a subspace L1 of its domain.
        second: a subspace L2.
        i: names of the nodes of one group.
        j: names of the nodes of the other; in CoDA the two hold all nodes.
    """
    both = set(model._known(i)) & set(model._known(j))
    if both:
        raise ValueError(f"i and j: expected groups without a common node, got {listed(sorted(both))} in both.")
    for one, two in zip(*(_tables(model.restrict(space), i, j) for space in (first, second)), strict=True):
        if one is None or two is None or any(one[key] != two[key] for key in one.keys() & two.keys()):
            return False
    return True


def _tables(model: StructuralCausalModel, i: Names, j: Names) -> list[dict[tuple[Any, ...], Any] | None]:
    """Return the equations of each group's factors, without the other group as an argument."""
    groups = model._known(i), model._known(j)
    pairs = [(name, other) for own, other in (groups, groups[::-1]) for name in own if name in model.equations]
    return [model.table(name, other) for name, other in pairs]


def _predicted(model: StructuralCausalModel, name: str, values: tuple[Values, Values, Values]) -> tuple[Array, Bools]:
    """Return a factor's next value under every noise that fits the observation, and whether that is one value."""
    before, after, changed = values
    seen = np.asarray(after[name])
    found, fits, sure = seen.copy(), np.zeros(len(seen), np.bool_), np.ones(len(seen), np.bool_)
    for u in model.noise.get(name, np.zeros(1)):
        drawn = np.stack([u] * len(seen))
        fit = _same(model.evaluate(name, before, drawn), seen)
        new = model.evaluate(name, changed, drawn)
        sure &= ~(fit & fits) | _same(new, found)
        fresh = fit & ~fits
        found[fresh], fits = new[fresh], fits | fit
    return found, sure & fits


def _same(one: Array, two: Array) -> Bools:
    equal: Bools = np.asarray(one) == np.asarray(two)
    return equal if equal.ndim == 1 else np.asarray(equal.all(axis=1))


def _held(value: Any) -> Equation:
    return lambda v, u: np.broadcast_to(np.asarray(value), (len(u), *np.shape(value)))  # noqa: ARG005


def _among(points: Values) -> Callable[[Values], Bools]:
    """Tell which values are among some points."""
    known = set(zip(*map(_listed, points.values()), strict=True))
    return lambda v: np.array([row in known for row in zip(*(_listed(v[name]) for name in points), strict=True)], bool)


def _listed(values: Array) -> list[Any]:
    """Return one hashable entry per row."""
    rows: list[Any] = np.asarray(values).tolist()
    return rows if np.ndim(values) == 1 else [tuple(row) for row in rows]
