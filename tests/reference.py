"""Algorithm 1 of the paper, spelled with Python sets: what the engine must equal. The benchmarks time it, too."""

from benchmarks.literal import Components, candidates, coda, connected_components

__all__ = ["Components", "candidates", "coda", "connected_components"]
