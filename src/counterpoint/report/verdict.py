"""From evidence to a verdict in plain words, never more certain than the evidence."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from counterpoint.checks import Audit
from counterpoint.core.arrays import counted
from counterpoint.report.distributions import noise_gap
from counterpoint.report.facts import Facts
from counterpoint.report.markup import number, share

CONFIRMED, WRONG = 0.999, 0.95  # confirmed shares above which the audit is green, and below which it is red
SURE = 0.99  # what a sample of audited rows must make likely, to be green
LOW_ACCEPTANCE = 0.01
MOSTLY = 0.5  # share of the counterfactuals that may exchange nothing but what never changes
FEW_DONORS = 30
HEAVY = 0.05  # share of the counterfactuals that a single row may have a part in
SHRUNK = 0.5  # interactions may become rarer by this factor
MOVED = 0.1  # gap between distribution functions from which on a feature has moved


class Level(IntEnum):
    """The traffic light; the worst finding decides."""

    GREEN = 0
    AMBER = 1
    RED = 2


@dataclass(frozen=True)
class Remark:
    """One piece of evidence and what it says."""

    level: Level
    topic: str
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """The answer to "can I trust this data?"."""

    level: Level
    headline: str
    findings: tuple[Remark, ...]


def judge(facts: Facts) -> Verdict:
    """Weigh the evidence. Without a simulator the verdict is amber at best."""
    if not len(facts.made):
        nothing = Remark(Level.RED, "Yield", "No counterfactual was accepted, so there is nothing to trust or to use.")
        return Verdict(Level.RED, "Nothing was made.", (nothing,))
    findings = (
        _simulator(facts),
        *_recordings(facts),
        _yield(facts),
        _parents(facts),
        _selection(facts),
        _rewards(facts),
        _shift(facts),
    )
    level = max(finding.level for finding in findings)
    return Verdict(level, _headline(level, facts.audit is not None, findings[0].level), findings)


def _headline(level: Level, audited: bool, simulator: Level) -> str:
    if level == Level.RED:
        who = "the simulator contradicts" if simulator == Level.RED else "the recordings contradict"
        return f"Do not train on this: {who} too much of it."
    if not audited:
        return "Plausible, not proven: nothing but the mask vouches for this data."
    if simulator == Level.AMBER:
        return "Mostly confirmed by the simulator; look at what it contradicts."
    if level == Level.AMBER:
        return "The simulator agrees, but there is something to watch."
    return "Confirmed by the simulator, and nothing else stands out."


def lower_bound(audit: Audit, made: int) -> float:
    """Return the share of all counterfactuals that is surely confirmed.

    If all were audited it is the share itself, else the lower end of Wilson's 95% interval. Static swaps do not count.
    """
    rows, p, z = len(audit.moving.error), audit.confirmed, 1.96
    if rows >= made or not rows:
        return p
    middle, width = p + z * z / (2 * rows), z * np.sqrt(p * (1 - p) / rows + z * z / (4 * rows * rows))
    return float(np.clip((middle - width) / (1 + z * z / rows), 0.0, p))


def _simulator(facts: Facts) -> Remark:
    audit, still = facts.audit, facts.made.static
    made = len(still) if still.all() else int((~still).sum())  # static ones count only where there are no others
    if audit is None or not len(audit.error):
        return Remark(
            Level.AMBER,
            "Simulator",
            "No simulator was given, so nothing here proves that these transitions could happen. They are true if the "
            "mask misses no edge; a missed edge makes wrong transitions that look right.",
        )
    rows, sure, apart = len(audit.moving.error), lower_bound(audit, made), audit.still
    level = Level.GREEN if audit.confirmed >= CONFIRMED and sure >= SURE else Level.AMBER
    level = Level.RED if min(audit.confirmed, apart.confirmed) < WRONG else level
    of = f"All {made:,}" if rows == made else f"{rows:,} of {made:,}"
    every = not len(audit.moving.wrong)
    said = "every one came out as stored" if every else f"{share(audit.confirmed)} came out as stored"
    tail = "" if rows == made else f" By chance alone the share among all could be as low as {share(sure)}."
    if len(apart.error):
        tail += f" Another {len(apart.error):,} only exchange what never changes, {len(apart.wrong):,} of them wrong."
    return Remark(
        level,
        "Simulator",
        f"{of} {facts.noun}s were put back into the simulator, and {said}, within {number(audit.atol)} in every "
        f"column.{tail}",
    )


def _recordings(facts: Facts) -> tuple[Remark, ...]:
    """Return what recordings alone say of the mask, if they were asked."""
    found = facts.extras.judgement
    if found is None:
        return ()
    refused = found.words.startswith("do not augment")
    level = Level.GREEN if found.fine else Level.RED if refused else Level.AMBER
    sentence = f"Judged by the recordings alone: {found.words[:1].lower()}{found.words[1:]}"
    return (Remark(level, "Recordings", sentence if sentence.endswith(".") else f"{sentence}."),)


def _yield(facts: Facts) -> Remark:
    funnel = facts.made.funnel
    low = funnel.acceptance < LOW_ACCEPTANCE
    told = f"{share(funnel.acceptance)} of {counted(funnel.tried, 'proposal')}"
    sentence = f"{told} that had something to exchange were accepted."
    if low:
        sentence += " So few survive that they may not be typical; a sparse policy swaps less at a time."
    static = funnel.static / max(1, funnel.accepted)
    if static:
        sentence += f" {share(static)} of the {facts.noun}s only exchange what never changes, and are counted apart."
    if static > MOSTLY:
        sentence += " They say nothing about the dynamics."
    return Remark(Level.AMBER if low or static > MOSTLY else Level.GREEN, "Yield", sentence)


def _parents(facts: Facts) -> Remark:
    found, rows = facts.parents, facts.traced
    few, heavy = found.donors < FEW_DONORS, found.heaviest > HEAVY
    sentence = (
        f"{counted(rows, 'counterfactual')} came from {found.either:,} of {counted(len(facts.data), 'real row')}: "
        f"{counted(found.bases, 'base')} and {counted(found.donors, 'donor')}. "
        f"The busiest row contributes to {share(found.heaviest)} of them."
    )
    if few or heavy:
        sentence += " That is little variety: the counterfactuals repeat a few originals over and over."
    return Remark(Level.AMBER if few or heavy else Level.GREEN, "Variety", sentence)


def _selection(facts: Facts) -> Remark:
    real, after = facts.real, facts.blend(facts.real.factored, facts.synthetic.factored)
    shrunk = facts.synthetic.interactions < SHRUNK * real.interactions
    sentence = (
        f"{share(real.factored)} of the real transitions fall into independent parts, {share(after)} once "
        f"counterfactuals are added. One factor acts on another in {share(real.interactions)} of the real transitions "
        f"and in {share(facts.synthetic.interactions)} of the counterfactuals."
    )
    if shrunk:
        sentence += " Interactions have become rare: keep real rows in every batch."
    return Remark(Level.AMBER if shrunk else Level.GREEN, "Selection", sentence)


def _rewards(facts: Facts) -> Remark:
    """Say whether rewards have shifted; where they take few values, what became of the share of the best one."""
    found, chance = facts.reward, noise_gap(facts.real.rows, facts.synthetic.rows)
    before, after = (float(shares[-1]) for shares in (found.before, found.after))
    rows = 1 / max(1, facts.real.rows) + 1 / max(1, facts.synthetic.rows)
    spread = 2.6 * float(np.sqrt(before * (1 - before) * rows))  # what a share varies by, but once in a hundred
    rarer = found.discrete and len(found.bounds) > 1 and after < SHRUNK * before and before - after > spread
    moved = (found.gap > MOVED and found.gap > chance) or rarer
    if found.discrete and len(found.bounds) > 1:
        best = f"The best reward, {number(float(found.bounds[-1]))}, has a share of {share(before)} in the real rows"
        sentence = f"{best} and of {share(after)} in the counterfactuals."
    else:
        sentence = (
            f"The mean reward is {number(found.real.mean)} in the real rows and {number(found.made.mean)} in the "
        )
        sentence += "counterfactuals."
    if moved:
        sentence += (
            " An agent that trains on both sees another task than the recorded one: keep real rows in every batch."
        )
        sentence += " A reward function that is wrong away from the recorded rows looks like this, too."
    return Remark(Level.AMBER if moved else Level.GREEN, "Rewards", sentence)


def _shift(facts: Facts) -> Remark:
    worst = facts.features[0]
    moved = worst.gap > MOVED and worst.gap > noise_gap(facts.real.rows, facts.synthetic.rows)
    if worst.gap > MOVED and not moved:
        sentence = f"There are too few rows to tell: a gap of {worst.gap:.3f}, as at {worst.label}, may be chance."
    elif moved:
        sentence = (
            f"{worst.label} is distributed differently among counterfactuals: the largest gap between the two "
            f"distribution functions is {worst.gap:.3f}."
        )
    else:
        sentence = (
            "Single features are distributed much as before: the largest gap between distribution functions is "
            f"{worst.gap:.3f}, at {worst.label}."
        )
    return Remark(Level.AMBER if worst.gap > MOVED else Level.GREEN, "Features", sentence)
