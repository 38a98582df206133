"""When to give up making counterfactuals, and what to say then."""

from counterpoint.core.arrays import listed
from counterpoint.core.engine import Funnel, Sources

PATIENCE = 1_000_000  # proposals after which a hopeless acceptance ends the search
HOPELESS = 1e-4


def hopeless(funnel: Funnel) -> bool:
    """Say whether so much was tried, and so little accepted, that going on is of no use."""
    return funnel.proposals >= PATIENCE and funnel.accepted < HOPELESS * funnel.proposals


def why_too_few(funnel: Funnel, size: int, sources: Sources) -> str:
    """Explain in words why so many rows could not be made."""
    recipe = sources.recipe
    made = f"size: {size:,} counterfactuals were asked for, {funnel.accepted:,} could be made. "
    tried = funnel.rejected + funnel.accepted
    if len(sources.windows) < 2 or sources.entangled:
        noun = "transitions" if recipe.window == 1 else "windows"
        return made + (
            f"A swap needs two {noun}, and the data holds one."
            if len(sources.windows) < 2
            else "Every mask is one component: nothing can be swapped. If factors are really independent at "
            "times, the mask has too many edges; raise its threshold or shrink its radius."
        )
    if recipe.static is not None and funnel.surplus > funnel.rejected:
        names = listed([name for name, still in zip(recipe.factors.names, recipe.static.nodes, strict=True) if still])
        return made + (
            f"{funnel.surplus:,} more would exchange nothing but {names}, which never change. Raise static_share "
            f"above {recipe.static.share:g}; 1.0 is pure relabelling."
        )
    if not tried and recipe.factors.context and funnel.pairs <= len(sources.windows):
        return made + f"No two transitions agree on the context {', '.join(recipe.factors.context)}."
    if not tried:
        return made + (
            f"None of {funnel.pairs:,} pairs had anything to exchange: overlaid, their graphs are one component, "
            "or the parents agree on all that could be swapped."
        )
    if hopeless(funnel):
        return made + (
            f"{funnel.rejected:,} of {tried:,} proposals were rejected, because an edge of the proposal's own mask "
            "crosses the swapped set. With many factors, policy=Sparse() swaps fewer at a time."
        )
    return made + (
        f"All {funnel.pairs:,} pairs have been tried, with at most {recipe.samples_per_pair} samples each; "
        f"{funnel.rejected:,} proposals were rejected. Raise samples_per_pair, or bring more data."
    )
