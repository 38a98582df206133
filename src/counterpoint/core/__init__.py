"""The engine: factors, transitions, graphs, and Algorithm 1. NumPy and Numba only."""
