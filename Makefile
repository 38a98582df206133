# Every target sets up what it needs by itself. `make setup` alone takes about two minutes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo format lint type test test-all bench docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt requirements-dev.txt
	$(PYTHON) -m venv .venv || { $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv .venv; }
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $(READY)

demo: $(READY)
	$(BIN)/counterpoint demo

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet . || true

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

type: $(READY)
	$(BIN)/mypy

# The core's compiled loops cannot be watched while compiled, so its branches are counted interpreted.
test: $(READY) lint type
	$(BIN)/python -m pytest -n 2 -m "not slow"
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/core --cov --cov-report=term:skip-covered --cov-fail-under=100

test-all: $(READY) lint type
	$(BIN)/python -m pytest -n 2
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/core --cov --cov-report=term:skip-covered --cov-fail-under=100

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
