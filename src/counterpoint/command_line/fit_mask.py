"""Learn a mask from a dataset.

Example:
  counterpoint fit-mask pushes.parquet robot.toml --out mask.safetensors

Only the factors of the description matter; none of its functions is run. `counterpoint score-mask` then finds a
threshold, and the description says how to use it: [mask] kind = "learned", file = "mask.safetensors", tau = ...
"""

import argparse
from pathlib import Path

import numpy as np

from counterpoint.command_line import arguments
from counterpoint.files.apart import require_apart
from counterpoint.files.output import require_free
from counterpoint.progress import announce

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
        help=f"which one to fit ({RECOMMENDED}); any other name prints the list",
    )
    verb.add_argument(
        "--setting",
        action="append",
        type=arguments.setting,
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the estimator; may be repeated",
    )
    arguments.add_rows(verb)
    verb.add_argument("--seed", type=int, default=0, help="the seed of all randomness (0)")


def run(given: argparse.Namespace) -> int:
    """Fit an estimator and save it."""
    require_free(Path(given.out), force=given.force)
    kind = arguments.estimator_class(given.estimator)
    try:
        estimator = kind(**{"allow_constant": True, **dict(given.setting)})  # columns that never vary are carried
    except TypeError as error:
        raise ValueError(f"--setting: {kind.__name__} does not take this: {error}") from error
    source = arguments.opened(given)
    description = arguments.described(given.description, source)
    require_apart({"the output": Path(given.out)}, arguments.inputs(source, description))
    factors, data = description.factors, arguments.sampled(given, source)
    terminal = announce(f"fit-mask: {kind.__name__}, {len(data):,} rows")
    fitted = estimator.fit(data, factors, rng=np.random.default_rng(given.seed), progress=terminal)
    require_free(Path(given.out), force=given.force)
    fitted.save(given.out)
    print(f"{given.out}: {kind.__name__}, fitted to {len(data):,} transitions with {factors.n} state factors")
    print(f"next: counterpoint score-mask {given.out} HELD_OUT_DATA finds a threshold")
    return 0
