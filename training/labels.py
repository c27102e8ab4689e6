"""What a slot is to say: shares over its legal labels, from a target of (value, p_fail, p_na) or (flag, severity).

A soft label is a normal distribution around the value, cut into the scale's steps, what lies beyond the ends counted
at the ends; its mass below the critical threshold is then made p_fail, where that is known. Shares are what a slot is
read for; the label with the greatest is what the answer goes on with, as the engine goes on with what it reads.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aipsy_judge.answer import NA, NO, YES
from aipsy_judge.errors import InputError
from aipsy_judge.rubric import FlagSpec, Metric, Rubric

from .target_rows import FlagTarget, MetricTarget, TargetRow

Shares = dict[str, float]
# How far the label of the target lies before the next one, where votes alone would put another before it.
LEAD = 0.05
# Shares below this are noise of the tails; a target of many tokens costs memory.
LEAST = 1e-4


@dataclass(frozen=True, slots=True)
class SlotTarget:
    """label   what stands in the answer
    shares  over labels, sum 1; empty where the target knows nothing: the slot then trains nothing
    """

    label: str
    shares: Mapping[str, float]


def slot_target(
    name: str, ways: Mapping[str, Sequence[int]], row: TargetRow, rubric: Rubric, *, spread: float, hard: bool
) -> SlotTarget:
    """What the slot `name` is to say, of its legal labels, each with the tokens that lead to it.

    Where the target does not know, something must stand there still, for what follows is read after it. It is drawn
    from the legal labels, evenly, by a hash of item and slot: over many items that tells the later slots nothing.
    Neither a fixed label, which would come to mean "unknown", nor one like the other scores, which would teach that
    scores agree (halo), does so.
    """
    legal = list(ways)
    found = _known(name, legal, row, rubric, spread=spread, hard=hard)
    if found is None:
        digest = hashlib.sha256(f"{row.item_id}\0{name}".encode()).digest()
        return SlotTarget(legal[int.from_bytes(digest[:8], "big") % len(legal)], {})
    label, shares = found
    return SlotTarget(label, {label: 1.0} if hard else _leading(label, shares, ways))


def _known(
    name: str, legal: Sequence[str], row: TargetRow, rubric: Rubric, *, spread: float, hard: bool
) -> tuple[str, Shares] | None:
    """(label, shares over the legal labels), None where the target does not know."""
    for flag in rubric.flags:
        if flag.name == name:
            return _flag(flag, legal, row.flags[name])
        if flag.severity is not None and flag.severity.name == name:
            return _severity(legal, row.flags[flag.name])
    metric = next((m for m in rubric.metrics if m.name == name), None)
    if metric is None:
        return None  # a slot of the contract's own, such as the context that the benchmark asks for
    target = row.metrics[name]
    # The flag decides whether a metric that hangs on it applies, as it does where the answer is read.
    if metric.flag is not None and not row.flags[metric.flag].value:
        return _within({NA: 1.0}, legal) if row.flags[metric.flag].value is False else None
    return _metric(metric, target, legal, where=f"{row.item_id}, {name}", spread=spread, hard=hard)


def _flag(flag: FlagSpec, legal: Sequence[str], target: FlagTarget) -> tuple[str, Shares] | None:
    """yes and no, or, where one slot holds both, the levels: the first means "not set"."""
    if target.value is None:
        return None
    probability = float(target.value) if target.probability is None else target.probability
    if flag.severity is None or set(legal) <= {YES, NO}:
        return YES if target.value else NO, {YES: probability, NO: 1.0 - probability}
    unset, *levels = flag.severity.levels
    told = _severity(levels, target)
    # How severe a flag would be that is not set, nobody says: its share is spread evenly.
    label, shares = told if told is not None else (levels[0], dict.fromkeys(levels, 1.0 / len(levels)))
    return label if target.value else unset, {
        unset: 1.0 - probability,
        **{k: probability * shares.get(k, 0.0) for k in levels},
    }


def _severity(legal: Sequence[str], target: FlagTarget) -> tuple[str, Shares] | None:
    """Of a flag that is set; None where nobody tells how severe."""
    if not target.value or target.severity is None:
        return None
    return _within(target.severity_shares or {target.severity: 1.0}, legal, target.severity)


def _metric(
    metric: Metric, target: MetricTarget, legal: Sequence[str], *, where: str, spread: float, hard: bool
) -> tuple[str, Shares] | None:
    if target.status == "unscored":
        return None
    if target.value is None:
        if not metric.may_be_na:
            raise InputError("the target is N/A, and the rubric lets the metric apply always", where=where)
        return _within({NA: 1.0}, legal)
    if not metric.scale.minimum <= target.value <= metric.scale.maximum:
        raise InputError(
            f"the target {target.value:g} lies off the scale {metric.scale.minimum} to {metric.scale.maximum}",
            where=where,
        )
    if hard:
        label = str(rounded(target.value))
        return _within({label: 1.0}, legal, label)
    numbers = soft_shares(metric, target.value, target.p_fail, spread)
    label = max(numbers, key=numbers.__getitem__)  # the harsher of two alike: the scale rises
    p_na = target.p_na if target.p_na is not None and metric.may_be_na else 0.0
    return _within({**{k: s * (1.0 - p_na) for k, s in numbers.items()}, NA: p_na}, legal, label)


def rounded(value: float) -> int:
    """The nearest step of the scale; a half goes towards the harsher side, which is the lower."""
    return math.ceil(value - 0.5)


def soft_shares(metric: Metric, value: float, p_fail: float | None, spread: float) -> Shares:
    """Shares over the scale's labels, sum 1, in rising order.

    spread  standard deviation in points; 0 puts all on the nearest step
    p_fail  the sum of the shares below `metric.critical`; None leaves the distribution as it is
    """
    steps = metric.scale.values
    edges = [_below(step + 0.5, value, spread) for step in steps[:-1]]
    masses = [b - a for a, b in zip([0.0, *edges], [*edges, 1.0], strict=True)]
    if p_fail is not None and metric.critical is not None:
        masses = _with_mass_below(steps, masses, metric.critical, p_fail)
    return {str(step): mass for step, mass in zip(steps, masses, strict=True)}


def _below(edge: float, value: float, spread: float) -> float:
    """Mass of the normal distribution below an edge between two steps."""
    if spread == 0.0:
        return 1.0 if rounded(value) < edge else 0.0
    return 0.5 * math.erfc((value - edge) / (spread * math.sqrt(2.0)))


def _with_mass_below(steps: Sequence[int], masses: Sequence[float], critical: float, p_fail: float) -> list[float]:
    """Both sides of the threshold scaled to their mass; a side that had next to none gets it at its nearest step."""
    low = sum(m for s, m in zip(steps, masses, strict=True) if s < critical)
    nearest = max(s for s in steps if s < critical), min(s for s in steps if s >= critical)

    def scaled(step: int, mass: float) -> float:
        side, wanted, near = (low, p_fail, nearest[0]) if step < critical else (1.0 - low, 1.0 - p_fail, nearest[1])
        if side < LEAST:
            return wanted if step == near else 0.0
        return mass * wanted / side

    return [scaled(s, m) for s, m in zip(steps, masses, strict=True)]


def _within(shares: Mapping[str, float], legal: Sequence[str], label: str | None = None) -> tuple[str, Shares] | None:
    """Shares among the legal labels alone; None where none of them has any."""
    inside = {k: shares[k] for k in legal if shares.get(k, 0.0) >= LEAST}
    total = sum(inside.values())
    if not inside:
        return None
    chosen = label if label in inside else max(inside, key=inside.__getitem__)
    return chosen, {k: s / total for k, s in inside.items()}


def _leading(label: str, shares: Shares, ways: Mapping[str, Sequence[int]]) -> Shares:
    """The shares, mixed with as much certainty of `label` as lets it lead by LEAD at every branching on its way where
    others are before it.

    Votes alone can put another first: N/A, with 0.45, before every number that shares the rest; or the many options
    behind one token before a single one behind another. A judge that learnt that would be read, branching by
    branching, as saying something else than the target.
    """
    own = ways[label]
    certainty = 0.0
    for depth, token in enumerate(own):
        behind: dict[int, float] = {}
        for other, share in shares.items():
            if tuple(ways[other][:depth]) == tuple(own[:depth]):
                step = ways[other][depth]
                behind[step] = behind.get(step, 0.0) + share
        lead = behind.get(token, 0.0) - max((s for t, s in behind.items() if t != token), default=-LEAD)
        if lead <= 0.0:
            certainty = max(certainty, (LEAD - lead) / (1.0 - lead))
    mixed = {k: s * (1.0 - certainty) for k, s in shares.items() if s > 0.0}
    return {**mixed, label: mixed.get(label, 0.0) + certainty}
