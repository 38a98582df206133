import sys

import pytest

from tests.command_line.sprites import prepare


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    yield tmp_path
    sys.modules.pop("sprite_functions", None)


@pytest.fixture
def data(folder):
    """The transitions of data.parquet, which is in the folder with its description."""
    return prepare(folder)
