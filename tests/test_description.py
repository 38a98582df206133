import re
from pathlib import Path

import numpy as np
import pytest

from counterpoint import Transitions, description
from counterpoint.description import DescriptionError, read_description

GOOD = """
derived = { columns = [6], function = "robot:gap" }
context = ["room"]

[state]
gripper = [0, 1]
puck = "2:4"
room = 4
goal = { keys = ["goal"] }

[action]
motor = "0:2"

[positions]
gripper = "0:2"
puck = "2:4"

[types]
gripper = "body"
puck = "body"

[mask]
kind = "proximity"
radius = 0.1
attached = { motor = ["gripper"] }

[reward]
kind = "from-goal"
goal = "goal"
achieved = "puck"
tolerance = 0.2

[terminal]
kind = "function"
function = "robot:done"
"""
ROBOT = """
import numpy as np

def gap(state):
    return state[:, [2]] - state[:, [0]]

def done(state, action, next_state):
    return next_state[:, 0] > 0.9

number = 3
"""
KEYS = {"goal": (5,), "image": (9,)}


@pytest.fixture
def describe(tmp_path):
    (tmp_path / "robot.py").write_text(ROBOT)

    def write(text):
        path = tmp_path / "robot.toml"
        path.write_text(text)
        return read_description(path, KEYS)

    return write


def test_it_says_what_the_columns_mean(describe):
    factors = describe(GOOD).factors
    assert dict(factors.state) == {"gripper": (0, 1), "puck": (2, 3), "room": (4,), "goal": (5,)}
    assert (factors.derived, factors.context, dict(factors.action)) == ((6,), ("room",), {"motor": (0, 1)})
    assert factors.positions["puck"].columns == (2, 3)
    assert factors.types["puck"] == "body"


def test_it_makes_an_augmenter(describe, rng):
    state = rng.random((60, 7))
    state[:, 4] = 1.0
    state[:, 6] = state[:, 2] - state[:, 0]
    data = Transitions(state, rng.random((60, 2)), np.zeros(60), state + 0.0, state[:, 0] > 0.9)
    augmenter = describe(GOOD).augmenter(samples_per_pair=2)
    made = augmenter.fill(data, 200, rng=rng).transitions
    assert np.array_equal(made.state[:, 6], made.state[:, 2] - made.state[:, 0])
    assert np.array_equal(made.terminated, made.next_state[:, 0] > 0.9)
    near = np.abs(made.next_state[:, 5] - made.next_state[:, 2]) <= 0.2
    assert np.array_equal(made.reward, near - 1.0)
    assert augmenter.samples_per_pair == 2
    flagged = GOOD.replace(
        'kind = "function"\nfunction = "robot:done"', 'kind = "from-goal"\ngoal = "goal"\nachieved = "puck"'
    )
    assert describe(flagged).augmenter().terminal_fn(state, None, state).dtype == bool


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("[state]", "[stat]", 5, "unknown section 'stat'; did you mean 'state'"),
        ('context = ["room"]', 'context = ["rom"]', 3, "unknown factor 'rom'; did you mean 'room'"),
        ('puck = "2:4"\n\n[types]', 'puk = "2:4"\n\n[types]', 16, "unknown factor 'puk'; did you mean 'puck'"),
        ('puck = "body"', 'xyz = "body"', 20, "unknown factor 'xyz'; expected one of gripper, puck"),
        ("radius = 0.1", "radios = 0.1", 24, "unknown word 'radios'; did you mean 'radius'"),
        ('kind = "proximity"', 'kind = "proximty"', 23, "unknown kind 'proximty' of mask; did you mean 'proximity'"),
        ('kind = "proximity"\n', "", 22, r"\[mask\] needs a kind: proximity, learned, function"),
        ('keys = ["goal"]', 'keys = ["gaol"]', 9, "unknown observation key 'gaol'; did you mean 'goal'"),
        ('puck = "2:4"\nroom', 'puck = "4:4"\nroom', 7, r"'puck' has the empty range '4:4'"),
        ('puck = "2:4"\nroom', "puck = true\nroom", 7, "'puck': expected columns such as .*, got True"),
        ("gripper = [0, 1]", "gripper = [0]", 5, "no factor owns columns 1"),
        ("gripper = [0, 1]", "gripper = [0, 2]", 7, "has two owners"),
    ],
)
def test_a_mistake_is_named_with_its_line(describe, old, new, line, message):
    assert old in GOOD
    with pytest.raises(DescriptionError, match=rf"robot.toml, line {line}: .*{message}"):
        describe(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("robot:done", "robot:don", 35, "robot:don: module 'robot' has no attribute 'don'"),
        ("robot:done", "rowboat:done", 35, "there is no module 'rowboat'"),
        ("robot:done", "robot.done", 35, "expected function = .module:name., got 'robot.done'"),
        ("robot:done", "robot:number", 35, "expected a function, got int"),
        ("radius = 0.1\n", "", 22, "proximity needs a radius"),
        ("radius = 0.1", "radius = -1", 22, "expected positive distances"),
        ('goal = "goal"\n', "", 27, "from-goal needs 'goal'"),
        ('achieved = "puck"', 'achieved = "puk"', 30, "unknown factor 'puk'; did you mean 'puck'"),
        ('goal = "goal"\nachieved = "puck"', 'goal = "puck"\nachieved = "goal"', 27, "the goal has 2 columns"),
        (
            'kind = "proximity"\nradius = 0.1\nattached = { motor = ["gripper"] }',
            'kind = "learned"\ntau = 1',
            22,
            "needs 'file'",
        ),
    ],
)
def test_a_mistake_in_a_part_is_named_when_the_part_is_made(describe, old, new, line, message):
    assert old in GOOD
    with pytest.raises(DescriptionError, match=rf"robot.toml, line {line}: .*{message}"):
        describe(GOOD.replace(old, new, 1)).augmenter()


def test_what_is_missing_is_named(describe, tmp_path):
    with pytest.raises(DescriptionError, match=r"a section \[mask\] is needed"):
        describe("[state]\nball = [0]").augmenter()
    with pytest.raises(DescriptionError, match=r"a section \[state\]"):
        describe("[action]\npush = [0]")
    with pytest.raises(DescriptionError, match=r"none.toml: No such file or directory$"):
        read_description(tmp_path / "none.toml")
    with pytest.raises(DescriptionError, match="line 1: "):
        describe("= 3")
    (tmp_path / "keys.toml").write_text('[state]\nball = { keys = ["ball"] }')
    with pytest.raises(
        DescriptionError, match="line 2: 'ball' is given by observation keys, but the recording has none"
    ):
        read_description(tmp_path / "keys.toml")


PAGE = Path(__file__).parents[1] / "docs" / "description.md"


def test_noise_has_owners(tmp_path):
    (tmp_path / "robot.toml").write_text('[state]\nhand = "0:2"\ncup = 2\n[noise]\ncup = "0:2"\nhand = 2\n')
    assert read_description(tmp_path / "robot.toml").factors.noise == {"cup": (0, 1), "hand": (2,)}
    (tmp_path / "robot.toml").write_text('[state]\nhand = "0:2"\n[noise]\nhnd = "0:2"\n')
    with pytest.raises(DescriptionError, match="line 4: unknown factor 'hnd'; did you mean 'hand'"):
        read_description(tmp_path / "robot.toml")


BASE = '[state]\ngripper = "0:3"\npuck = "3:6"\nroom = 6\n[action]\nmotor = "0:2"\n'


def examples_on_the_page():
    """All examples of the reference page, as whole descriptions."""
    for block in re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL):
        yield block if "[state]" in block else BASE + block if block.startswith("[") else block + BASE


def test_the_reference_page_has_every_key_with_an_example_that_is_right(tmp_path):
    """Every section, kind and word that the code knows is on the page, in a table and in an example."""
    text, used = PAGE.read_text(), set()
    for example in examples_on_the_page():
        (tmp_path / "robot.toml").write_text(example)
        for section, value in read_description(tmp_path / "robot.toml").source.table.items():
            used.add(section)
            used |= {(section, value.get("kind"), word) for word in value} if isinstance(value, dict) else set()
            if section in ("angles", "positions"):
                used |= {(section, word) for entry in value.values() if isinstance(entry, dict) for word in entry}
    assert set(description.SECTIONS) <= used
    for section in description.SECTIONS:
        assert f"`[{section}]`" in text or f"`{section}`" in text, section
    for section, kinds in description.KINDS.items():
        for kind, words in kinds.items():
            rows = [line for line in text.splitlines() if line.startswith(f'| `"{kind}"`')]
            assert any(all(f"`{word}`" in row for word in words) for row in rows), kind
            assert {(section, kind, word) for word in words} <= used, (section, kind)
    for word in ("columns", "plus", "minus", "function"):
        assert ("derived", None, word) in used
    assert {("angles", "period"), ("positions", "scale"), ("positions", "offset")} <= used
    (tmp_path / "robot.toml").write_text(BASE + "[augment]\nzzz = 1\n")
    with pytest.raises(DescriptionError, match="expected one of") as error:
        read_description(tmp_path / "robot.toml")
    for word in str(error.value).split("one of ")[1].rstrip(".").split(", "):
        assert f"| `{word}` |" in text, word
        assert ("augment", None, word) in used


def test_derived_columns_that_are_differences_or_copies_need_no_code(describe, rng):
    states = rng.random((5, 10))
    rest = BASE + '[mask]\nkind = "function"\nfunction = "robot:done"\n[reward]\nkind = "constant"\nvalue = 2\n'
    made = describe('derived = { columns = "7:10", plus = "3:6", minus = "0:3" }\n' + rest).augmenter()
    np.testing.assert_array_equal(made.derive(states), states[:, 3:6] - states[:, :3])
    assert (made.reward_fn(states, states, states) == 2).all()
    copies = describe('derived = { columns = "7:9", plus = [5, 0] }\n' + rest).augmenter()
    np.testing.assert_array_equal(copies.derive(states), states[:, [5, 0]])
    for wrong, words in (
        ('{ columns = "7:10", plus = "3:5" }', "plus has 2 columns, and 3 are derived"),
        ('{ columns = "7:10", plus = "7:10" }', "must name columns of factors"),
        ('{ columns = "7:10", plus = "3:6", function = "robot:done" }', "not both"),
        ('{ columns = "7:10" }', "and a function or plus"),
    ):
        with pytest.raises(DescriptionError, match=f"line 1: .*{words}"):
            describe(f"derived = {wrong}\n" + rest).augmenter()


def test_tolerances_and_angles(describe):
    found = describe(BASE + "[tolerances]\npuck = 0.5\n[angles]\npuck = { columns = 5, period = 360 }\nroom = 6\n")
    tolerance = found.tolerance(0.1)
    np.testing.assert_array_equal(tolerance.columns, [0.1] * 3 + [0.5] * 3 + [0.1])
    np.testing.assert_allclose(tolerance.period[5:], [360, 2 * np.pi])
    for wrong, line, words in (
        ("[angles]\npuck = 0", 8, "owns the columns"),
        ('[angles]\npuck = { columns = 5, period = "x" }', 8, "expected a positive number"),
        ('[tolerances]\npuck = "x"', 8, "expected a number"),
        ("[tolerances]\npuck = -1", 7, "0 or more"),
        ("[tolerances]\nmotor = 1", 8, "unknown factor 'motor'"),
    ):
        with pytest.raises(DescriptionError, match=f"line {line}: .*{words}"):
            describe(BASE + wrong)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[state]\nhand = [\n  0,  # [types]\n  1,\n]\nmask = "x"\n', 6),
        ("[types]\nmask = 'a'\n[state]\nmask = 0\nhand = 'zero'\n", 5),
        ("# [state]\nstate.hand = 'zero'\n", 2),
        ("['state']\n'a hand' = 0\n\"cup\" = 'zero'\n", 3),
        ('note = """\n[state]\nhand = 1\n"""\n[state]\nhand = 0\n', 1),
        ("[state]\nhand = 0\ncup == 1\n", 3),
        ("\n\n[state\n", 3),
    ],
)
def test_the_line_is_the_true_one(describe, text, line):
    with pytest.raises(DescriptionError, match=f"robot.toml, line {line}: "):
        describe(text)
