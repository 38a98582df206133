"""Run every benchmark: ``python -m benchmarks [name ...]``."""

import importlib
import sys

ALL = ("engine", "windows", "policies", "worlds", "mujoco", "files", "learned", "online", "goals", "imports")

for name in sys.argv[1:] or ALL:
    importlib.import_module(f"benchmarks.{name}").main()
