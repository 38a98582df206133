"""Any TOML at all as a description: an augmenter, or a message with the file's name, in bounded memory and time."""

import json
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.description import DescriptionError, read_description
from counterpoint.description.source import MOST_BYTES
from tests.campaigns.conftest import MUTATIONS
from tests.campaigns.forgeries import places
from tests.test_description import GOOD, ROBOT

KEYS = {"goal": (5,)}
DRAFT = GOOD + '\n[augment]\npolicy = "sparse"\n'
WORDS = st.sampled_from([
    "state", "action", "derived", "context", "positions", "types", "mask", "reward", "terminal", "augment", "kind",
    "function", "file", "tau", "radius", "attached", "velocities", "goal", "achieved", "tolerance", "columns", "keys",
    "policy", "samples_per_pair", "pairing", "sparse", "gripper", "puck", "motor", "x",
])  # fmt: skip
PLAIN = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["true", "nan", "inf", "-inf", "1e400", "1979-05-27", '""', '"0:2"', '"0:999999999"', '"5:2"']),
    st.sampled_from(['"proximity"', '"learned"', '"function"', '"from-goal"', '"robot:done"', '"robot:gap"', '"a:b"']),
    st.sampled_from(['"nowhere.safetensors"', '"/dev/zero"', '"sparse"', '"uniform"', '"gripper"', '"goal"', "[0, 1]"]),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda found: f"[{', '.join(found)}]"),
        st.dictionaries(WORDS, inner, max_size=3).map(
            lambda found: "{ " + ", ".join(f"{key} = {value}" for key, value in found.items()) + " }"
        ),
    ),
    max_leaves=6,
)


@st.composite
def rewritten(draw):
    """The good description with lines replaced, removed or added, or a new one altogether."""
    lines = DRAFT.splitlines() if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines)))
        line = draw(st.one_of(st.tuples(WORDS, VALUES).map(" = ".join), WORDS.map(lambda word: f"[{word}]")))
        lines[place : place + draw(st.integers(0, 1))] = [line]
    return "\n".join(lines)


@st.composite
def refilled(draw):
    """The good description with other values, entries more or less: always TOML, and most of it makes sense."""
    table = tomllib.loads(DRAFT)
    for _ in range(draw(st.sampled_from((1, 1, 2)))):  # the first mistake hides the others
        holder, key = draw(st.sampled_from(list(places(table))))
        way = draw(st.sampled_from(("replace", "replace", "remove", "add")))
        if way == "replace":
            holder[key] = Written(draw(VALUES))
        elif way == "remove":
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(WORDS)] = Written(draw(VALUES))
    return "\n".join(f"{key} = {toml(value)}" for key, value in table.items())


class Written(str):
    """A value that is TOML already."""


def toml(value):
    if isinstance(value, Written):
        return value
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def check(text):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "robot.py").write_text(ROBOT)
        path = Path(folder) / "robot.toml"
        path.write_text(text)
        said = str(path)
        try:
            read_description(path, KEYS).augmenter()
        except DescriptionError as error:
            said = str(error)
        assert said.startswith(str(path))


def campaign(tell, **how):
    """Try descriptions; Hypothesis makes a failure as small as it can, and so tries more of them."""
    tried = survived = 0

    @settings(**how)
    @given(st.one_of(rewritten(), refilled(), refilled()))
    def attempt(text):
        nonlocal tried, survived
        tried += 1
        check(text)
        survived += 1

    try:
        attempt()
    finally:
        tell(f"descriptions by Hypothesis: {survived:,} of {tried:,} survived")


def test_a_few(tell):
    campaign(tell, max_examples=150)


@pytest.mark.slow
def test_many(tell):
    campaign(tell, max_examples=MUTATIONS, derandomize=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state = 5", r"line 1: expected a section \[state\] with entries, got 5"),
        ("[state]\na = [0, 1180591620717411303424]", "line 2: 'a': columns go up to 1,048,575 at most"),
        ('[state]\na = "0:999999999"', "line 2: 'a': columns go up to 1,048,575 at most"),
        ("x = " + "[" * 100_000, "nested too deeply|robot.toml"),
        ("[state]\na = 0\n[mask]\nkind = 3", "line 4: unknown kind 3 of mask"),
        ('[state]\na = 0\n[mask]\nkind = "learned"\nfile = 3\ntau = 1', "line 5: file: expected a file name in quotes"),
        ('[state]\na = 0\n[types]\na = 3', "line 4: 'a': expected a word in quotes, got 3"),
        ('context = "a"\n[state]\na = 0', 'line 1: expected context = ..name.., got .a.'),
        ("[state]\na = 0\n[augment]\nsamples_per_pair = 1.5", "line 4: samples_per_pair: expected a whole number"),
        ('[state]\na = 0\n[augment]\npolicy = "sprase"', "line 4: unknown policy 'sprase'; did you mean 'sparse'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(text, message, tmp_path):
    (tmp_path / "robot.toml").write_text(text)
    with pytest.raises(DescriptionError, match=message):
        read_description(tmp_path / "robot.toml")


def test_only_regular_files_of_a_sensible_size(tmp_path, make_pipe):
    make_pipe(tmp_path / "pipe.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (MOST_BYTES + 1))
    for path, message in (
        (tmp_path / "pipe.toml", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "large.toml", "a description has 1,048,576 at most"),
    ):
        with pytest.raises(DescriptionError, match=message):
            read_description(path)
