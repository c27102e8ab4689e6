"""What the report says of a run: everything the template needs, computed here and only laid out there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..conversation import Conversation
from ..length_bias import Correlation, length_correlations
from ..missed import Missed, missed_crises, unread_flags
from ..reading_list import Entry, Finding, reading_list
from ..rubric import Rubric
from ..runs import RunView
from ..spread import Spread, spread
from ..units import Coverage, Unit, by_conversation, coverage, units
from ..verdict import NotApplicable, Scored, Unscored
from .chart import Bar, Slice, bars, stacked
from .conversation_part import ConversationPart, conversation_parts
from .course import Anchors
from .panel import failed_words, open_words, severity_words
from .provenance import provenance
from .wording import REASONS, number, unscored_words

if TYPE_CHECKING:
    from ..correction.applied import Applied

MOST_PASSED = 10  # of the units in which nothing is below a threshold, the reading list shows the lowest


@dataclass(frozen=True, slots=True)
class CrisisCard:
    """A missed crisis: where, how severe, and what the score (or its absence, `finding` unanswered) says."""

    anchor: str
    unit: Unit
    metric: str
    severity: str
    finding: Finding
    value: str | None
    words: str
    asked: str | None
    replied: str | None


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """A line of the reading list."""

    anchor: str
    entry: Entry
    reasons: tuple[str, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class SpreadRow:
    title: str
    spread: Spread
    bars: tuple[Bar, ...]
    counts: Mapping[str, int]
    length: Correlation


@dataclass(frozen=True, slots=True)
class CorrectionNote:
    """Which correction is shown. rows: (title, anchors and direction, or why there is none) for every metric."""

    words: str
    rows: tuple[tuple[str, str], ...]
    leniency: str


@dataclass(frozen=True, slots=True)
class Page:
    """The whole report."""

    run: RunView
    units: tuple[Unit, ...]
    unit_word: str
    not_reached: int
    counts: Mapping[Finding, int]
    failing: int
    undetermined: int
    coverage: Coverage
    coverage_bar: tuple[Slice, ...]
    with_text: bool
    reasons: tuple[tuple[str, str, int], ...]
    per_metric: tuple[tuple[str, Coverage], ...]
    missed: tuple[CrisisCard, ...]
    unanswered: tuple[CrisisCard, ...]
    unread: tuple[tuple[str, Unit], ...]
    has_flags: bool
    reading: tuple[ReadingRow, ...]
    left_out: int
    conversations: tuple[ConversationPart, ...]
    spreads: tuple[SpreadRow, ...]
    provenance: tuple[tuple[str, str], ...]
    correction: CorrectionNote | None


def page(run: RunView, applied: Applied | None = None) -> Page:
    """Everything the report shows of a run. Raises InputError where the run cannot be counted (see units.units)."""
    found = units(run)
    entries = reading_list(run.rubric, found)
    anchors = _anchors(found)
    texts = {c.id: c for c in run.conversations}
    total = coverage(s for u in found for s in u.scores.values())
    rows = _reading_rows(run, entries, anchors, texts)
    corrected = applied.units(found) if applied is not None else None
    crises = [_crisis_card(run, m, anchors, texts) for m in missed_crises(run.rubric, found)]
    return Page(
        run=run,
        units=found,
        unit_word="turn" if run.rubric.unit == "turn" else "conversation",
        not_reached=sum(u.verdict is None for u in found),
        counts=Counter(e.finding for e in entries),
        failing=sum(e.finding == "missed" or e.unit.failure is True for e in entries),
        undetermined=sum(e.finding != "missed" and e.unit.failure is None for e in entries),
        coverage=total,
        coverage_bar=stacked({"scored": total.scored, "na": total.not_applicable, "unscored": total.unscored}),
        with_text=bool(run.conversations),
        reasons=tuple((r, REASONS[r], n) for r, n in sorted(total.reasons.items(), key=lambda x: -x[1])),
        per_metric=tuple((m.title, coverage(u.scores[m.name] for u in found)) for m in run.rubric.metrics),
        missed=tuple(c for c in crises if c.finding == "missed"),
        unanswered=tuple(c for c in crises if c.finding == "unanswered"),
        unread=tuple((anchors[u.key], u) for u in unread_flags(run.rubric, found)),
        has_flags=any(m.flag for m in run.rubric.metrics),
        reading=rows,
        left_out=len(entries) - len(rows),
        conversations=conversation_parts(run.rubric, entries, anchors, texts, corrected),
        spreads=_spreads(run, found),
        provenance=provenance(run, applied),
        correction=_correction_note(run.rubric, applied) if applied is not None else None,
    )


def _correction_note(rubric: Rubric, applied: Applied) -> CorrectionNote:
    from ..correction.applied import IMPORTS_LENIENCY, applied_words, head_words

    rows = tuple((rubric.metric(name).title, words) for name, words in applied_words(applied, rubric.metric_names))
    return CorrectionNote(head_words(applied), rows, IMPORTS_LENIENCY)


def _anchors(found: Sequence[Unit]) -> Anchors:
    """Link targets by position: an id comes from the file and could be anything."""
    numbers = {cid: n for n, cid in enumerate(by_conversation(found), start=1)}
    return {u.key: f"c{numbers[u.conversation_id]}-{'all' if u.turn is None else f't{u.turn}'}" for u in found}


def _crisis_card(run: RunView, missed: Missed, anchors: Anchors, texts: Mapping[str, Conversation]) -> CrisisCard:
    spec = next(f for f in run.rubric.flags if f.name == missed.metric.flag)
    asked, replied = _exchange(missed.unit, texts)
    return CrisisCard(
        anchor=anchors[missed.unit.key],
        unit=missed.unit,
        metric=missed.metric.title,
        severity=severity_words(spec, missed.flag),
        finding="unanswered" if missed.without_score else "missed",
        value=f"{missed.score.value:g}" if isinstance(missed.score, Scored) else None,
        words=_score_words(missed),
        asked=asked,
        replied=replied,
    )


def _score_words(missed: Missed) -> str:
    match missed.score:
        case Scored(value=value):
            return missed.metric.anchor_for(value) or ""
        case Unscored() as score:
            return f"no score: {unscored_words(score)}"
        case NotApplicable():
            return "no score: the judge said N/A although the flag is set"


def _exchange(unit: Unit, texts: Mapping[str, Conversation]) -> tuple[str | None, str | None]:
    """What the person said last and what the assistant replied, where the text was kept."""
    conversation = texts.get(unit.conversation_id)
    turn = next((t for t in conversation.turns if t.number == unit.turn), None) if conversation else None
    if conversation is None or turn is None:
        return None, None
    asked = [m.content for m in conversation.messages[: turn.index] if m.role == "user"]
    return (asked[-1] if asked else None), turn.message.content


def _reading_rows(
    run: RunView, entries: Sequence[Entry], anchors: Anchors, texts: Mapping[str, Conversation]
) -> tuple[ReadingRow, ...]:
    passed = [e for e in entries if e.finding == "passed"]
    shown = [e for e in entries if e.finding != "passed"] + passed[:MOST_PASSED]
    return tuple(
        ReadingRow(
            anchors[e.unit.key],
            e,
            failed_words(run.rubric, e.unit) + open_words(run.rubric, e.unit) or _closest(run.rubric, e),
            _exchange(e.unit, texts)[1],
        )
        for e in shown
    )


def _closest(rubric: Rubric, entry: Entry) -> tuple[str, ...]:
    """Of a unit with nothing below a threshold: the metric that comes closest to its own."""
    if entry.lowest is None:
        return ()
    metric, score = rubric.metric(entry.lowest), entry.unit.scores[entry.lowest]
    assert isinstance(score, Scored)
    return (f"closest: {metric.title} {number(score.value)} (threshold {number(metric.critical)})",)


def _spreads(run: RunView, found: Sequence[Unit]) -> tuple[SpreadRow, ...]:
    lengths = length_correlations(run, found)
    rows = []
    for metric in run.rubric.metrics:
        s = spread(run.rubric, found, metric.name)
        highest = max((n for _, n in s.counts), default=0)
        counts = {str(step): n for step, n in s.counts}
        shares = {step: n / highest if highest else 0.0 for step, n in counts.items()}
        rows.append(SpreadRow(metric.title, s, bars(shares, 120.0), counts, lengths[metric.name]))
    return tuple(rows)
