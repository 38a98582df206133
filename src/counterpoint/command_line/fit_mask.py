"""Learn a mask from a dataset.

Example:
  counterpoint fit-mask pushes.parquet robot.toml --out mask.safetensors

Of the description only the factors matter. `counterpoint score-mask` then finds a threshold, and the description says
how to use it: [mask] kind = "learned", file = "mask.safetensors", tau = ...
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from counterpoint.command_line import arguments
from counterpoint.files.output import require_free

RECOMMENDED = "ResidualAttribution"


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("description", help="a TOML file about the dataset")
    arguments.add_output(verb, "the learned mask, a .safetensors file")
    verb.add_argument(
        "--estimator",
        default=RECOMMENDED,
        metavar="NAME",
        help=f"which one to fit ({RECOMMENDED}); a wrong name lists all",
    )
    verb.add_argument(
        "--setting", action="append", type=arguments.setting, default=[], metavar="NAME=VALUE", help="of the estimator"
    )
    verb.add_argument("--seed", type=int, default=0, help="of all randomness (0)")


def run(given: argparse.Namespace) -> int:
    """Fit an estimator and save it."""
    require_free(Path(given.out), force=given.force)
    kind = arguments.estimator_class(given.estimator)
    try:
        estimator = kind(**dict(given.setting))
    except TypeError as error:
        raise ValueError(f"--setting: {kind.__name__} does not take this: {error}") from error
    source = arguments.opened(given)
    factors = arguments.described(given.description, source).factors
    data = source.read().transitions
    fitted = estimator.fit(data, factors, rng=np.random.default_rng(given.seed), progress=sys.stderr.isatty())
    fitted.save(given.out)
    print(f"{given.out}: {kind.__name__}, fitted to {len(data):,} transitions with {factors.n} state factors")
    print(f"next: counterpoint score-mask {given.out} HELD_OUT_DATA finds a threshold")
    return 0
