"""The direction of dependencies, read off the import statements, and the weight of the bare package."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "counterpoint"
MODULES = sorted(SRC.rglob("*.py"))

# What each part of the package may import from the rest of it; itself always.
TOOLS = {
    "description",
    "masks",
    "goals",
    "replay",
    "files",
    "metrics",
    "checks",
    "report",
    "scm",
    "simulators",
    "user_code",
    "offscreen",
    "progress",
}
ALLOWED = {
    "core": set(),
    **{tool: {"core"} | TOOLS for tool in TOOLS},
    "worlds": {"core"} | TOOLS,
    "learn": {"core"} | TOOLS,
    "adapters": {"core"} | TOOLS,
    "demonstration": {"core", "worlds", "learn"} | TOOLS,
    "command_line": {"core", "worlds", "learn", "adapters", "demonstration"} | TOOLS,
    "__init__": {"core"},
}
EXCEPTIONS = {("adapters/gymnasium_tasks.py", "worlds")}
# Foreign libraries enter in one file each.
FOREIGN = {
    "numpy": None,
    "numba": {"core/kernels.py", "core/threads.py"},
    "gymnasium": {"adapters/gymnasium.py", "adapters/sb3", "adapters/mujoco/", "worlds/fetch/"},
    "gymnasium_robotics": {"worlds/fetch/"},
    "mujoco": {"adapters/mujoco/", "worlds/fetch/"},
    "cloudpickle": {"adapters/mujoco/"},
    "PIL": {"worlds/draw.py", "report/"},
    "pygame": {"adapters/gymnasium.py"},
    "torch": {"learn/", "demonstration/", "adapters/sb3"},
    "safetensors": {"learn/"},
    "matplotlib": {"report/"},
    "stable_baselines3": {"adapters/sb3"},
    "pyarrow": {"adapters/parquet.py", "adapters/lerobot/"},
    "h5py": {"adapters/hdf5.py"},
    "minari": {"adapters/minari.py"},
    "ray": {"adapters/ray.py"},
}


# What lies beside the package, and what of it each may import; tests may import everything.
BESIDE = {"experiments": {"experiments"}, "benchmarks": {"benchmarks", "experiments"}, "examples": set()}


# What is imported by its name in a string, when it is first needed: by these files alone, from these parts alone.
BY_NAME = {
    ("adapters/gymnasium.py", "adapters"),
    ("command_line/environment.py", "adapters"),
    ("command_line/environment.py", "worlds"),
    ("command_line/arguments.py", "worlds"),
    ("command_line/arguments.py", "learn"),
    ("command_line/demo.py", "demonstration"),
    ("command_line/fit_mask.py", "learn"),
    ("command_line/judging.py", "learn"),
    ("command_line/judging.py", "report"),
    ("command_line/report.py", "worlds"),
    ("command_line/fit_mask.py", "learn"),
    ("command_line/judging.py", "learn"),
    ("command_line/judging.py", "report"),
    ("command_line/score_mask.py", "learn"),
    ("command_line/shards.py", "adapters"),
    ("description/building.py", "learn"),
    ("files/formats.py", "adapters"),
    ("files/formats.py", "files"),
    ("files/jobs.py", "report"),
}
PLACE = re.compile(r"counterpoint(\.[a-z_0-9]+)+(:\w+)?")


def imports_by_name(path):
    """Every string in a file that is the name of a module of ours."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
            yield node.value.partition(":")[0]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a name comes from"
            if node.module == "counterpoint":
                yield from (f"counterpoint.{alias.name}" for alias in node.names)
            else:
                yield node.module


def part(path):
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_dependencies_point_inwards(path):
    for name in imports(path):
        top, *rest = name.split(".")
        place = str(path.relative_to(SRC))
        if top == "counterpoint":
            target = rest[0] if rest else "__init__"
            allowed = ALLOWED[part(path)] | {part(path)}
            assert target in allowed or (place, target) in EXCEPTIONS, f"{place} must not import {name}"
        elif top not in sys.stdlib_module_names:
            assert top in FOREIGN, f"{place} imports {top}, which no file is named for"
            homes = FOREIGN[top]
            assert homes is None or any(place.startswith(home) for home in homes), f"{place} must not import {top}"


@pytest.mark.parametrize("folder", BESIDE)
def test_what_lies_beside_the_package_keeps_its_order(folder):
    everything = {"tests", *BESIDE}
    for path in sorted((ROOT / folder).rglob("*.py")):
        tops = {name.partition(".")[0] for name in imports(path)}
        assert not tops & (everything - BESIDE[folder]), f"{path.relative_to(ROOT)} imports {tops & everything}"
    for path in MODULES:
        assert not {name.partition(".")[0] for name in imports(path)} & everything, path


def test_no_two_public_classes_have_one_name():
    found = {}
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            alias = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
            name = node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.target) if alias else "_"
            if not name.startswith("_"):
                found.setdefault(name, []).append(str(path.relative_to(SRC)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_imports_by_name_are_known():
    found = {
        (str(path.relative_to(SRC)), name.split(".")[1])
        for path in MODULES
        for name in imports_by_name(path)
        if any((SRC / name.split(".")[1]).with_suffix(suffix).exists() for suffix in ("", ".py"))
    }
    assert found == BY_NAME


def python(code, *flags):
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_bare_package_needs_numpy_and_numba_alone():
    """Every other library is made impossible to import; the package still works."""
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "gymnasium", "scipy", "pyarrow", "h5py", "PIL", "stable_baselines3"}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import counterpoint, counterpoint.masks, counterpoint.checks
print(counterpoint.__version__)
"""
    assert python(code).strip() == "0.1.0"


def test_importing_it_loads_nothing_heavy_and_compiles_nothing():
    """What makes an import slow is loading other libraries and compiling; both can be seen without a clock."""
    code = """
import sys, numba, numpy.random, numpy.typing
from numba.core import event
before = set(sys.modules)
with event.install_recorder("numba:compile") as recorder:
    import counterpoint
tops = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(sorted(tops - {'numpy'}), len(recorder.buffer))
"""
    assert python(code).strip() == "['counterpoint'] 0"


def test_every_public_name_is_documented():
    import counterpoint

    for name in counterpoint.__all__:
        assert getattr(counterpoint, name).__doc__, name
