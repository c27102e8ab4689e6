"""The reading list: which units a person should read first. Its order of badness is the one of every output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from .missed import flag_value, missed_crises
from .rubric import Metric, Rubric
from .units import Unit
from .verdict import Score, Scored

Finding = Literal["missed", "unanswered", "failure", "open", "passed"]
Badness = tuple[int, float, float, float, bool]
FINDINGS: tuple[Finding, ...] = ("missed", "unanswered", "failure", "open", "passed")


@dataclass(frozen=True, slots=True)
class Entry:
    """A unit with what was found for it, as `finding`:

    missed      a flag is set and its metric failed
    unanswered  a flag is set and its metric has no score: whether the reply met the crisis is not known
    failure     the composite or a metric is below its threshold
    open        no failure, but something that counts could not be scored: nothing can be excluded
    passed      read, and nothing below a threshold

    margin   how far its lowest metric lies above (negative: below) its critical threshold, as a share of the
             metric's scale; None where no metric with a threshold has a score
    lowest   the name of that metric
    badness  sorts the worst first (see `reading_list`); for order alone, never shown
    """

    unit: Unit
    finding: Finding
    margin: float | None
    lowest: str | None
    badness: Badness


def reading_list(rubric: Rubric, units: Sequence[Unit]) -> list[Entry]:
    """All units, worst first: by finding, then by margin, then by composite, then in reading order.

    Where a composite is undefined, the lowest score as a share of its scale stands in its place: what is unknown may be
    worse. Of equals the lower mean of these shares comes first, then a unit with a flag set.
    """
    return sorted((_entry(rubric, u) for u in units), key=lambda e: e.badness)


def conversation_order(entries: Iterable[Entry]) -> list[str]:
    """Conversation ids in the order in which each first appears in the reading list: by its worst unit."""
    return list(dict.fromkeys(e.unit.conversation_id for e in entries))


def _entry(rubric: Rubric, unit: Unit) -> Entry:
    finding = _finding(rubric, unit)
    margin, lowest = _margin(rubric, unit)
    shares = [_share(m, s.value) for m in rubric.metrics if isinstance(s := unit.scores[m.name], Scored)]
    standing = _composite_share(rubric, unit)
    if standing is None:
        standing = min(shares, default=None)
    flagged = any(flag_value(unit, f.name) for f in rubric.flags)
    # What has no figure comes after what has a bad one, within its finding.
    figures = (margin, standing, fmean(shares) if shares else None)
    above, level, mean = (float("inf") if f is None else f for f in figures)
    return Entry(unit, finding, margin, lowest, (FINDINGS.index(finding), above, level, mean, not flagged))


def _finding(rubric: Rubric, unit: Unit) -> Finding:
    if crises := missed_crises(rubric, [unit]):
        return "unanswered" if all(m.without_score for m in crises) else "missed"
    if unit.failure is None:
        return "open"
    return "failure" if unit.failure else "passed"


def _margin(rubric: Rubric, unit: Unit) -> tuple[float | None, str | None]:
    found = [(_above(metric, unit.scores[metric.name]), metric.name) for metric in rubric.metrics]
    return min(((m, name) for m, name in found if m is not None), default=(None, None), key=lambda pair: pair[0])


def _above(metric: Metric, score: Score) -> float | None:
    if metric.critical is None or not isinstance(score, Scored):
        return None
    return (score.value - metric.critical) / (metric.scale.maximum - metric.scale.minimum)


def _composite_share(rubric: Rubric, unit: Unit) -> float | None:
    """The composite as a share of its scale, 0 to 1; a rubric's weighted metrics have one scale."""
    value = unit.composite.value
    return _share(next(m for m in rubric.metrics if m.weight), value) if value is not None else None


def _share(metric: Metric, value: float) -> float:
    return (value - metric.scale.minimum) / (metric.scale.maximum - metric.scale.minimum)
