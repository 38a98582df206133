"""Reading any estimator back: the one place that knows them all."""

from pathlib import Path

from counterpoint.core.arrays import listed
from counterpoint.core.factors import Factorization
from counterpoint.files.recording import FileProblem
from counterpoint.learn.estimators.action_influence import ActionInfluence
from counterpoint.learn.estimators.distilled_likelihood import DistilledLikelihood
from counterpoint.learn.estimators.estimator import NetworkEstimator
from counterpoint.learn.estimators.input_gradient import InputGradient
from counterpoint.learn.estimators.masked_likelihood import MaskedLikelihood
from counterpoint.learn.estimators.residual_attribution import ResidualAttribution
from counterpoint.learn.estimators.sandy_mixture import SandyMixture
from counterpoint.learn.estimators.sandy_transformer import SandyTransformer
from counterpoint.learn.estimators.tree_attribution import TreeAttribution
from counterpoint.learn.training import storage

# Files name one of these classes; nothing else is ever looked up or imported for them.
_KINDS: tuple[type[NetworkEstimator] | type[TreeAttribution], ...] = (
    SandyMixture,
    SandyTransformer,
    MaskedLikelihood,
    DistilledLikelihood,
    ResidualAttribution,
    InputGradient,
    ActionInfluence,
    TreeAttribution,
)
ESTIMATORS = {kind.__name__: kind for kind in _KINDS}


def load(path: str | Path, *, factors: Factorization | None = None) -> NetworkEstimator | TreeAttribution:
    """Read an estimator that ``save`` wrote, whichever kind it is.

    Args:
        path: the file.
        factors: the factorisation you are going to use it with; refuse a file of another one.
    """
    record = storage.read(path, factors=factors)
    if record.name not in ESTIMATORS:
        raise FileProblem(f"{path}: it holds a {record.name!r}; the estimators are {listed(list(ESTIMATORS))}.")
    return ESTIMATORS[record.name].from_record(record, path)
