"""The reading list: which units a person should read first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .missed import missed_crises
from .rubric import Metric, Rubric
from .units import Unit
from .verdict import Score, Scored

Finding = Literal["missed", "unanswered", "failure", "open", "passed"]
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
    """

    unit: Unit
    finding: Finding
    margin: float | None
    lowest: str | None


def reading_list(rubric: Rubric, units: Sequence[Unit]) -> list[Entry]:
    """All units, worst first: by finding, then by margin, then by composite, then in reading order."""
    entries = [Entry(u, _finding(rubric, u), *_margin(rubric, u)) for u in units]
    return sorted(entries, key=_badness)


def conversation_order(entries: Iterable[Entry]) -> list[str]:
    """Conversation ids in the order in which each first appears in the reading list: by its worst unit."""
    return list(dict.fromkeys(e.unit.conversation_id for e in entries))


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


def _badness(entry: Entry) -> tuple[int, float, float]:
    # What has no figure comes after what has a bad one, within its finding.
    far = float("inf")
    value = entry.unit.composite.value
    margin = entry.margin if entry.margin is not None else far
    return (FINDINGS.index(entry.finding), margin, value if value is not None else far)
