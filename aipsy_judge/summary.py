"""A conversation in a few figures: means with their counts, and beside every mean the worst turn it hides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from .missed import missed_crises
from .rubric import Rubric
from .units import Coverage, Unit, by_conversation, coverage, values
from .verdict import Scored


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over the units of a conversation.

    mean, lowest  over the scored units alone, in points of the scale; None where there are none
    coverage      how many units are scored, N/A and unscored
    """

    metric: str
    mean: float | None
    lowest: float | None
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """One conversation.

    composite     mean of the composites of those units that have one (`composites` many); None where none has
    worst         the unit to read first (see `worst_unit`); None where no unit has a score
    failing       units that failed
    undetermined  units of which failure can be neither stated nor excluded, because something was unscored
    flagged       by flag: the units in which it is set
    unread        by flag: the units in which it could not be read
    missed        units in which a crisis is flagged and the reply to it is below its threshold, or has no score
    unanswered    those of `missed` of which no score says how the reply is
    """

    id: str
    units: tuple[Unit, ...]
    metrics: tuple[MetricSummary, ...]
    coverage: Coverage
    composite: float | None
    composites: int
    worst: Unit | None
    failing: tuple[Unit, ...]
    undetermined: tuple[Unit, ...]
    flagged: Mapping[str, tuple[Unit, ...]]
    unread: Mapping[str, tuple[Unit, ...]]
    missed: tuple[Unit, ...]
    unanswered: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Brief:
    """A ConversationSummary in a few numbers, for when there are many. `flagged` counts units with any flag set."""

    id: str
    units: int
    worst_turn: int | None
    worst_composite: float | None
    composite: float | None
    failing: int
    undetermined: int
    flagged: int
    missed: int
    unanswered: int
    unreached: int
    coverage: Coverage


def brief(summary: ConversationSummary) -> Brief:
    """What an overview shows of a conversation."""
    worst = summary.worst
    return Brief(
        id=summary.id,
        units=len(summary.units),
        worst_turn=worst.turn if worst is not None else None,
        worst_composite=worst.composite.value if worst is not None else None,
        composite=summary.composite,
        failing=len(summary.failing),
        undetermined=len(summary.undetermined),
        flagged=len({u.key for found in summary.flagged.values() for u in found}),
        missed=len(summary.missed),
        unanswered=len(summary.unanswered),
        unreached=sum(u.verdict is None for u in summary.units),
        coverage=summary.coverage,
    )


def worst_first(briefs: Iterable[Brief]) -> list[Brief]:
    """Failing conversations first, then those where failure cannot be excluded, each by its worst composite."""

    def badness(found: Brief) -> tuple[int, float]:
        rank = 0 if found.failing else 1 if found.undetermined else 2
        return rank, found.worst_composite if found.worst_composite is not None else float("inf")

    return sorted(briefs, key=badness)


def total_coverage(briefs: Iterable[Brief]) -> Coverage:
    """The coverage of all conversations together."""
    found = [b.coverage for b in briefs]
    reasons: Counter[str] = Counter()
    for one in found:
        reasons.update(one.reasons)
    return Coverage(
        scored=sum(c.scored for c in found),
        not_applicable=sum(c.not_applicable for c in found),
        reasons=dict(sorted(reasons.items())),
    )


def summarise(rubric: Rubric, units: Iterable[Unit]) -> list[ConversationSummary]:
    """A summary per conversation, in order of first appearance. Unscored and N/A enter no mean."""
    return [_conversation(rubric, id, group) for id, group in by_conversation(units).items()]


def worst_unit(rubric: Rubric, units: Sequence[Unit]) -> Unit | None:
    """Failing units come first, then the lowest composite, then a unit with a flag set; the earliest of equals.

    Where the rubric has no composite, the lowest metric counts in its place, as a share of its scale. A unit whose
    composite is undefined comes after those that have one; one without any score is never the worst, for nothing is
    known of it.
    """
    known = [u for u in units if u.composite.scored]
    return min(known, key=lambda u: _badness(rubric, u), default=None)


def summary_to_dict(summary: ConversationSummary) -> dict[str, Any]:
    """A summary as strict JSON data; turns by number, None for a whole conversation."""
    return {
        "coverage": coverage_to_dict(summary.coverage),
        "composite": {"mean": summary.composite, "units": summary.composites},
        "worst": _worst_to_dict(summary.worst),
        "failing": [u.turn for u in summary.failing],
        "undetermined": [u.turn for u in summary.undetermined],
        "flagged": {name: [u.turn for u in found] for name, found in summary.flagged.items()},
        "missed_crises": [u.turn for u in summary.missed],
        "unread_flags": {name: [u.turn for u in found] for name, found in summary.unread.items()},
        "metrics": {
            m.metric: {"mean": m.mean, "lowest": m.lowest, **coverage_to_dict(m.coverage)} for m in summary.metrics
        },
    }


def coverage_to_dict(found: Coverage) -> dict[str, Any]:
    """Counts of scores by what they are."""
    return {
        "scored": found.scored,
        "not_applicable": found.not_applicable,
        "unscored": found.unscored,
        "unscored_reasons": dict(found.reasons),
    }


def _conversation(rubric: Rubric, id: str, units: Sequence[Unit]) -> ConversationSummary:
    composites = [u.composite.value for u in units if u.composite.value is not None]
    names = [f.name for f in rubric.flags]
    missed = [(u, found) for u in units if (found := missed_crises(rubric, [u]))]
    return ConversationSummary(
        id=id,
        units=tuple(units),
        metrics=tuple(_metric(name, units) for name in rubric.metric_names),
        coverage=coverage(s for u in units for s in u.scores.values()),
        composite=fmean(composites) if composites else None,
        composites=len(composites),
        worst=worst_unit(rubric, units),
        failing=tuple(u for u in units if u.failure),
        undetermined=tuple(u for u in units if u.failure is None),
        flagged={name: tuple(u for u in units if _flag(u, name) is True) for name in names},
        unread={name: tuple(u for u in units if _flag(u, name) is None) for name in names},
        missed=tuple(u for u, _ in missed),
        unanswered=tuple(u for u, found in missed if all(m.without_score for m in found)),
    )


def _metric(name: str, units: Sequence[Unit]) -> MetricSummary:
    found = values(units, name)
    return MetricSummary(
        metric=name,
        mean=fmean(found) if found else None,
        lowest=min(found, default=None),
        coverage=coverage(u.scores[name] for u in units),
    )


def _badness(rubric: Rubric, unit: Unit) -> tuple[bool, float, bool]:
    value = unit.composite.value if rubric.composite is not None else lowest_share(rubric, unit)
    flagged = unit.verdict is not None and any(f.value for f in unit.verdict.flags.values())
    return (not unit.failure, value if value is not None else float("inf"), not flagged)


def lowest_share(rubric: Rubric, unit: Unit) -> float | None:
    """How high the unit's lowest metric lies on its scale, 0 (bottom) to 1; None where nothing is scored."""
    shares = [
        (s.value - m.scale.minimum) / (m.scale.maximum - m.scale.minimum)
        for m in rubric.metrics
        if isinstance(s := unit.scores[m.name], Scored)
    ]
    return min(shares, default=None)


def _flag(unit: Unit, name: str) -> bool | None:
    flag = unit.verdict.flags.get(name) if unit.verdict is not None else None
    return flag.value if flag is not None else None


def _worst_to_dict(unit: Unit | None) -> dict[str, Any] | None:
    if unit is None:
        return None
    found = unit.composite
    return {
        "turn": unit.turn,
        "composite": found.value,
        "composite_undefined": found.reason,
        "failed": list(found.failed),
    }
