"""The part of `augment` that is about a folder of files: which engine makes its shards."""

import argparse
import importlib
import os
import shlex
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from counterpoint.command_line import arguments
from counterpoint.command_line.judging import judging
from counterpoint.core.arrays import counted
from counterpoint.core.augment import Augmenter
from counterpoint.description import Description
from counterpoint.files import FORMATS, Pool, Scan, ShardJob, Shards, augment_shards, report, scan, shards_of
from counterpoint.files.apart import require_apart
from counterpoint.files.output import require_free
from counterpoint.files.shard_jobs import Engine, augment_one
from counterpoint.files.sharding import donor_shard, wanted
from counterpoint.progress import ProgressBar

OPTIONS = ("workers", "engine", "address", "shard")


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    folder = verb.add_argument_group("for a folder of files")
    folder.add_argument("--workers", type=int, metavar="N", help="processes, one core each; all cores by default")
    folder.add_argument("--engine", choices=("pool", "ray", "commands"), help="who makes the shards (pool)")
    folder.add_argument("--address", help="of a Ray cluster; a local one is started by default")
    folder.add_argument("--shard", type=int, metavar="K", help="make this shard only; --resume then ends the job")


def meant(given: argparse.Namespace, source: Scan) -> bool:
    """Say whether shards are to be made, each from a shard."""
    suffixes = {suffix for kind in FORMATS.values() for suffix in kind.suffixes}
    if source.format == "shards" and Path(given.out).suffix.lower() not in suffixes:
        return True
    for name in OPTIONS:
        if getattr(given, name) is not None:
            raise ValueError(
                f"--{name}: it is for a folder of files that becomes a folder of files. One file is cut into shards "
                f"by: counterpoint convert {given.data} FOLDER --format shards"
            )
    return False


def checked(given: argparse.Namespace, description: Description) -> tuple[str, ...]:
    """Return which functions are compared with real rows: all, unless they are learned and so not exact."""
    if given.trust_reward:
        return ()
    return tuple(section for section in ("reward", "terminal") if section not in description.files)


@dataclass(frozen=True)
class Described:
    """Makes the augmenter of a description, in any process."""

    description: str
    shards: Shards
    settings: tuple[tuple[str, Any], ...]

    def __call__(self) -> Augmenter:
        """Load the functions, masks and rewards that the description names."""
        return arguments.described(self.description, self.shards.scan(0)).augmenter(**dict(self.settings))


def run(given: argparse.Namespace, source: Scan, description: Description, settings: dict[str, Any]) -> int:
    """Augment a folder of files."""
    out = os.path.normpath(given.out)
    require_apart(arguments.outputs(given, Path(out), Path(f"{out}.parts")), arguments.inputs(source, description))
    shards = shards_of(given.data, given.keys)
    if description.without_noise:
        shards = replace(shards, without=("noise",))
    ratio = given.ratio if given.size is None else Fraction(given.size - source.rows, source.rows)
    make = Described(os.path.abspath(given.description), shards, tuple(settings.items()))
    job = ShardJob(shards, make, given.out, ratio, given.seed, checked(given, description))
    if given.dry_run:
        print("\n".join(_foretold(given, job, description)))
        return 0
    if given.engine == "commands":
        return _print_commands(given, job)
    if given.shard is not None:
        done = augment_one(job, given.shard)
        made = counted(done.counterfactuals, "counterfactual")
        print(f"{done.file}: {counted(done.real, 'real transition')} and {made}")
        return 0
    if given.report is not None:
        require_free(Path(given.report), force=given.force)
    with ProgressBar("augment", shards.total + wanted(shards, ratio), "rows") as bar:
        how: dict[str, Any] = {"resume": given.resume, "force": given.force, "progress": bar.reach}
        found = augment_shards(job, engine=_engine(given), **how)
    print(found)
    if given.report is not None:
        augmenter = make()
        options: dict[str, Any] = {"force": given.force, "judge": judging(augmenter), "command": given.command}
        page = report(scan(job.out), augmenter, given.report, **options)
        print(f"\nreport: {page}")
    return 0


def _engine(given: argparse.Namespace) -> Engine:
    """Return what makes the shards."""
    if given.engine == "ray":
        ray: Any = importlib.import_module("counterpoint.adapters.ray")
        return ray.Ray(workers=given.workers, address=given.address)  # type: ignore[no-any-return]
    if given.address is not None:
        raise ValueError("--address: it is the address of a Ray cluster. Give --engine ray, too.")
    return Pool(given.workers)


def _print_commands(given: argparse.Namespace, job: ShardJob) -> int:
    """Print one command for each shard, and say how to end the job."""
    words = ["counterpoint", "augment", given.data, given.description, "--out", job.out, "--seed", str(given.seed)]
    words += ["--ratio", repr(given.ratio)] if given.size is None else ["--size", str(given.size)]
    words += [] if given.window is None else ["--window", str(given.window)]
    words += [] if given.keys is None else ["--keys", ",".join(given.keys)]
    words += ["--trust-reward"] if given.trust_reward else []
    for number in range(len(job.shards)):
        print(shlex.join([*words, "--shard", str(number)]))
    print(f"when all are done: {shlex.join([*words, '--resume'])}", file=sys.stderr)
    return 0


def _foretold(given: argparse.Namespace, job: ShardJob, description: Description) -> list[str]:
    """Return what a job would do, a line each."""
    shards, count = job.shards, len(job.shards)
    lines = [f"reads   {shards.path}: {counted(shards.total, 'transition')} in {counted(count, 'shard')}"]
    for number in range(min(count, 3)):
        names = (shards.files[number], shards.files[donor_shard(job.seed, number, count)])
        lines.append(f"        {names[0]}, with donors from itself and {names[1]}")
    lines += [f"        and {count - 3:,} more"] if count > 3 else []
    lines += arguments.called(description)
    made = counted(wanted(shards, job.ratio), "counterfactual")
    lines.append(f"writes  {job.out}: {counted(shards.total, 'real transition')} and {made}")
    if given.report is not None:
        lines.append(f"writes  {given.report}: the report")
    return [*lines, "nothing was run or written"]
