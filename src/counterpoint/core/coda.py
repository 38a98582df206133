"""Algorithm 1 of the paper, for a whole batch of pairs at once."""

import numpy as np

from counterpoint.core import kernels
from counterpoint.core.arrays import Array, Bools, Ints, NodeSet, words
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import UnionPolicy, components, independent, random_union
from counterpoint.core.protocols import DeriveFn, Mask, call_derive, call_mask
from counterpoint.core.provenance import Provenance
from counterpoint.core.threads import run
from counterpoint.core.transitions import ORIGINS, Transitions


def coda(
    base: Transitions,
    donor: Transitions,
    mask_fn: Mask,
    factors: Factorization,
    *,
    rng: np.random.Generator,
    derive: DeriveFn | None = None,
) -> tuple[Transitions, NodeSet, Bools]:
    """Propose one counterfactual for each pair of rows and validate it (paper, Algorithm 1).

    Args:
        base: the transitions t1.
        donor: the transitions t2, as many.
        mask_fn: ``(state, action) -> bool (B, N, n)``.
        factors: how columns split into factors.
        rng: source of randomness.
        derive: recomputes derived columns, if the factorisation has any.

    Returns:
        The proposals, the swapped node sets d (B, N), and which proposals are valid (B,). Rewards of
        proposals are NaN: they are to be relabelled, never copied. Where the parents have nothing that
        can be swapped, or do not agree on the context, d is empty and the proposal is not valid.
    """
    m1, m2 = call_mask(mask_fn, base, factors), call_mask(mask_fn, donor, factors)
    proposal, d = propose(base, donor, m1 | m2, factors, rng=rng, derive=derive)
    valid = independent(call_mask(mask_fn, proposal, factors), d)  # d ∈ D̃
    return proposal, d, valid & d.any(axis=1)


def propose(
    base: Transitions,
    donor: Transitions,
    overlaid: Bools,
    factors: Factorization,
    *,
    rng: np.random.Generator,
    policy: UnionPolicy | None = None,
    derive: DeriveFn | None = None,
) -> tuple[Transitions, NodeSet]:
    """Propose one counterfactual for each pair of rows: Algorithm 1 up to its test.

    This is where a round of Algorithm 1 is written. The engine does the same at speed, and leaves out
    what would repeat a real row.

    Args:
        base: the transitions t1.
        donor: the transitions t2, as many.
        overlaid: bool (B, N, n), the masks of each pair overlaid, ``m1 | m2``. With fewer of them than rows, each is
            that of two windows of consecutive rows, which exchange the same nodes at every step.
        factors: how columns split into factors.
        rng: source of randomness.
        policy: which unions of components may be swapped; ``Uniform()`` unless told otherwise.
        derive: recomputes derived columns, if the factorisation has any.

    Returns:
        The proposals and the swapped node sets d (B, N). A set is empty where the parents have nothing
        to exchange or do not agree on the context.
    """
    if len(base) != len(donor):
        raise ValueError(f"donor: expected as many rows as base, {len(base)}, got {len(donor)}.")
    context = factors.nodes(*factors.context)  # agrees in both parents, so its edges tie nothing together
    labels = components(overlaid & ~context[:, None])
    d = random_union(labels, rng, policy, fixed=context)  # D1 ∩ D2: unions of components of the overlaid graph
    length = len(base) // max(1, len(d))
    agree = (base.state == donor.state)[:, factors.context_columns].reshape(len(d), -1).all(axis=1)
    d = (d & agree[:, None]).repeat(length, axis=0)
    return derived(swap(base, donor, d, factors), factors, derive), d


def swap(base: Transitions, donor: Transitions, nodes: NodeSet, factors: Factorization) -> Transitions:
    """Copy the base's rows and overwrite the factors in ``nodes`` by the donor's.

    Every value is bit-identical to one of its two sources. Three things belong to no source: the reward
    is NaN and ``terminated`` false until they are relabelled, and derived columns are NaN until they
    are recomputed. The row is part of no episode. Noise is swapped where the factorisation says who
    owns it, and dropped otherwise.

    Args:
        base: transitions, B rows.
        donor: transitions, B rows.
        nodes: bool (B, N) or (N,).
        factors: how columns split into factors.
    """
    factors.require_widths(base.state.shape[1], base.action.shape[1])
    shape = (len(base), factors.n + factors.m)
    nodes = np.asarray(nodes)
    if len(base) != len(donor):
        raise ValueError(f"donor: expected as many rows as base, {len(base)}, got {len(donor)}.")
    if nodes.dtype != np.bool_ or nodes.shape not in (shape, shape[1:]):
        raise ValueError(f"nodes: expected booleans of shape {shape}, got {nodes.dtype} {nodes.shape}.")
    rows = np.arange(len(base))
    nodes = np.ascontiguousarray(np.broadcast_to(nodes, shape))
    return mixed(Transitions.concat(base, donor), Provenance(rows, rows + len(base), nodes), factors)


def mixed(data: Transitions, parents: Provenance, factors: Factorization) -> Transitions:
    """Swap between rows of one batch, unchecked: row ``base[r]`` receives ``swapped[r]`` of row ``donor[r]``."""
    rows = len(parents)

    def column(values: Array, owner: Ints) -> Array:
        out = np.empty((rows, values.shape[1]), values.dtype)
        owner = np.maximum(owner, 0)  # derived columns are overwritten below
        run(kernels.mix, rows, *parents.arrays(), words(values), owner, words(out))
        return out

    state, next_state = column(data.state, factors.state_owner), column(data.next_state, factors.state_owner)
    for values in (state, next_state):
        if factors.derived:
            values[:, list(factors.derived)] = np.nan
    noisy = data.noise is not None and data.noise.shape[1] == factors.noise_width
    return Transitions.trusted(
        state=state,
        action=column(data.action, factors.action_owner),
        reward=np.full(rows, np.nan, data.reward.dtype),
        next_state=next_state,
        terminated=np.zeros(rows, np.bool_),
        noise=column(data.noise, factors.noise_owner) if noisy and data.noise is not None else None,
        origin=None if data.origin is None else np.full(rows, ORIGINS.index("counterfactual"), data.origin.dtype),
    )


def derived(proposal: Transitions, factors: Factorization, derive: DeriveFn | None) -> Transitions:
    """Recompute the derived columns of freshly swapped rows, in place."""
    require_derive(factors, derive)
    if derive is not None:
        for state in (proposal.state, proposal.next_state):
            state[:, list(factors.derived)] = call_derive(derive, state, factors)
    return proposal


def require_derive(factors: Factorization, derive: DeriveFn | None) -> None:
    """Raise unless there is a function for the derived columns, if there are any."""
    if factors.derived and not callable(derive):
        raise (ValueError if derive is None else TypeError)(
            f"derive: the factorisation declares derived columns {factors.derived}, so a function that "
            "recomputes them after a swap is needed: derive(state) -> (B, derived)."
        )


def require_derived(data: Transitions, factors: Factorization, derive: DeriveFn | None) -> None:
    """Raise unless ``derive`` reproduces the derived columns of real data; it never sees them."""
    if not factors.derived:
        return
    columns = list(factors.derived)
    for name in ("state", "next_state"):
        real = getattr(data, name)
        blind = real.copy()
        if blind.dtype.kind != "f":
            raise TypeError(f"{name}: derived columns need floats, got dtype {blind.dtype}.")
        blind[:, columns] = np.nan
        made = derived(Transitions.trusted(state=blind, next_state=blind), factors, derive).state
        error = np.abs(made[:, columns] - real[:, columns]) / np.maximum(1.0, np.abs(real[:, columns]))
        worst = np.nan_to_num(error, nan=np.inf).max(axis=0, initial=0.0)
        if worst.max() > 1e-4:
            column = factors.columns["state"][columns[int(worst.argmax())]]
            raise ValueError(
                f"derive: it does not reproduce the real data. Worst is {column} of {name}, off by "
                f"{worst.max():.3g} relative to max(1, |value|). It must be computed from the factors' own "
                "columns alone; the derived columns it is given are NaN."
            )
