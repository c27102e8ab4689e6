"""A conversation in a few figures: means with their counts, and beside every mean the worst turn it hides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .composite import exact_composite
from .exact_mean import exact_mean
from .missed import missed_crises
from .reading_list import Badness, Entry, reading_list
from .rubric import Rubric
from .units import Coverage, Unit, by_conversation, coverage, values


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
    worst         the unit to read first (see `worst_unit`); None where nothing is known of any unit
    badness       that of the first entry of the reading list; sorts conversations, worst first
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
    badness: Badness
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
    badness: Badness


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
        badness=summary.badness,
    )


def worst_first(briefs: Iterable[Brief]) -> list[Brief]:
    """Conversations in the order of the reading list: by their worst unit, the earliest of equals first."""
    return sorted(briefs, key=lambda b: b.badness)


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
    """The first unit of the reading list (`reading_list`) of which something is known; None where there is none.

    One without any score is never the worst, unless it is a flagged crisis: nothing is known of it.
    """
    return _worst(reading_list(rubric, units))


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
    ranked = reading_list(rubric, units)
    composites = [value for u in units if (value := exact_composite(rubric, u.scores)) is not None]
    names = [f.name for f in rubric.flags]
    missed = [(u, found) for u in units if (found := missed_crises(rubric, [u]))]
    return ConversationSummary(
        id=id,
        units=tuple(units),
        metrics=tuple(_metric(name, units) for name in rubric.metric_names),
        coverage=coverage(s for u in units for s in u.scores.values()),
        composite=exact_mean(composites),
        composites=len(composites),
        worst=_worst(ranked),
        badness=ranked[0].badness,
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
        mean=exact_mean(found),
        lowest=min(found, default=None),
        coverage=coverage(u.scores[name] for u in units),
    )


def _worst(ranked: Iterable[Entry]) -> Unit | None:
    known = (e.unit for e in ranked if e.unit.composite.scored or e.finding in ("missed", "unanswered"))
    return next(known, None)


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
