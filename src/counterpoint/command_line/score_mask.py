"""Say how good a mask is, and which threshold to use.

Example:
  counterpoint score-mask mask.safetensors held_out.parquet
  counterpoint score-mask robot.toml held_out.parquet
  counterpoint score-mask mask.safetensors held_out.parquet --world sprites --tau 0.1

With the true edges, from a world or from an array "mask" (B, N, n) in an .npz file, it gives ranking figures with 95%
intervals. Without them it estimates from data alone how many counterfactuals would be wrong, names a threshold, and
answers with exit code 1 if the data had better not be augmented. Use data that the mask was not fitted to. The mask of
a description (by distance, learned with its tau, or a function of yours, which is run) is judged as it is.
"""

import argparse
import importlib
import sys
from functools import partial
from typing import Any

import numpy as np

from counterpoint import metrics
from counterpoint.command_line import arguments
from counterpoint.core.arrays import Array, Bools
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.files.foreign import named
from counterpoint.files.npz import read_arrays
from counterpoint.masks import Threshold

MOST_ROWS = 5000  # that figures with intervals are measured on


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    verb.add_argument(
        "mask", help="a .safetensors file that `counterpoint fit-mask` wrote, or a description (TOML) with a mask"
    )
    arguments.add_data(verb)
    arguments.add_world(verb)
    verb.add_argument("--labels", metavar="NPZ", help='an .npz file with the true edges, an array "mask" (B, N, n)')
    verb.add_argument("--tau", type=float, help="also judge the mask of this threshold; needs the true edges")
    verb.add_argument(
        "--derive", metavar="MODULE:FUNCTION", help="how derived columns follow from the others: state -> (B, derived)"
    )
    arguments.add_rows(verb)
    verb.add_argument("--seed", type=int, default=0, help="the seed of all randomness (0)")


def run(given: argparse.Namespace) -> int:
    """Score a mask."""
    learn: Any = importlib.import_module("counterpoint.learn")
    if given.mask.endswith(".toml"):
        return _judge_described(given, learn)
    estimator, data = learn.load(given.mask), arguments.sampled(given, arguments.opened(given))
    factors, rng = estimator.learned().factors, np.random.default_rng(given.seed)
    derive = given.derive and arguments.imported(given.derive)
    truth = _truth(given, data, factors)
    if truth is None:
        if given.tau is not None:
            raise ValueError("--tau: a threshold of yours is judged by the true edges. Give --world or --labels.")
        found = learn.calibrate(estimator, data, factors, rng=rng, derive=derive, progress=sys.stderr.isatty())
        print(found)
        return 0 if found.fine else 1
    rows = np.linspace(0, len(data) - 1, min(len(data), MOST_ROWS)).astype(np.int64)
    some = data[rows]
    scores = estimator.scores(some.state, some.action, some.next_state if estimator.uses_next_state else None)
    print(_figures(scores, truth[rows], rng))
    if given.tau is not None:
        setting = (data, factors, rng, derive)
        print("\n" + _at(given, Threshold(estimator, given.tau), scores > given.tau, truth[rows], setting))
    return 0


def _judge_described(given: argparse.Namespace, learn: Any) -> int:
    """Judge the mask of a description from data alone."""
    for name in ("world", "labels", "tau", "derive"):
        if getattr(given, name) is not None:
            raise ValueError(f"--{name}: the mask of a description is judged from data alone. Leave it out.")
    source = arguments.opened(given)
    description = arguments.described(given.mask, source)
    mask, derive = description.mask()
    found = learn.calibrate(
        mask,
        arguments.sampled(given, source),
        description.factors,
        rng=np.random.default_rng(given.seed),
        derive=derive,
        progress=sys.stderr.isatty(),
    )
    print(found)
    return 0 if found.fine else 1


def _truth(given: argparse.Namespace, data: Transitions, factors: Factorization) -> Bools | None:
    """Return the true edges, (B, N, n), or None if nobody knows them."""
    world = arguments.world(given)
    if world is not None:
        if given.labels is not None:
            raise ValueError("--labels and --world: give one of them, not both.")
        return np.asarray(world.mask(data.state, data.action, data.noise))
    if given.labels is None:
        return None
    with named(given.labels):
        found = read_arrays(given.labels).get("mask")
    shape = (len(data), factors.n + factors.m, factors.n)
    if found is None or found.dtype != np.bool_ or found.shape != shape:
        came = "none" if found is None else f"{found.dtype} {found.shape}"
        raise ValueError(f"{given.labels}: expected an array called mask, booleans of shape {shape}, got {came}.")
    return found


def _figures(scores: Array, truth: Bools, rng: np.random.Generator) -> str:
    """Return ranking figures for each kind of edge, as a table."""
    lines = [f"{'edges':<15}{'share':>8}  {'area under ROC':<24}average precision"]
    for kind in metrics.EDGE_KINDS:
        share = truth[:, metrics.edge_kind(kind, *truth.shape[1:])].mean() if truth.size else 0.0
        measured = (partial(metric, kind=kind) for metric in (metrics.auc, metrics.average_precision))
        cells = [metrics.bootstrap(metric, scores, truth, rng=rng) for metric in measured]
        lines.append(f"{kind:<15}{share:>8.2%}  {cells[0]!s:<24}{cells[1]}")
    return "\n".join(lines)


def _at(given: argparse.Namespace, mask_fn: Threshold, mask: Bools, truth: Bools, setting: tuple[Any, ...]) -> str:
    """Return what becomes of edges and counterfactuals at one threshold."""
    missed = [f"{kind} {metrics.missed_edge_rate(mask, truth, kind):.2%}" for kind in metrics.EDGE_KINDS]
    text = f"at tau = {given.tau:g}\n  missed edges: {', '.join(missed)}"
    world = arguments.world(given)
    if world is not None:
        data, factors, rng, derive = setting
        quality = metrics.swap_quality(mask_fn, world.mask, data, factors, step=world.step, rng=rng, derive=derive)
        text += f"\n  {quality}"
    return text
