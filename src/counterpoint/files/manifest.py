"""What a job says of the shards that it wrote: which, from what, with which seed, and what their bytes add up to.

While a job runs, every finished shard has an entry of its own beside it, written by whoever made the shard. In the end
they become the manifest. An entry that is damaged, forged or of another job is worth nothing: its shard is made again.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from counterpoint.core.funnel import Funnel
from counterpoint.files.output import output
from counterpoint.files.recording import FileProblem
from counterpoint.files.shards import MANIFEST, manifest_text

VERSION = 1
ENTRY = ".shard.json"  # behind the name of a shard


@dataclass(frozen=True)
class Shard:
    """A shard that has been written."""

    file: str  # its name in the folder
    number: int  # of all shards, from 0
    source: str  # the file that its real rows are from
    donors: str  # the file whose rows are donors too; the source itself if there is no other
    first_row: int  # the number of its first real row, counted through all shards of the source
    real: int  # rows that were there
    counterfactuals: int  # rows that were added
    seed: int
    funnel: Funnel
    bytes: int
    sha256: str

    def is_at(self, folder: Path) -> bool:
        """Say whether the shard is in a folder, with these very bytes."""
        place = folder / self.file
        try:
            return place.stat().st_size == self.bytes and digest(place) == self.sha256
        except OSError:
            return False


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, as ``sha256sum`` prints it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remember(folder: Path, shard: Shard, job: str) -> None:
    """Write the entry of a shard that is complete; ``job`` tells jobs apart."""
    with output(folder / (shard.file + ENTRY), force=True) as file:
        file.write(json.dumps({"job": job, **asdict(shard)}).encode())


def remembered(folder: Path, job: str, number: int, name: str) -> Shard | None:
    """Return the entry of a shard if it is one of this job; its file may be gone or damaged all the same."""
    try:
        found = json.loads((folder / (name + ENTRY)).read_text(encoding="utf-8"))
        if found.pop("job") != job:
            return None
        shard = _shard(found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return shard if (shard.number, shard.file) == (number, name) else None


def write_manifest(folder: Path, shards: list[Shard], **about: Any) -> None:
    """Put the entries of all shards together, and remove them."""
    text = json.dumps({"version": VERSION, **about, "shards": [asdict(shard) for shard in shards]}, indent=1)
    with output(folder / MANIFEST, force=True) as file:
        file.write(text.encode() + b"\n")
    for shard in shards:
        (folder / (shard.file + ENTRY)).unlink(missing_ok=True)


def read_manifest(folder: Path) -> list[Shard]:
    """Read the manifest of a folder that a job wrote.

    Raises:
        FileProblem: if there is none, or it is damaged.
    """
    try:
        found = json.loads(manifest_text(folder))
        if found["version"] != VERSION:
            raise ValueError(f"version {found['version']!r:.80}")
        return [_shard(shard) for shard in found["shards"]]
    except FileNotFoundError:
        raise FileProblem(f"{folder}: there is no {MANIFEST} in it, so no `augment` wrote it.") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileProblem(f"{folder}: its {MANIFEST} is damaged ({error}). Start over with --force.") from error


def _shard(found: dict[str, Any]) -> Shard:
    """Build an entry from JSON values; raise ``ValueError`` or ``TypeError`` unless they are right."""
    shard = Shard(**{**found, "funnel": Funnel(**found["funnel"])})
    kinds = {field.name: field.type for field in fields(shard)}
    for name, value in vars(shard).items():
        if kinds[name] in (int, str) and (type(value) is not kinds[name] or (kinds[name] is int and value < 0)):
            raise ValueError(f"{name} is {value!r:.80}")
    if Path(shard.file).name != shard.file or not all(type(count) is int for count in vars(shard.funnel).values()):
        raise ValueError("a file outside of the folder, or a funnel that is none")
    return shard
