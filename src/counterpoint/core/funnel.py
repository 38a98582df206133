"""What became of the proposals of an augmentation, in numbers."""

from dataclasses import dataclass, fields

RARE = ("static", "surplus", "ended")  # told only if there are any


@dataclass(frozen=True)
class Funnel:
    """What became of the proposals: ``proposals = trivial + duplicate + rejected + surplus + ended + accepted``."""

    pairs: int = 0  # pairs of transitions looked at
    proposals: int = 0
    trivial: int = 0  # nothing to exchange: one shared component only, or a transition paired with itself
    duplicate: int = 0  # would repeat another row, because both parents agree on what is swapped
    rejected: int = 0  # an edge of the proposal's own mask crosses the swapped set
    accepted: int = 0
    no_evidence: int = 0  # of the rejected: no recording is like them, and nothing else is against them
    static: int = 0  # of the accepted: they exchange nothing but what never changes, such as a goal
    surplus: int = 0  # valid, but static beyond their share
    ended: int = 0  # windows that are valid, but terminal before their last row

    def __add__(self, other: "Funnel") -> "Funnel":
        return Funnel(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def acceptance(self) -> float:
        """Share of the proposals that were accepted, among those that had something to exchange.

        Swaps of what never changes are accepted whatever the mask says of the rest. They count only where
        there are no others.
        """
        return (self.tried - self.rejected) / self.tried if self.tried else 0.0

    @property
    def tried(self) -> int:
        """How many proposals the acceptance speaks of."""
        return self.rejected + (self.accepted - self.static or self.accepted)

    def __str__(self) -> str:
        counts = {f.name: getattr(self, f.name) for f in fields(self)}
        shown = {name: count for name, count in counts.items() if count or name not in RARE}
        return "\n".join(f"{name.replace('_', ' '):<12}{count:>12,}" for name, count in shown.items())
