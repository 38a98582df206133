"""How the columns of states and actions split into named factors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np

from counterpoint.core.arrays import Ints, NodeSet, listed
from counterpoint.core.positions import Position, require_positions

OwnedColumns: TypeAlias = Mapping[str, tuple[int, ...]]

BASE_ONLY = -1  # the owner of a column that belongs to no factor
MOST_COLUMNS = 2**20  # of a state; a file that claims more is not believed


@dataclass(frozen=True)
class Factorization:
    """The top-level decomposition of states and actions into factors (paper, section 2.1).

    Nodes of every local causal graph are the state factors, then the action factors, in the order
    given. Each column belongs to exactly one factor, or is declared ``derived``.

    Attributes:
        state: columns of the state that each state factor owns.
        action: columns of the action that each action factor owns.
        derived: state columns that mix factors (a relative position, a distance). They belong to no
            factor and are recomputed after a swap by the ``derive`` function of ``Augmenter``.
        context: names of state factors that must agree between base and donor, because they choose
            the structural equations (the paper's icy room). They are never swapped, and their edges
            tie nothing together.
        static: names of state factors that never change within an episode, such as a goal or a colour.
            Those that never change in the data are found; here they can be declared.
        noise: columns of the recorded noise that each state factor owns, if noise is recorded.
        positions: for factors that are somewhere, the columns that say where, as a ``Position`` or as
            plain columns. Learned masks form relative features from them.
        types: a type for factors that are alike ("sprite"); learned masks share weights within a type.
            A factor without one is its own type.

    Example:
        >>> factors = Factorization.blocks(state={"gripper": 3, "puck": 4}, action={"motor": 2})
        >>> factors.n, factors.m, factors.names
        (2, 1, ('gripper', 'puck', 'motor'))
        >>> factors.state["puck"]
        (3, 4, 5, 6)
        >>> factors.nodes("puck")
        array([False,  True, False])
    """

    state: OwnedColumns
    action: OwnedColumns = field(default_factory=dict)
    derived: tuple[int, ...] = ()
    context: tuple[str, ...] = ()
    noise: OwnedColumns = field(default_factory=dict)
    positions: Mapping[str, Position] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    static: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for space in ("state", "action", "noise"):
            object.__setattr__(self, space, _frozen(space, getattr(self, space)))
        object.__setattr__(self, "derived", _columns("derived", self.derived) if len(self.derived) else ())
        object.__setattr__(self, "context", tuple(self.context))
        object.__setattr__(self, "static", tuple(self.static))
        if not self.state:
            raise ValueError("state: expected at least one factor, got none.")
        both = sorted(set(self.state) & set(self.action))
        if both:
            raise ValueError(f"action: {listed(both)} already names a state factor; each node needs its own name.")
        self._require_known("context", self.context)
        self._require_known("static", self.static)
        self._require_known("noise", tuple(self.noise))
        _require_partition("state", self.state, self.derived)
        _require_partition("action", self.action)
        _require_partition("noise", self.noise)
        places = {name: p if isinstance(p, Position) else Position(tuple(p)) for name, p in self.positions.items()}
        require_positions(places, {**self.state, **self.action})
        object.__setattr__(self, "positions", MappingProxyType(places))
        object.__setattr__(self, "types", MappingProxyType(self._checked_types()))

    @classmethod
    def blocks(cls, *, state: Mapping[str, int], action: Mapping[str, int] | None = None, **others: Any) -> Self:
        """Build a factorisation of consecutive blocks from the number of columns of each factor.

        ``others`` are passed on as they are (``context``, ``noise``).
        """
        return cls(_consecutive("state", state), _consecutive("action", action or {}), **others)

    @property
    def n(self) -> int:
        """Number of state factors."""
        return len(self.state)

    @property
    def m(self) -> int:
        """Number of action factors."""
        return len(self.action)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes: state factors, then action factors."""
        return (*self.state, *self.action)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each node, in the order of `names`."""
        return tuple(map(len, (*self.state.values(), *self.action.values())))

    @property
    def state_width(self) -> int:
        """Number of columns of a state, derived ones included (``S``)."""
        return sum(map(len, self.state.values())) + len(self.derived)

    @property
    def action_width(self) -> int:
        """Number of columns of an action (``A``)."""
        return sum(map(len, self.action.values()))

    @property
    def noise_width(self) -> int:
        """Number of columns of the recorded noise (``U``)."""
        return sum(map(len, self.noise.values()))

    def nodes(self, *names: str) -> NodeSet:
        """Return the set of the named nodes, (N,) bool."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise ValueError(f"no factor is called {listed(unknown)}; the factors are {listed(self.names)}.")
        return np.isin(np.array(self.names), names)

    @cached_property
    def context_columns(self) -> list[int]:
        """State columns of the context factors, in which base and donor must agree."""
        return [column for name in self.context for column in self.state[name]]

    @cached_property
    def state_owner(self) -> Ints:
        """The node that owns each state column, (S,); -1 for derived columns."""
        return _owner(self.state, self.state_width)

    @cached_property
    def action_owner(self) -> Ints:
        """The node that owns each action column, (A,)."""
        owner = _owner(self.action, self.action_width)
        owner += self.n
        return owner

    @cached_property
    def noise_owner(self) -> Ints:
        """The state factor that owns each noise column, (U,)."""
        order = list(self.state)
        owner = _owner(self.noise, self.noise_width)
        return np.array([order.index(list(self.noise)[index]) for index in owner], dtype=np.int64)

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """What to call each column of ``state``, ``action`` and ``noise`` in tables and messages.

        Its factor, its place within the factor, and its number: "puck[1] (column 4)".
        """
        spaces = {"state": [*self.state.items(), ("derived", self.derived)]}
        spaces |= {"action": [*self.action.items()], "noise": [*self.noise.items()]}
        return {
            space: tuple(
                name
                for _, name in sorted(
                    (column, f"{factor}[{place}] (column {column})")
                    for factor, columns in owned
                    for place, column in enumerate(columns)
                )
            )
            for space, owned in spaces.items()
        }

    def require_widths(self, state_columns: int, action_columns: int) -> None:
        """Raise ``ValueError`` unless data of these widths is covered column by column."""
        _require_width("state", state_columns, self.state_width, self.names[: self.n])
        _require_width("action", action_columns, self.action_width, self.names[self.n :])

    def _checked_types(self) -> dict[str, str]:
        """Give each factor a type: the declared one, or its own name."""
        self.nodes(*self.types)
        types = {name: str(self.types.get(name, name)) for name in self.names}
        for kind in set(types.values()):
            alike = [name for name in self.names if types[name] == kind]
            widths = {name: len({**self.state, **self.action}[name]) for name in alike}
            if len(set(widths.values())) > 1 or len({name in self.state for name in alike}) > 1:
                raise ValueError(f"types: factors of one type need the same width, but {kind!r} has {widths}.")
        return types

    def _require_known(self, what: str, names: tuple[str, ...]) -> None:
        unknown = [name for name in names if name not in self.state]
        if unknown:
            raise ValueError(
                f"{what}: {listed(unknown)}: not a state factor. The state factors are {listed(list(self.state))}."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        plain = dict(self.state), dict(self.action), self.derived, self.context, dict(self.noise)
        return Factorization, (*plain, dict(self.positions), dict(self.types), self.static)


def _columns(factor: str, columns: Iterable[int]) -> tuple[int, ...]:
    """Return columns as a tuple of ints, refusing anything that is not a plain column number."""
    values = list(columns)
    wrong = [value for value in values if isinstance(value, bool) or not isinstance(value, int | np.integer)]
    if wrong or not values:
        raise TypeError(f"{factor}: expected column numbers such as (0, 1) or range(2), got {values!r}.")
    negative = [int(value) for value in values if value < 0]
    if negative:
        raise ValueError(f"{factor}: columns are counted from 0, got {listed(negative)}.")
    return tuple(int(value) for value in values)


def _frozen(space: str, factors: Mapping[str, Iterable[int]]) -> OwnedColumns:
    if not isinstance(factors, Mapping):
        raise TypeError(f"{space}: expected a mapping from factor names to columns, got {type(factors).__name__}.")
    return MappingProxyType({str(name): _columns(f"{space} factor {name!r}", cols) for name, cols in factors.items()})


def _consecutive(space: str, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Give each factor its block of columns, one after another."""
    blocks: dict[str, tuple[int, ...]] = {}
    start = 0
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"{space} factor {name!r}: expected a positive number of columns, got {size!r}.")
        blocks[name] = tuple(range(start, start + int(size)))
        start += int(size)
    return blocks


def _require_partition(space: str, factors: OwnedColumns, derived: tuple[int, ...] = ()) -> None:
    """Every column from 0 to the last one has exactly one owner."""
    owners: dict[int, list[str]] = {}
    for name, columns in [*factors.items(), *([("derived", derived)] if derived else [])]:
        for column in columns:
            owners.setdefault(column, []).append(name)
    shared = [
        f"column {column} ({' and '.join(owners[column])})" for column in sorted(owners) if len(owners[column]) > 1
    ]
    if shared:
        raise ValueError(f"{space}: columns must not overlap, but {listed(shared)} has two owners. Keep one of them.")
    missing = [column for column in range(max(owners, default=-1) + 1) if column not in owners]
    if missing:
        raise ValueError(
            f"{space}: no factor owns columns {listed(missing)}. Give them to a factor"
            + (", or declare them derived." if space == "state" else ".")
        )


def _owner(factors: OwnedColumns, width: int) -> Ints:
    owner = np.full(width, BASE_ONLY, dtype=np.int64)
    for node, columns in enumerate(factors.values()):
        owner[list(columns)] = node
    return owner


def _require_width(space: str, came: int, expected: int, names: tuple[str, ...]) -> None:
    if came > expected:
        raise ValueError(
            f"{space}: the data has {came} columns, but the factors cover only {expected}; "
            f"columns {listed(list(range(expected, came)))} belong to no factor. Add them to one of "
            f"{listed(names) or 'the (missing) factors'}" + (", or declare them derived." if space == "state" else ".")
        )
    if came < expected:
        raise ValueError(
            f"{space}: the factors {listed(names)} reach up to column {expected - 1}, "
            f"but the data has only {came} columns (0 to {came - 1}). Check the factorisation against the data."
        )
