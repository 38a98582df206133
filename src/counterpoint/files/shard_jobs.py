"""The job around `augment_shard`: every shard of a dataset once, on any engine.

The shards are written into ``OUT.parts``, each with an entry that has its checksum. When all are there, a manifest is
added and the folder gets its name, so that it is complete or not there. Whoever made a shard, and how often it was
tried, leaves no trace in the bytes.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from pathlib import Path
from typing import Any, Protocol

from counterpoint.core.arrays import listed
from counterpoint.core.augment import Augmenter
from counterpoint.core.funnel import Funnel
from counterpoint.files import fingerprints
from counterpoint.files.apart import require_apart
from counterpoint.files.augmentation import Check
from counterpoint.files.job_folder import JOB, OWNER, JobFolder, identity, require_same
from counterpoint.files.jobs import Augmented
from counterpoint.files.locks import PARTIAL, sweep
from counterpoint.files.manifest import ENTRY, Shard, read_manifest, remember, remembered, write_manifest
from counterpoint.files.output import exists, problem, synced
from counterpoint.files.pool import Pool
from counterpoint.files.recording import FileProblem
from counterpoint.files.sampling import task_check
from counterpoint.files.sharding import shard_plan, wanted, write_shard
from counterpoint.files.shards import MANIFEST, Shards
from counterpoint.progress import Progress


class Engine(Protocol):
    """Calls a function with each of some numbers, anywhere, and yields what comes back, in any order."""

    def __call__(self, task: Callable[[int], Shard], numbers: Sequence[int], /) -> Iterator[Shard]:
        """Iterate over the results; raise what a call raised."""
        ...


@dataclass(frozen=True)
class ShardJob:
    """All that decides the bytes of an augmented dataset, in plain values, so that any process can take part.

    Attributes:
        shards: the dataset.
        make: returns the augmenter. It must be picklable and hashable, such as a function of a module: each worker
            calls it once.
        out: the folder to write.
        ratio: counterfactuals for each real row.
        seed: of all randomness.
        checked: what to compare with the real rows first: ``"reward"``, ``"terminal"``, both or neither.
    """

    shards: Shards
    make: Callable[[], Augmenter]
    out: str
    ratio: float | Fraction
    seed: int = 0
    checked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", os.path.normpath(self.out))
        wanted(self.shards, self.ratio)
        names = [self.name(number) for number in range(len(self.shards))]
        twice = sorted({name for name in names if names.count(name) > 1}) if len({*names}) < len(names) else []
        if twice:
            raise FileProblem(f"{self.shards.path}: two of its files would be written as {twice[0]}. Rename one.")
        require_apart({"the output": self.folder}, {"the data": Path(self.shards.path)})
        require_apart({"the output": Path(self.out)}, {"the data": Path(self.shards.path)})

    @property
    def folder(self) -> Path:
        """Where the shards are until all of them are complete."""
        return Path(self.out + ".parts")

    def name(self, number: int) -> str:
        """Return the name of a shard's output."""
        return Path(self.shards.files[number]).stem + ".parquet"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What tells this job apart from any other, as JSON values."""
        files = [[os.path.basename(file), fingerprints.of_file(file)] for file in self.shards.files]
        about = {"seed": self.seed, "keys": self.shards.keys, "ratio": str(Fraction(self.ratio)), "data": files}
        return identity(loaded(self.make), **about, path=self.shards.path, without=self.shards.without)

    def made(self, number: int, job: str) -> Shard:
        """Make one shard, and leave an entry that says so."""
        augmenter, file = loaded(self.make), self.shards.files[number]
        try:
            plan, donors = shard_plan(self.shards, augmenter, ratio=self.ratio, number=number, seed=self.seed)
            check: Check | None = task_check(augmenter, self.checked) if self.checked else None
            shard = write_shard(self.shards, plan, self.folder / self.name(number), number, donors, check=check)
        except ValueError as error:
            if str(error).startswith(file):
                raise
            raise ValueError(f"{file}: {error}") from error
        remember(self.folder, shard, job)
        return shard


@dataclass(frozen=True)
class ShardTask:
    """Makes a shard of a job when it is called with its number."""

    job: ShardJob
    digest: str

    def __call__(self, number: int) -> Shard:
        """Make the shard."""
        return self.job.made(number, self.digest)


@lru_cache(maxsize=1)
def loaded(make: Callable[[], Augmenter]) -> Augmenter:
    """Return the augmenter of a job; what it takes to make it, such as a learned mask, is loaded once per process."""
    return make()


def augment_shards(
    job: ShardJob,
    *,
    engine: Engine | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Augmented:
    """Add counterfactual transitions to every shard of a dataset.

    Args:
        job: what to make.
        engine: where to make it; `Pool`, processes on this machine, by default.
        resume: go on with the same job where it was interrupted. Shards that are there, checksum and all, are kept.
        force: replace an output that an earlier job wrote, and start over if there is an unfinished job.
        progress: called with the number of rows written so far, after each shard.

    Raises:
        FileProblem: if a file cannot be read or written, or another process works on the same output.
        ValueError: if the job cannot be done; the message says why.
    """
    out = Path(job.out)
    if os.path.lexists(out):
        complete = _complete(job, out, resume=resume, force=force)
        if complete is not None:
            return _result(job, complete)
    with _opened(job, resume=resume, force=force) as folder:
        done = {number: shard for number in range(len(job.shards)) if (shard := folder.finished(job, number))}
        missing = [number for number in range(len(job.shards)) if number not in done]
        for shard in (engine or Pool())(ShardTask(job, folder.digest), missing):
            done[shard.number] = shard
            if progress is not None:
                progress(sum(each.real + each.counterfactuals for each in done.values()))
        shards = [done[number] for number in range(len(job.shards))]
        folder.publish(out, shards, {"source": job.shards.path, "seed": job.seed, "ratio": float(job.ratio)})
    return _result(job, shards)


def augment_one(job: ShardJob, number: int) -> Shard:
    """Make a single shard of a job, beside others that do the same; `augment_shards` with ``resume`` ends the job."""
    job.shards.require_number("number", number)
    if os.path.lexists(job.out):
        raise exists(Path(job.out))
    folder = _ShardFolder(job.folder, job.identity, resume=True, shared=True)
    with folder.kept():
        return ShardTask(job, folder.digest)(number)


class _ShardFolder(JobFolder):
    """The folder of a job that writes shards."""

    def finished(self, job: ShardJob, number: int) -> Shard | None:
        """Return a shard if it is there, complete and undamaged."""
        name = job.name(number)
        known = remembered(self.folder, self.digest, number, name) or self._published.get(name)
        return known if known is not None and known.number == number and known.is_at(self.folder) else None

    @cached_property
    def _published(self) -> dict[str, Shard]:
        """What a manifest says, if the folder was complete once."""
        if not (self.folder / MANIFEST).exists():
            return {}
        return {shard.file: shard for shard in read_manifest(self.folder)}

    def publish(self, out: Path, shards: list[Shard], about: dict[str, Any]) -> None:
        """Add the manifest, and give the folder its name."""
        for shard in shards:
            if (self.folder / shard.file).stat().st_size != shard.bytes:
                raise FileProblem(f"{self.folder / shard.file}: it has changed since it was written. Run it again.")
        write_manifest(self.folder, shards, **about)
        (self.folder / OWNER).unlink(missing_ok=True)
        aside = out.with_name(f".{out.name}.{secrets.token_hex(4)}{PARTIAL}")
        try:
            if out.exists():
                os.rename(out, aside)
            os.rename(self.folder, out)
        except OSError as error:
            raise problem(out, error) from error
        synced(out.parent)
        shutil.rmtree(aside, ignore_errors=True)
        sweep(out.parent, out.name)

    @contextmanager
    def kept(self) -> Iterator["_ShardFolder"]:
        """Work in the folder, which stays, and then let go of it."""
        with self._stack:
            yield self


@contextmanager
def _opened(job: ShardJob, *, resume: bool, force: bool) -> Iterator[_ShardFolder]:
    """Open the folder of a job. If the job fails, what is finished stays there; if nothing is, nothing stays."""
    folder = _ShardFolder(job.folder, job.identity, resume=resume, force=force)
    with folder.kept():
        try:
            yield folder
        finally:
            for late in job.folder.glob(f".*{PARTIAL}"):
                late.unlink(missing_ok=True)
            if job.folder.is_dir() and not any(job.folder.glob(f"*{ENTRY}")) and not (job.folder / MANIFEST).exists():
                folder.remove()


def _complete(job: ShardJob, out: Path, *, resume: bool, force: bool) -> list[Shard] | None:
    """Return the shards of an output that is there, if they are all right; make way for a job that mends them."""
    if out.is_symlink() or not out.is_dir() or not ((out / MANIFEST).exists() or not any(out.iterdir())):
        raise FileProblem(f"{out}: this is in the way, and `augment` has not written it. Choose another name.")
    if not any(out.iterdir()):
        out.rmdir()
        return None
    if not resume:
        if not force:
            raise exists(out)
        _require_ours(out)
        return None
    require_same(out, job.identity)
    there = {shard.number: shard for shard in read_manifest(out)}
    if set(there) == set(range(len(job.shards))) and all(shard.is_at(out) for shard in there.values()):
        return [there[number] for number in sorted(there)]
    if job.folder.exists():
        raise FileProblem(f"{job.folder}: an unfinished job is in the way of mending {out}. Move or remove it.")
    os.rename(out, job.folder)
    return None


def _require_ours(out: Path) -> None:
    """Raise if a folder that is to be replaced holds something that no job puts there."""
    others = [name for name in os.listdir(out) if name not in (MANIFEST, JOB) and not name.endswith(".parquet")]
    if others:
        raise FileProblem(f"{out}: it also holds {listed(sorted(others))}, which would be lost. Move that first.")


def _result(job: ShardJob, shards: list[Shard]) -> Augmented:
    funnel = reduce(Funnel.__add__, (shard.funnel for shard in shards))
    return Augmented(job.out, job.shards.total, sum(shard.counterfactuals for shard in shards), funnel, len(shards))
