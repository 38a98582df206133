# Every target sets up what it needs by itself. `make setup` alone takes about two minutes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo format lint type test test-all test-processors campaign bench docs clean

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
	$(MAKE) test-processors

# A processor's vector width changes the last bits of a training, and nothing may hold by luck. So whatever trains runs
# as if on a narrow processor, a usual one and a wide one, each time with other seeds. PyTorch would crash where it is
# told of instructions that the processor lacks, so in their place this machine is taken as it is.
TRAINED := tests/learn tests/experiments tests/test_demonstration.py tests/command_line/test_masks.py
NARROW := ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4"
HAS = $(shell grep -o -m1 -w $(1) /proc/cpuinfo 2>/dev/null)
USUAL := $(if $(call HAS,avx2),ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 NPY_DISABLE_CPU_FEATURES="X86_V4")
WIDE := $(if $(call HAS,avx512f),ATEN_CPU_CAPABILITY=avx512 MKL_ENABLE_INSTRUCTIONS=AVX512)

test-processors: $(READY)
	$(NARROW) OTHER_SEEDS=1000 $(BIN)/python -m pytest -n 2 $(TRAINED)
	$(USUAL) OTHER_SEEDS=2000 $(BIN)/python -m pytest -n 2 $(TRAINED)
	$(WIDE) OTHER_SEEDS=3000 $(BIN)/python -m pytest -n 2 $(TRAINED)

# Damage, kills, full disks and concurrent pairs, sized for ten minutes; each campaign prints how many it survived.
# `make campaign CAMPAIGN=3000` damages every format so many times.
campaign: $(READY)
	$(BIN)/python -m pytest -q -n 2 -m slow tests/campaigns

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
