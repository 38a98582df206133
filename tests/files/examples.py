"""Recordings of every kind, and the formats to write them in, for the tests of files."""

import os

import hypothesis
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint import Factorization, Position, Transitions, files

# A target is a format and the name of an output in it.
TARGETS = {
    "parquet": "data.parquet",
    "npz": "data.npz",
    "d4rl": "data.hdf5",
    "robomimic": "demos.h5",
    "minari": "minari:robot/data-v0",
}
SINGLE = [kind for kind in TARGETS if kind != "minari"]  # those that are one file
DTYPES = ["float32", "float64", "float16", "int64", "int8", "uint16", "bool"]


def target(folder, kind):
    return TARGETS[kind] if kind == "minari" else f"{folder}/{TARGETS[kind]}"


def put(folder, kind, data, **options):
    """Write and return the path."""
    path = target(folder, kind)
    files.write(path, data, format=kind if kind == "robomimic" else None, **options)
    return path


def assert_same(came, expected):
    mine, theirs = came.columns(), expected.columns()
    assert list(mine) == list(theirs)
    for name, array in theirs.items():
        assert mine[name].dtype == array.dtype, name
        assert mine[name].shape == array.shape, name
        assert mine[name].tobytes() == array.tobytes(), name


def make_recording(rng, lengths=(4, 1, 6), dtype="float32", *, full=True, factors=None):
    """Whole episodes that every format can hold, with all columns if ``full``."""
    width, rows = factors.state_width if factors else 5, sum(lengths)
    chains = [(100 * rng.random((length + 1, width))).astype(dtype) for length in lengths]
    states = [chain[:-1] for chain in chains], [chain[1:] for chain in chains]
    data = Transitions(
        np.concatenate(states[0]),
        (9 * rng.random((rows, factors.action_width if factors else 2))).astype(dtype),
        rng.random(rows).astype("float32"),
        np.concatenate(states[1]),
        rng.random(rows) < 0.2,
        episode=np.repeat(np.arange(len(lengths)), lengths),
        step=np.concatenate([np.arange(length) for length in lengths]),
        noise=rng.random((rows, 3)) if full else None,
    )
    nodes = factors.n + factors.m if factors else 9
    alone = np.repeat(lengths, lengths) == 1  # single counterfactuals are refused by formats of whole episodes
    swapped = (rng.random((rows, nodes)) < 0.5) & ~alone[:, None]
    parents = files.Provenance(rng.integers(0, 99, rows), rng.integers(0, 99, rows), swapped)
    filters = {"train": tuple(range(0, len(lengths), 2)), "valid": tuple(range(1, len(lengths), 2))}
    head = files.Head(factors, "source.parquet", filters, {"seed": 3, "why": ["ü", None]})
    return files.Recording(data, head if full else files.Head(factors), parents if full else None)


@st.composite
def factorizations(draw):
    """Any factorisation: shuffled columns, derived ones, contexts, noise, positions, types."""
    owners = draw(st.lists(st.integers(-1, 3), min_size=1, max_size=7).filter(lambda found: max(found) >= 0))
    names = draw(st.lists(st.text(min_size=1, max_size=6), min_size=8, max_size=8, unique=True))
    state = {names[o]: [c for c, owner in enumerate(owners) if owner == o] for o in sorted(set(owners) - {-1})}
    action = {names[4 + i]: (i,) for i in range(draw(st.integers(0, 2)))}
    placed = draw(st.lists(st.sampled_from(list(state)), unique=True))
    number = st.floats(-9, 9, allow_nan=False)
    return Factorization(
        state,
        action,
        derived=tuple(c for c, owner in enumerate(owners) if owner == -1),
        context=draw(st.lists(st.sampled_from(list(state)), unique=True)),
        noise={name: (i,) for i, name in enumerate(draw(st.lists(st.sampled_from(list(state)), unique=True)))},
        positions={name: Position((state[name][0],), draw(number), draw(st.tuples(number))) for name in placed},
        types={name: "kind" for name in state if len(state[name]) == 1},
    )


@st.composite
def recordings(draw, kind):
    """Recordings of any shape and dtype; whole episodes where the format holds nothing else."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = draw(st.none() | factorizations())
    if kind == "minari":
        hypothesis.assume(factors is None or factors.m)
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    made = make_recording(rng, lengths, draw(st.sampled_from(DTYPES)), factors=factors, full=draw(st.booleans()))
    if kind in ("parquet", "npz", "d4rl") and draw(st.booleans()):
        plain = made.transitions.replace(episode=None, step=None, next_state=made.transitions.state[::-1].copy())
        return files.Recording(plain, made.head, made.provenance)
    return made


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def damage_all(path, names, examples):
    """Damage one of the files in many ways; every time, reading works or raises ``FileProblem``."""
    raw = {name: name.read_bytes() for name in names}
    edit = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))
    seen = []

    @settings(max_examples=examples, suppress_health_check=list(hypothesis.HealthCheck))
    @given(st.sampled_from(names), st.lists(edit, max_size=4), st.none() | st.floats(0, 1, exclude_max=True))
    def check(name, edits, cut):
        damaged = bytearray(raw[name])
        for place, value in edits:
            damaged[int(place * len(damaged))] = value
        name.write_bytes(damaged if cut is None else damaged[: int(cut * len(damaged))])
        try:
            files.read(path)
        except files.FileProblem as problem:
            seen.append(str(problem))
        finally:
            name.write_bytes(raw[name])

    check()
    assert seen
    assert all(problem.startswith(path) for problem in seen)
    files.read(path)
