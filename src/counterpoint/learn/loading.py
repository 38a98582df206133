"""Reading any estimator back: the one place that knows them all."""

from pathlib import Path

from counterpoint.core.arrays import listed
from counterpoint.core.factors import Factorization
from counterpoint.learn import storage
from counterpoint.learn.estimator import NetworkEstimator
from counterpoint.learn.gradient import InputGradient
from counterpoint.learn.influence import ActionInfluence
from counterpoint.learn.masked import MaskedLikelihood
from counterpoint.learn.residual import ResidualAttribution
from counterpoint.learn.sandy_mixture import SandyMixture
from counterpoint.learn.sandy_transformer import SandyTransformer

# Files name one of these classes; nothing else is ever looked up or imported for them.
_KINDS: tuple[type[NetworkEstimator], ...] = (
    SandyMixture,
    SandyTransformer,
    MaskedLikelihood,
    ResidualAttribution,
    InputGradient,
    ActionInfluence,
)
ESTIMATORS = {kind.__name__: kind for kind in _KINDS}


def load(path: str | Path, *, factors: Factorization | None = None) -> NetworkEstimator:
    """Read an estimator that ``save`` wrote, whichever kind it is.

    Args:
        path: the file.
        factors: the factorisation you are going to use it with; refuse a file of another one.
    """
    record = storage.read(path, factors=factors)
    if record.name not in ESTIMATORS:
        raise ValueError(f"{path}: it holds a {record.name!r}; the estimators are {listed(list(ESTIMATORS))}.")
    return ESTIMATORS[record.name].from_record(record, path)
