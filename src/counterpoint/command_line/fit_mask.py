"""Learn a mask from a dataset.

Example:
  counterpoint fit-mask pushes.parquet robot.toml --out mask.safetensors

Only the factors of the description matter; none of its functions is run. With 8,000 rows or more, a quarter of them is
held out to find a threshold and to judge the mask, as `counterpoint score-mask` does with other data. The description
says how to use it: [mask] kind = "learned", file = "mask.safetensors", tau = ...
"""

import argparse
import importlib
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.command_line import arguments
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_share
from counterpoint.core.transitions import Transitions
from counterpoint.files.apart import require_apart
from counterpoint.files.output import leading_to, require_free
from counterpoint.progress import announce

RECOMMENDED = "ResidualAttribution"
HELD_OUT = 0.25  # share of the rows that a mask is judged by


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("description", help="a TOML file about the dataset")
    arguments.add_output(verb, "the learned mask, a .safetensors file")
    verb.add_argument(
        "--estimator",
        default=RECOMMENDED,
        metavar="NAME",
        help=f"which one to fit ({RECOMMENDED}); several, with commas between, are all fitted, and the one that is "
        "judged best is kept; any other name prints the list",
    )
    verb.add_argument(
        "--setting",
        action="append",
        type=arguments.setting,
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the estimator; may be repeated",
    )
    verb.add_argument(
        "--held-out",
        type=float,
        default=HELD_OUT,
        metavar="SHARE",
        help=f"share of the rows to judge the mask by, whole episodes ({HELD_OUT}); 0 fits it to all of them",
    )
    arguments.add_rows(verb)
    verb.add_argument("--seed", type=int, default=0, help="the seed of all randomness (0)")


def run(given: argparse.Namespace) -> int:
    """Fit estimators and save the one that is judged best."""
    require_free(Path(given.out), force=given.force)
    kinds = [arguments.estimator_class(name.strip()) for name in given.estimator.split(",")]
    estimators = [_with_settings(kind, dict(given.setting)) for kind in kinds]
    source = arguments.opened(given)
    description = arguments.described(given.description, source)
    require_apart({"the output": Path(given.out)}, arguments.inputs(source, description))
    factors, data = description.factors, arguments.sampled(given, source)
    rng = np.random.default_rng(given.seed)
    learning, held = _halves(given.held_out, data, factors, rng)
    if len(kinds) > 1 and held is None:
        raise ValueError(
            f"--estimator: {given.estimator} cannot be compared, because no rows are held out to judge them by. Fit "
            "one of them, or give more rows and a larger --held-out. Rows with derived columns are not judged here."
        )
    best: str | None = None
    said: Any = None
    for estimator in estimators:
        name = type(estimator).__name__
        terminal = announce(f"fit-mask: {name}, {len(learning):,} rows")
        with leading_to(Path(given.out)):  # PyTorch keeps files of its own
            fitted = estimator.fit(learning, factors, rng=rng, progress=terminal)
        if best is None:  # before it is judged, so that it is not lost if that fails
            fitted.save(given.out, force=given.force)
        verdict: Any = None if held is None else _judged(fitted, held, factors, given.seed, terminal)
        if len(kinds) > 1:
            print(f"{name}: {verdict.verdict}\n")
        if best is None or _merit(verdict) < _merit(said):
            if best is not None:
                fitted.save(given.out, force=True)
            best, said = name, verdict
    print(f"{given.out}: {best}, fitted to {len(learning):,} transitions with {factors.n} state factors")
    print(said or f"next: counterpoint score-mask {given.out} HELD_OUT_DATA finds a threshold")
    return 0


def _with_settings(kind: Any, settings: dict[str, Any]) -> Any:
    """Return an estimator with settings; columns that never vary are carried."""
    try:
        return kind(**{"allow_constant": True, **settings})
    except TypeError as error:
        raise ValueError(f"--setting: {kind.__name__} does not take this: {error}") from error


def _judged(fitted: Any, held: Transitions, factors: Factorization, seed: int, terminal: bool) -> Any:
    """Return the verdict on an estimator; each is judged with the same randomness."""
    learn: Any = importlib.import_module("counterpoint.learn")
    return learn.calibrate(fitted, held, factors, rng=np.random.default_rng([seed, 1]), progress=terminal)


def _merit(verdict: Any) -> tuple[bool, float]:
    """Return what is least for the best one: fine, with the largest yield, or else with the least upper end."""
    shown = verdict.by_kind or verdict
    return not shown.fine, -shown.accepted if shown.fine else shown.wrong.high


def _halves(
    share: float, data: Transitions, factors: Factorization, rng: np.random.Generator
) -> tuple[Transitions, Transitions | None]:
    """Return what to fit a mask to, and what to judge it by, if there is enough and nothing has to be derived."""
    require_share("--held-out", share)
    fitting: Any = importlib.import_module("counterpoint.learn.training.fitting")
    fewest: int = importlib.import_module("counterpoint.learn.calibration.calibrate").FEWEST_ROWS
    if factors.derived or share * len(data) < fewest:
        return data, None
    rest, held = fitting.split(data, share, rng)
    return (data[rest], data[held]) if len(held) >= fewest else (data, None)
