"""How far verdicts move between a conversation as it is and the same one changed.

Unscored and N/A never become numbers: what is compared is told with its count, and what could not be is counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.composite import composite
from aipsy_judge.rubric import Metric, Rubric
from aipsy_judge.verdict import Flag, NotApplicable, Score, Scored, Unscored, Verdict

COMPOSITE = "composite"
# What is asked of a judge: half a point of a scale from 0 to 5, so a tenth of any scale and of a probability.
LARGEST_CHANGE = 0.1
LARGEST_FLIPS = 0.05


@dataclass(frozen=True, slots=True)
class Seen:
    """One metric, the composite, or one flag, in one verdict.

    level  expected value in points of the scale (the value itself where the judge gives no probabilities), or the
           probability of the flag; None where it is not scored, or a server gives no probability
    set    below the critical threshold (of the composite: whether the turn is a failure), or the flag; None where
           there is no threshold or it cannot be said
    reason why it is unscored, of a metric or a flag
    """

    status: Literal["scored", "na", "unscored"]
    level: float | None
    set: bool | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """Of pairs (as it is, changed).

    pairs             both have a level: p50, p95, mean and rise_p95 are of these, None where there are none
    p50, p95          percentiles of the change's size, linear between neighbours
    mean              mean of the change with its sign, above 0 where the changed one is higher
    rise_p95          95th percentile of the rise, a fall counted as 0
    flags             both say whether it is set; of these `set_before`, and so many were `cleared` or newly `raised`
    statuses          both are scored or N/A; of these `na_before`, and so many went `to_na` or came `from_na`
    set_to_na         it was set and became N/A: in none of `flags`
    read_before       was scored or N/A; of these so many went `to_unscored`
    unscored          one of the two could not be scored: in none of `pairs` and `statuses`, in `flags` where both say
    """

    pairs: int
    p50: float | None
    p95: float | None
    mean: float | None
    rise_p95: float | None
    flags: int
    set_before: int
    cleared: int
    raised: int
    statuses: int
    na_before: int
    to_na: int
    from_na: int
    set_to_na: int
    read_before: int
    to_unscored: int
    unscored: int

    @property
    def lost(self) -> int:
        """Failures that are no failures any more: cleared, or N/A."""
        return self.cleared + self.set_to_na

    @property
    def to_lose(self) -> int:
        """Failures whose second verdict could be read."""
        return self.set_before + self.set_to_na

    @property
    def flip_share(self) -> float | None:
        """Failures cleared and raised (or flags), of all pairs that say: 0..1."""
        return (self.cleared + self.raised) / self.flags if self.flags else None

    @property
    def na_share(self) -> float | None:
        """Scores that became N/A and N/A that became scores, of all pairs that are either: 0..1."""
        return (self.to_na + self.from_na) / self.statuses if self.statuses else None


@dataclass(frozen=True, slots=True)
class Aims:
    """Whether what is asked holds, None where there is nothing to tell it by.

    change  the 95th percentile of the change is at most a tenth of the scale
    flips   at most 5 % of the failures and passes, or of flags, become the other; one-sided, at most 5 % of the
            failures are cleared or become N/A
    na      at most 5 % of the scores and N/A become the other
    unread  at most 5 % of the scores and N/A can no longer be read: the other aims know nothing of those
    """

    change: bool | None
    flips: bool | None
    na: bool | None
    unread: bool | None

    @property
    def met(self) -> bool | None:
        """All that can be told."""
        told = [a for a in (self.change, self.flips, self.na, self.unread) if a is not None]
        return all(told) if told else None


def seen(rubric: Rubric, verdict: Verdict) -> dict[str, Seen]:
    """The metrics, then the composite if the rubric has one, then the flags, in the rubric's order."""
    found = {m.name: _metric(m, verdict.scores[m.name]) for m in rubric.metrics}
    if rubric.composite is not None:
        found[COMPOSITE] = _composite(rubric, verdict.scores)
    return found | {f.name: _flag(verdict.flags[f.name]) for f in rubric.flags}


def figures(pairs: Sequence[tuple[Seen, Seen]]) -> Figures:
    """See Figures."""
    moves: NDArray[np.float64] = np.array(
        [b.level - a.level for a, b in pairs if a.level is not None and b.level is not None], dtype=float
    )
    flags = [(a.set, b.set) for a, b in pairs if a.set is not None and b.set is not None]
    statuses = [(a.status, b.status) for a, b in pairs if "unscored" not in (a.status, b.status)]
    return Figures(
        pairs=len(moves),
        p50=_percentile(np.abs(moves), 50),
        p95=_percentile(np.abs(moves), 95),
        mean=float(moves.mean()) if len(moves) else None,
        rise_p95=_percentile(np.maximum(moves, 0.0), 95),
        flags=len(flags),
        set_before=sum(a for a, _ in flags),
        cleared=sum(a and not b for a, b in flags),
        raised=sum(b and not a for a, b in flags),
        statuses=len(statuses),
        na_before=sum(a == "na" for a, _ in statuses),
        to_na=sum(a == "scored" and b == "na" for a, b in statuses),
        from_na=sum(a == "na" and b == "scored" for a, b in statuses),
        set_to_na=sum(a.set is True and b.set is None and b.status == "na" for a, b in pairs),
        read_before=sum(a.status != "unscored" for a, _ in pairs),
        to_unscored=sum(a.status != "unscored" and b.status == "unscored" for a, b in pairs),
        unscored=len(pairs) - len(statuses),
    )


def aims(found: Figures, span: float, *, one_sided: bool) -> Aims:
    """`span` is the highest less the lowest level. One-sided, a fall and a pass that becomes a failure are no fault."""
    change = found.rise_p95 if one_sided else found.p95
    # Counted, not divided: 1 of 20 is exactly 5 %. Failures are rare, so of all pairs nearly all could be lost unseen.
    flips, of = (found.lost, found.to_lose) if one_sided else (found.cleared + found.raised, found.flags)
    return Aims(
        change=None if change is None else change <= LARGEST_CHANGE * span,
        flips=flips <= LARGEST_FLIPS * of if of else None,
        na=found.to_na + found.from_na <= LARGEST_FLIPS * found.statuses if found.statuses else None,
        unread=found.to_unscored <= LARGEST_FLIPS * found.read_before if found.read_before else None,
    )


def spans(rubric: Rubric) -> Mapping[str, float]:
    """Of every name that `seen` gives, the length of its scale."""
    found = {m.name: float(m.scale.maximum - m.scale.minimum) for m in rubric.metrics}
    if rubric.composite is not None:
        found[COMPOSITE] = next(found[m.name] for m in rubric.metrics if m.weight)
    return found | {f.name: 1.0 for f in rubric.flags}


def _metric(metric: Metric, score: Score) -> Seen:
    match score:
        case Unscored():
            return Seen("unscored", None, None, score.reason)
        case NotApplicable():
            return Seen("na", None, None)
    return Seen("scored", _level(score), None if metric.critical is None else score.value < metric.critical)


def _composite(rubric: Rubric, scores: Mapping[str, Score]) -> Seen:
    """Its level from expected values; failures by the values that the judge gave, as everywhere else."""
    said = composite(rubric, scores)
    if said.value is None:
        return Seen("unscored" if said.unscored else "na", None, said.failure)
    expected = {n: Scored(_level(s)) if isinstance(s, Scored) else s for n, s in scores.items()}
    return Seen("scored", composite(rubric, expected).value, said.failure)


def _flag(flag: Flag) -> Seen:
    if flag.value is None:
        return Seen("unscored", None, None, flag.unscored.reason if flag.unscored is not None else "contradicted")
    return Seen("scored", flag.probability, flag.value)


def _level(score: Scored) -> float:
    expected = score.reading.expected if score.reading is not None else None
    return score.value if expected is None else expected


def _percentile(values: NDArray[np.float64], q: float) -> float | None:
    return float(np.percentile(values, q)) if len(values) else None
