"""Functions of the user's, named as ``module:function``: where they are, how they are loaded, what their source is.

A module that lies beside the description is loaded from there, whatever else has its name: two descriptions in two
folders may each have a ``my_robot.py``. Any other module is imported as usual. Nothing here runs a module only to find
out where it is.
"""

import ast
import hashlib
import importlib
import importlib.util
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

BY_NAME = ("import_module", "__import__")  # functions that import a module whose name they are given
UNREADABLE = ("exec", "eval", "run_path", "run_module", "spec_from_file_location", "SourceFileLoader")
_LOADED: dict[tuple[Path, str], tuple[str, ModuleType]] = {}  # (folder, module) -> digest of its sources, the module


@dataclass(frozen=True)
class FunctionPlace:
    """Where a function is: its module, its name, and the module's file if it has one."""

    module: str
    name: str
    path: Path | None
    folder: Path | None  # the folder that it was found in, unless it is installed

    def __str__(self) -> str:
        return f"{self.module}:{self.name} in {self.path or 'a built-in module'}"


def find(place: str, folder: Path) -> FunctionPlace:
    """Find ``module:function`` in a folder, or else among the installed modules, without running anything.

    Raises:
        ValueError: if it is not spelled like that, or there is no such module.
    """
    if not re.fullmatch(r"[^\W\d][\w.]*:[^\W\d]\w*", place):
        raise ValueError("expected module:function")
    module, _, name = place.partition(":")
    local = _file(module, folder)
    if local is not None:
        return FunctionPlace(module, name, local, folder)
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError) as error:
        raise ValueError(f"there is no module {module!r}: {error}") from error
    if spec is None:
        raise ValueError(f"there is no module {module!r} in {folder} or among the installed ones")
    if not rest:
        return FunctionPlace(module, name, Path(spec.origin) if spec.has_location and spec.origin else None, None)
    for above in spec.submodule_search_locations or ():
        inner = _file(".".join(rest), Path(above))
        if inner is not None:
            return FunctionPlace(module, name, inner, None)
    raise ValueError(f"there is no module {module!r}: {top} has no such submodule")


def load(place: str, folder: Path) -> Callable[..., Any]:
    """Load ``module:function``, from a folder first.

    Raises:
        ValueError: if it cannot be loaded, or is not a function; the message says why.
    """
    found = find(place, folder)
    try:
        module = importlib.import_module(found.module) if found.folder is None else _local(found)
    except SystemExit as error:
        raise ValueError(f"the module {found.module} ends the program when it is imported") from error
    except (ImportError, SyntaxError) as error:
        raise ValueError(f"the module {found.module} cannot be imported: {error}") from error
    if not hasattr(module, found.name):
        raise ValueError(f"module {found.module!r} has no attribute {found.name!r}")
    value = getattr(module, found.name)
    if not callable(value):
        raise ValueError(f"expected a function, got {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def sources(path: Path, folder: Path | None = None) -> tuple[Path, ...]:
    """Return a module's file and those of all local modules that it imports, found by reading their imports.

    Args:
        path: the module's file.
        folder: where local modules are looked for, besides the module's own folder.
    """
    seen: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen[file] = None
        for module, above in _imports(file):
            roots = [above] if above is not None else [root for root in (folder, file.parent, _root(file)) if root]
            found = (_file(module, root) for root in roots)
            waiting += [inner for inner in found if inner is not None]
    return tuple(seen)


def code_of(what: str, place: FunctionPlace) -> dict[str, Path]:
    """Return the file of a function and those of the local modules which that imports, by what they are.

    Args:
        what: names the function.
        place: where it is.
    """
    if place.path is None:
        return {}
    others = sources(place.path, place.folder)[1:] if place.folder is not None else ()
    imported = {f"{path.name}, which the code of {what} imports": path for path in others}
    return {f"the code of {what}": place.path, **imported}


def digest(*paths: Path) -> str:
    """Return a digest of the contents of files; a missing one has its own."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        try:
            content = path.read_bytes()
        except OSError:
            content = b"missing"
        found.update(f"{path.name} {len(content)} ".encode() + content)
    return found.hexdigest()


def installed(path: Path) -> bool:
    """Say whether a file belongs to an installed package or to Python itself."""
    places = [*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("stdlib")]
    return any(path.is_relative_to(place) for place in places)


def _local(found: FunctionPlace) -> ModuleType:
    """Import a module from its folder, again if a source of it has changed since."""
    assert found.folder is not None and found.path is not None  # noqa: S101, PT018
    folder = found.folder.resolve()
    now = digest(*sources(found.path, found.folder))
    known = _LOADED.get((folder, found.module))
    if known is not None and known[0] == now:
        return known[1]
    with _alone(folder, stale=known is not None):
        module = _imported(found.module, found.path, folder)
    _LOADED[folder, found.module] = now, module
    return module


def _imported(name: str, path: Path, folder: Path) -> ModuleType:
    there = sys.modules.get(name.partition(".")[0])
    if there is None or _lies_in(there, folder):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"{name}_{digest(path)[:8]}", path)  # beside a module of that name
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _alone(folder: Path, *, stale: bool) -> Iterator[None]:
    """Import from a folder as if no user's module from elsewhere were loaded; afterwards those are back."""
    local = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir() if path.is_dir()}
    names = [name for name in sys.modules if name.partition(".")[0] in local]
    aside = {name: sys.modules[name] for name in names if _is_elsewhere(sys.modules[name], folder)}
    old = [name for name in names if stale and _lies_in(sys.modules[name], folder)]
    for name in (*aside, *old):
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.update(aside)


def _lies_in(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(folder)


def _is_elsewhere(module: ModuleType, folder: Path) -> bool:
    """Say whether a module is a user's, from another folder."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return False
    path = Path(file).resolve()
    return not path.is_relative_to(folder) and not installed(path)


def _file(module: str, folder: Path) -> Path | None:
    """Return the file of a module below a folder, if it is there."""
    place = folder.joinpath(*module.split("."))
    for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if path.is_file():
            return path
    return None


def _root(file: Path) -> Path:
    """Return the folder that holds the outermost package of a file."""
    folder = file.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def hidden(*paths: Path) -> str | None:
    """Name the first place where a file loads code in a way that reading cannot follow, or None."""
    for path in paths:
        for call, module in _calls(path):
            if call in UNREADABLE or (call in BY_NAME and module is None):
                return f"{call} in {path.name}"
    return None


def _calls(file: Path) -> Iterator[tuple[str, str | None]]:
    """Iterate over the functions that a file calls, by their last name, with the first argument if that is a text.

    A method that has the name of something built in, such as ``eval`` of a network, is another function.
    """
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if name and (isinstance(node.func, ast.Name) or name not in ("exec", "eval")):
                yield name, first if isinstance(first, str) else None


def _imports(file: Path) -> Iterator[tuple[str, Path | None]]:
    """Iterate over the modules that a file imports anywhere in it; with the folder where an import is relative."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None
        elif isinstance(node, ast.ImportFrom):
            above = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else None
            base = [node.module] if node.module else []
            for module in (*base, *(".".join([*base, alias.name]) for alias in node.names)):
                yield module, above
    for call, named in _calls(file):
        if call in BY_NAME and named is not None:
            yield named, None


def _tree(file: Path) -> ast.AST:
    """Parse a file; what is no Python is taken for an empty one."""
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
