"""Every Python block of the README and the docs runs, page by page, as does every docstring example.

So does every line `$ counterpoint ...` of a console block; it prints what the page says, `...` standing for anything.
"""

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import shlex
import sys
from pathlib import Path

import pytest

import counterpoint
from counterpoint.command_line import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ counterpoint ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=lambda p: str(p.relative_to(ROOT))
)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    names, loaded = {"__name__": "__page__"}, set(sys.modules)
    for block in BLOCK.finditer(page.read_text()):
        kind, text = block.groups()
        if kind == "python":
            line = page.read_text()[: block.start()].count("\n") + 1
            exec(compile("\n" * line + text, str(page), "exec"), names)
        else:
            for words, shown in COMMAND.findall(text):
                check_command(words, shown)
    for name in set(sys.modules) - loaded:  # modules that the page wrote
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def check_command(words, shown):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(shlex.split(words.replace("\\\n", " ")))
    assert code == 0, words
    same = doctest.OutputChecker().check_output(shown, printed.getvalue(), doctest.ELLIPSIS)
    assert same, f"$ counterpoint {words}\n{printed.getvalue()}"


MODULES = [name for _, name, _ in pkgutil.walk_packages(counterpoint.__path__, "counterpoint.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_first_page_leads_to_every_other():
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text()
    menu = (ROOT / "mkdocs.yml").read_text()
    for page in sorted(docs.rglob("*.md")):
        name = str(page.relative_to(docs))
        assert name == "index.md" or f"]({name})" in index, f"docs/index.md has no link to {name}"
        assert f": {name}\n" in menu + "\n", f"mkdocs.yml has no entry for {name}"
