"""The engine beside the gather of both parents (the physical limit) and beside the literal algorithm.

Engine time is the time of ``Augmenter.fill`` without the time spent in mask and reward functions. The
gather copies both parents' rows of state, action and next state with NumPy fancy indexing: whatever a
method does, it must at least read those rows and write as many.
"""

import gc
import time

import numpy as np

from benchmarks import literal, measure
from counterpoint import Augmenter, Counterfactuals, Factorization, Transitions
from counterpoint.masks import Proximity
from experiments import machine, pages

TRANSITIONS, SAMPLES = 200_000, 1_000_000


def world(n: int, rows: int, rng: np.random.Generator) -> tuple[Factorization, Transitions, Proximity]:
    """Random states of n factors with x, y, vx, vy each; near ones influence each other."""
    factors = Factorization.blocks(state={f"ball{i}": 4 for i in range(n)}, action={"push": 2})
    data = Transitions(
        state=rng.random((rows, 4 * n), np.float32),
        action=rng.random((rows, 2), np.float32),
        reward=np.zeros(rows, np.float32),
        next_state=rng.random((rows, 4 * n), np.float32),
        terminated=np.zeros(rows, bool),
    )
    positions = {name: columns[:2] for name, columns in factors.state.items()}
    radius = 0.1 * (4 / n)  # the number of near pairs stays about the same
    return factors, data, Proximity(factors, positions, radius, attached=("ball0",))


def reward(state: np.ndarray, action: np.ndarray, next_state: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return next_state[:, 0]


def engine(n: int, samples: int) -> dict[str, float]:
    """Seconds of gather and engine, run in turns so that both meet the same machine, and peak memory."""
    rng = np.random.default_rng(0)
    factors, data, mask = world(n, TRANSITIONS, rng)
    base, donor = rng.integers(len(data), size=(2, samples))
    arrays = data.state, data.action, data.next_state
    gathers, engines, memory = list[float](), list[float](), list[float]()
    Augmenter(factors, mask, reward).fill(data, 10_000, rng=rng)  # compiles, or loads what was compiled
    for _ in range(5):
        gathers.append(measure.best(lambda: [array[rows] for array in arrays for rows in (base, donor)], 1))
        mask_fn, reward_fn, made = measure.Stopwatch(mask), measure.Stopwatch(reward), list[Counterfactuals]()
        augmenter = Augmenter(factors, mask_fn, reward_fn)
        gc.collect()
        measure.reset_peak()
        before = measure.resident_bytes()
        start = time.perf_counter()
        made.append(augmenter.fill(data, samples, rng=np.random.default_rng(1)))
        whole = time.perf_counter() - start
        output = [array for _, array in made[0].transitions.columns()] + [made[0].base, made[0].donor, made[0].swapped]
        memory.append(measure.peak_bytes() - before - sum(array.nbytes for array in output))
        engines.append(whole - mask_fn.seconds - reward_fn.seconds)
    found = {"gather": min(gathers), "engine": min(engines), "memory": max(memory)}
    return {**found, "acceptance": made[0].funnel.acceptance}


def naive(n: int, samples: int = 200) -> float:
    """Accepted samples per second of Algorithm 1 with Python sets, one pair after another, masks given."""
    rng = np.random.default_rng(0)
    factors, data, mask = world(n, 2000, rng)
    rows = [tuple(getattr(data, name)[r].tolist() for name in ("state", "action", "next_state")) for r in range(2000)]
    masks = mask(data.state, data.action).tolist()
    owner = factors.state_owner.tolist(), factors.action_owner.tolist()
    free = np.eye(n + 1, n, dtype=bool).tolist()

    def run() -> None:
        made = 0
        while made < samples:
            i, j = rng.integers(2000, size=2)
            sets = list(literal.candidates(masks[i], masks[j]))
            if sets:
                d = sets[rng.integers(len(sets))]
                made += literal.coda(rows[i], rows[j], d, lambda s, a: free, owner) is not None  # noqa: ARG005

    return samples / measure.best(run, 1)


def main() -> None:
    """Print all tables."""
    print(machine.describe())
    rows: list[list[object]] = []
    for n, limit in ((4, "2.0"), (8, "-"), (16, "3.0"), (64, "-")):
        samples = SAMPLES if n <= 16 else SAMPLES // 4
        found = engine(n, samples)
        rate, ratio = samples / found["engine"], found["engine"] / found["gather"]
        times = rate / naive(n, 200 if n < 8 else 20) if n <= 8 else "2^n sets"
        sizes = [n, 4 * n, samples, found["acceptance"], found["gather"], found["engine"]]
        rows.append([*sizes, ratio, limit, rate, times, found["memory"] / 1e6])
    head = ["n", "columns", "samples", "accepted", "gather s", "engine s", "ratio", "at most", "samples/s", "x literal"]
    title = f"Engine without mask calls, from {TRANSITIONS:,} transitions (float32)"
    pages.print_table(title, [*head, "MB beyond output"], rows)
    counts = (250_000, 500_000, 1_000_000, 2_000_000)
    scaling = [[count, seconds := engine(4, count)["engine"], seconds / count * 1e9] for count in counts]
    pages.print_table("Linear in rows (n = 4)", ["samples", "engine s", "ns per sample"], scaling)
    factors = [[n, seconds := engine(n, 250_000)["engine"], seconds / 250_000 / n * 1e9] for n in (4, 8, 16, 32, 64)]
    pages.print_table("Linear in factors (250,000 samples)", ["n", "engine s", "ns per sample and factor"], factors)


if __name__ == "__main__":
    main()
