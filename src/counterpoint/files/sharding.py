"""Augmenting one shard of a dataset: a pure function of the dataset, the seed and the shard's number.

Which worker makes a shard, when, and after how many failures, makes no difference to its bytes. So any engine that can
call a function with a number can augment a dataset: `counterpoint.files.shard_jobs` has the job around it.
"""

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from counterpoint.core.augment import Augmenter
from counterpoint.core.require import require_count
from counterpoint.files.augmentation import Check, Plan, augmented, head_of, written
from counterpoint.files.donors import Among
from counterpoint.files.manifest import Shard, digest
from counterpoint.files.recording import FileProblem
from counterpoint.files.shards import Shards, shards_of
from counterpoint.files.writing import writer


def augment_shard(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Shards,
    output: str | os.PathLike[str],
    *,
    augmenter: Augmenter,
    ratio: float | Fraction,
    number: int,
    seed: int = 0,
    donors: int | None = None,
) -> Shard:
    """Add counterfactual transitions to one shard of a dataset, in bounded memory.

    The base of a counterfactual is a row of this shard. Its donor is a row of this shard or of a second one, which the
    seed chooses: the seed puts all shards into a circle, and each takes donors from the next. So partners come from
    anywhere in one pass. ``base`` and ``donor`` count the rows of the whole dataset. The same arguments give the same
    bytes.

    Args:
        inputs: the dataset: a folder of files, a list of files, or what `shards_of` returned.
        output: the file to write, replaced if it exists; its suffix chooses the format.
        augmenter: makes the counterfactuals.
        ratio: counterfactuals for each real row of the dataset; the shard makes its share.
        number: which shard, counted from 0.
        seed: of all randomness, for the whole dataset. The shard's own follows from it and the number.
        donors: the number of the shard that gives donors, if the seed is not to choose it; ``number`` itself for none.

    Raises:
        FileProblem: if a file cannot be read or written; an old output is untouched.
        ValueError: if the shard cannot be augmented; the message says why.
    """
    shards = shards_of(inputs)
    plan, second = shard_plan(shards, augmenter, ratio=ratio, number=number, seed=seed, donors=donors)
    return write_shard(shards, plan, Path(output), number, second)


def write_shard(
    shards: Shards, plan: Plan, place: Path, number: int, donors: int, *, check: Check | None = None
) -> Shard:
    """Write the shard that is planned; ``check`` is given its real rows before anything is made of them."""
    head = head_of(plan, shards.path, shards.total, shard=number)
    with writer(place, head, force=True) as file:
        funnel = written(augmented(plan, check=check), file)
    return Shard(
        file=place.name,
        number=number,
        source=os.path.basename(shards.files[number]),
        donors=os.path.basename(shards.files[donors]),
        first_row=shards.first(number),
        real=plan.source.rows,
        counterfactuals=plan.size - plan.source.rows,
        seed=plan.seed,
        funnel=funnel,
        bytes=place.stat().st_size,
        sha256=digest(place),
    )


def shard_plan(
    shards: Shards,
    augmenter: Augmenter,
    *,
    ratio: float | Fraction,
    number: int,
    seed: int = 0,
    donors: int | None = None,
) -> tuple[Plan, int]:
    """Return what a shard is made of, and the number of the shard that gives it donors."""
    require_count("seed", seed, least=0)
    shards.require_number("number", number)
    second = donor_shard(seed, number, len(shards)) if donors is None else donors
    shards.require_number("donors", second)
    own, first = shards.rows[number], shards.first(number)
    windows = wanted(shards, ratio) // augmenter.window
    made = windows * (first + own) // shards.total - windows * first // shards.total
    among = Among(first)
    if second != number:
        among = Among(first, shards.scan(second), shards.first(second))
    source = shards.scan(number)
    if source.rows != own:
        raise FileProblem(f"{source.path}: it had {own:,} rows when the job began, and has {source.rows:,} now.")
    return Plan(source, augmenter, own + made * augmenter.window, shard_seed(seed, number), among=among), second


def wanted(shards: Shards, ratio: float | Fraction) -> int:
    """Return how many counterfactuals all shards together shall have."""
    if not 0 < ratio < float("inf"):
        raise ValueError(f"ratio: expected a positive number, got {ratio}.")
    return round(ratio * shards.total)


def shard_seed(seed: int, number: int) -> int:
    """Return the seed of a shard, which follows from that of the dataset and the shard's number."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0]) >> 11  # exact in any JSON reader


def donor_shard(seed: int, number: int, count: int) -> int:
    """Return which of so many shards gives donors to another: the next in a circle of all shards.

    Example:
        >>> sorted(donor_shard(7, number, 5) for number in range(5)), donor_shard(7, 0, 1)
        ([0, 1, 2, 3, 4], 0)
    """
    circle = np.random.default_rng(seed).permutation(count)
    place = int(np.flatnonzero(circle == number)[0])
    return int(circle[(place + 1) % count])
