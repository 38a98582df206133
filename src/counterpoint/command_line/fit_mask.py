"""Learn a mask from a dataset.

Example:
  counterpoint fit-mask pushes.parquet robot.toml --out mask.safetensors

Only the factors of the description matter; none of its functions is run. With 8,000 rows or more, a quarter of them is
held out to find a threshold and to judge the mask, as `counterpoint score-mask` does with other data: then trees and a
network are fitted, and the one that is judged better is kept. The description says how to use it: [mask] kind =
"learned", file = "mask.safetensors", tau = ...
"""

import argparse
import dataclasses
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

RECOMMENDED = ("TreeAttribution", "ResidualAttribution")  # the first alone where nothing can be compared
_MORE = 1.25  # times the yield of an earlier one that a later one must have, if both are fine
HELD_OUT = 0.25  # share of the rows that a mask is judged by


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("description", help="a TOML file about the dataset")
    arguments.add_output(verb, "the learned mask, a .safetensors file")
    verb.add_argument(
        "--estimator",
        metavar="NAME",
        help=f"which one to fit ({', '.join(RECOMMENDED)}); several, with commas between, are all fitted, and the one "
        "that is judged best is kept; any other name prints the list",
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
    names = RECOMMENDED if given.estimator is None else given.estimator.split(",")
    estimators = _with_settings([arguments.estimator_class(name.strip()) for name in names], dict(given.setting))
    source = arguments.opened(given)
    description = arguments.described(given.description, source)
    require_apart({"the output": Path(given.out)}, arguments.inputs(source, description))
    factors, data = description.factors, arguments.sampled(given, source)
    rng = np.random.default_rng(given.seed)
    learning, held = _halves(given.held_out, data, factors, rng)
    if given.estimator is None and held is None:
        estimators = estimators[:1]
    if len(estimators) > 1 and held is None:
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
        if len(estimators) > 1:
            print(f"{name}: {verdict.verdict}\n")
        if best is None or _better(verdict, said):
            if best is not None:
                fitted.save(given.out, force=True)
            best, said = name, verdict
    print(f"{given.out}: {best}, fitted to {len(learning):,} transitions with {factors.n} state factors")
    print(said or f"next: counterpoint score-mask {given.out} HELD_OUT_DATA finds a threshold")
    return 0


def _with_settings(kinds: list[Any], settings: dict[str, Any]) -> list[Any]:
    """Return estimators, each with the settings that it takes; columns that never vary are carried."""
    known = [{field.name for field in dataclasses.fields(kind) if field.init} for kind in kinds]
    for name in settings:
        if not any(name in each for each in known):
            called = " and ".join(kind.__name__ for kind in kinds)
            verb = "does" if len(kinds) == 1 else "do"
            raise ValueError(
                f"--setting: {called} {verb} not take {name!r}; there are {', '.join(sorted(set().union(*known)))}."
            )
    chosen = [{name: value for name, value in settings.items() if name in each} for each in known]
    return [kind(**{"allow_constant": True, **mine}) for kind, mine in zip(kinds, chosen, strict=True)]


def _judged(fitted: Any, held: Transitions, factors: Factorization, seed: int, terminal: bool) -> Any:
    """Return the verdict on an estimator; each is judged with the same randomness."""
    learn: Any = importlib.import_module("counterpoint.learn")
    return learn.calibrate(fitted, held, factors, rng=np.random.default_rng([seed, 1]), progress=terminal)


def _better(verdict: Any, earlier: Any) -> bool:
    """Return whether an estimator is judged clearly better than an earlier one.

    Fine beats not fine. Of two that are fine, the later one must yield a good deal more: who is named first is trusted
    more. Of two that are not, the lower upper end wins.
    """
    new, old = (each.by_kind or each for each in (verdict, earlier))
    if new.fine != old.fine:
        return bool(new.fine)
    return bool(new.accepted > _MORE * old.accepted if new.fine else new.wrong.high < old.wrong.high)


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
