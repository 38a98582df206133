"""What learns from transitions and can be stored: settings, what they learned, and one file of both."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from counterpoint.core.factors import Factorization
from counterpoint.files.recording import FileProblem
from counterpoint.learn.training import storage

Known = TypeVar("Known")


@dataclass(frozen=True, kw_only=True)
class Storable(ABC, Generic[Known]):
    """Settings and, after ``fit``, what they learned.

    Attributes:
        fitted: None, or what ``fit`` learned.
    """

    fitted: Known | None = field(default=None, repr=False, compare=False)

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """Return what a file holds beside name and settings: factors, scaling, history and weights."""

    @abstractmethod
    def restored(self, record: storage.Record) -> Known:
        """Return what was learned, from a record that nobody has checked yet."""

    def learned(self) -> Known:
        """Return what ``fit`` learned, or raise."""
        if self.fitted is None:
            raise ValueError(
                f"{type(self).__name__}: it has learned nothing yet. fit returns a new estimator: "
                "estimator = estimator.fit(data, factors, rng=rng)."
            )
        return self.fitted

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write settings, factors and weights to one safetensors file, whole or not at all.

        Args:
            path: the file.
            force: replace one that is there.
        """
        contents = self.contents()
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "fitted"}
        storage.write(path, storage.Record(name=type(self).__name__, settings=settings, **contents), force=force)

    @classmethod
    def load(cls, path: str | Path, *, factors: Factorization | None = None) -> Self:
        """Read an estimator of this class that ``save`` wrote.

        Args:
            path: the file.
            factors: the factorisation you are going to use it with; refuse a file of another one.
        """
        return cls.from_record(storage.read(path, factors=factors), path)

    @classmethod
    def from_record(cls, record: storage.Record, path: str | Path) -> Self:
        """Rebuild an estimator from what was stored at ``path``."""
        if record.name != cls.__name__:
            raise FileProblem(
                f"{path}: expected a {cls.__name__}, it holds a {record.name}. Use counterpoint.learn.load."
            )
        try:
            estimator = cls(**record.settings)
            fitted = estimator.restored(record)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
            why = " ".join(str(error).split("\n\t")[:2])
            raise FileProblem(f"{path}: its settings or weights do not make a {cls.__name__}: {why}") from error
        return replace(estimator, fitted=fitted)
