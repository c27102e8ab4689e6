"""What the report says of one unit: its scores in words, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..reading_list import Entry
from ..rubric import FlagSpec, Metric, Rubric
from ..units import Unit, below_critical
from ..verdict import Flag, NotApplicable, Reading, Scored, Unscored
from .chart import Bar, bars
from .wording import (
    FINDING_TITLES,
    UNSURE,
    below,
    mean,
    na_words,
    note_words,
    number,
    percent,
    unscored_words,
    unsure_names,
)

if TYPE_CHECKING:
    from ..correction.corrected_verdict import CorrectedScore

DISTRIBUTION_WIDTH = 100.0


@dataclass(frozen=True, slots=True)
class CorrectedCell:
    """A corrected value; `value` "" where there is none, and then `words` say why."""

    value: str
    words: str
    fails: bool


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of one unit. status: scored, low (below the critical threshold), na or unscored.

    corrected  None where no correction is shown, or the raw score is N/A or unscored
    """

    title: str
    question: str
    status: str
    value: str
    scale: str
    words: str
    threshold: str | None
    reading: tuple[str, ...]
    bars: tuple[Bar, ...]
    bars_label: str
    near_tie: bool
    unsure: bool
    corrected: CorrectedCell | None


@dataclass(frozen=True, slots=True)
class FlagRow:
    """One flag of one unit. status: yes, no or unread."""

    title: str
    question: str
    status: str
    words: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Everything said of one unit."""

    anchor: str
    heading: str
    entry: Entry
    finding: str
    composite: str
    composite_words: str
    failed: tuple[str, ...]
    flags: tuple[FlagRow, ...]
    metrics: tuple[MetricRow, ...]
    rationale: str | None
    injections: tuple[str, ...]
    notes: tuple[str, ...]
    judged: bool
    with_corrected: bool


def panel(rubric: Rubric, entry: Entry, anchor: str, corrected: Mapping[str, CorrectedScore] | None = None) -> Panel:
    """The panel of one entry of the reading list; `corrected`: its corrected values, None where none are shown."""
    unit = entry.unit
    verdict = unit.verdict
    return Panel(
        anchor=anchor,
        heading="Whole conversation" if unit.turn is None else f"Turn {unit.turn}",
        entry=entry,
        finding=FINDING_TITLES[entry.finding],
        composite=mean(unit.composite.value),
        composite_words=_composite_words(rubric, unit),
        failed=failed_words(rubric, unit),
        flags=tuple(_flag_row(spec, unit) for spec in rubric.flags),
        metrics=tuple(
            _metric_row(rubric, metric, unit, (corrected or {}).get(metric.name)) for metric in rubric.metrics
        ),
        rationale=verdict.rationale if verdict else None,
        injections=verdict.suspected_injection if verdict else (),
        # A near tie, and what is unsure, stands beside its metric.
        notes=tuple(note_words(n) for n in verdict.notes if not n.startswith(("near_tie:", "unsure:")))
        if verdict
        else (),
        judged=verdict is not None,
        with_corrected=corrected is not None,
    )


def failed_words(rubric: Rubric, unit: Unit) -> tuple[str, ...]:
    """Why the unit failed: each metric below its threshold, and the composite if it is."""
    words = [
        f"{m.title} {below(s.value, m.critical)}"
        for m in rubric.metrics
        if below_critical(m, s := unit.scores[m.name]) and isinstance(s, Scored) and m.critical is not None
    ]
    rule, value = rubric.composite, unit.composite.value
    if rule is not None and value is not None and value < rule.failure_below:
        words.append(f"composite {below(value, rule.failure_below)}")
    return tuple(words)


def open_words(rubric: Rubric, unit: Unit) -> tuple[str, ...]:
    """What could not be scored, each metric with its reason; one line if all failed alike."""
    unscored = [(m.title, s) for m in rubric.metrics if isinstance(s := unit.scores[m.name], Unscored)]
    reasons = {unscored_words(s) for _, s in unscored}
    if len(unscored) == len(rubric.metrics) and len(reasons) == 1:
        return (f"nothing scored: {reasons.pop()}",)
    return tuple(f"{title}: {unscored_words(s)}" for title, s in unscored)


def _composite_words(rubric: Rubric, unit: Unit) -> str:
    if rubric.composite is None:
        return "this rubric has none"
    if unit.composite.value is None:
        unread = [m.title for m in rubric.metrics if m.weight and isinstance(unit.scores[m.name], Unscored)]
        if len(unread) == len(rubric.metrics):
            return "undefined: nothing scored"
        return f"undefined: {', '.join(unread)} unscored" if unread else f"undefined: {unit.composite.reason}"
    applicable = sum(isinstance(unit.scores[m.name], Scored) for m in rubric.metrics if m.weight)
    return f"weighted mean of {applicable} of {sum(bool(m.weight) for m in rubric.metrics)} metrics"


def _metric_row(rubric: Rubric, metric: Metric, unit: Unit, found: CorrectedScore | None) -> MetricRow:
    score = unit.scores[metric.name]
    low = below_critical(metric, score)
    status, value, words = _status(rubric, metric, unit)
    reading = score.reading
    shown = bars(_distribution(reading), DISTRIBUTION_WIDTH, chosen=value)
    return MetricRow(
        title=metric.title,
        question=metric.question,
        status="low" if low else status,
        value=value,
        scale=f"{metric.scale.minimum}–{metric.scale.maximum}",
        words=words,
        threshold=f"below {number(metric.critical)}" if low else None,
        reading=_reading_words(metric, reading, status == "na") if reading is not None else (),
        bars=shown,
        bars_label=", ".join(f"{b.label}: {percent(b.height)}" for b in shown),
        near_tie=reading is not None and reading.near_tie,
        unsure=unit.verdict is not None and metric.name in unsure_names(unit.verdict.notes),
        corrected=_corrected_cell(found) if found is not None and found.raw is not None else None,
    )


def _corrected_cell(found: CorrectedScore) -> CorrectedCell:
    if found.value is None:
        return CorrectedCell("", f"not corrected: {found.reason}", fails=False)
    if found.p_fail is None:
        return CorrectedCell(mean(found.value), "", fails=False)
    look = "; likely enough to look" if found.fails else ""
    return CorrectedCell(
        mean(found.value), f"the expert would see a failure with p = {found.p_fail:.2f}{look}", fails=bool(found.fails)
    )


def _status(rubric: Rubric, metric: Metric, unit: Unit) -> tuple[str, str, str]:
    """Status, the value as shown, and its meaning in words."""
    match unit.scores[metric.name]:
        case Scored(value=value):
            return "scored", number(value), metric.anchor_for(value) or "the rubric has no wording this low"
        case NotApplicable() as score:
            return "na", "N/A", na_words(metric, score, {f.name: f.title for f in rubric.flags})
        case Unscored() as score:
            return "unscored", "?", f"Unscored: {unscored_words(score)}."


def _distribution(reading: Reading | None) -> Mapping[str, float]:
    return reading.distribution or {} if reading is not None else {}


def _reading_words(metric: Metric, reading: Reading, na: bool) -> tuple[str, ...]:
    could_be_na = metric.may_be_na and (reading.distribution is None or "N/A" in reading.distribution)
    known = [
        (None if na else reading.confidence, f"confidence {percent(reading.confidence)}"),
        (reading.p_na if could_be_na else None, f"N/A {percent(reading.p_na)}"),
        (reading.expected, f"expected {mean(reading.expected)}{' if it applied' if na else ''}"),
        (reading.legal_mass, f"legal mass {percent(reading.legal_mass)}"),
    ]
    return tuple(words for figure, words in known if figure is not None)


def _flag_row(spec: FlagSpec, unit: Unit) -> FlagRow:
    flag = unit.verdict.flags.get(spec.name) if unit.verdict is not None else None
    if flag is None or flag.value is None:
        return FlagRow(spec.title, spec.question, "unread", _unread_words(flag))
    words = severity_words(spec, flag)
    if unit.verdict is not None and spec.name in unsure_names(unit.verdict.notes):
        words = f"{UNSURE} · {words}" if words else UNSURE
    if flag.probability is not None:
        words = f"{words} · probability {percent(flag.probability)}" if words else _probability(flag.probability)
    return FlagRow(spec.title, spec.question, "yes" if flag.value else "no", words)


def _probability(p: float) -> str:
    return f"probability {percent(p)}"


def severity_words(spec: FlagSpec, flag: Flag) -> str:
    """The severity and what the rubric says of it; nothing for a flag that is not set or has no severity."""
    if spec.severity is None or flag.severity is None or not flag.value:
        return ""
    wording = spec.severity.levels.get(flag.severity)
    return f"{flag.severity}: {wording}" if wording else flag.severity


def _unread_words(flag: Flag | None) -> str:
    if flag is not None and flag.unscored is not None:
        return f"could not be read: {unscored_words(flag.unscored)}"
    return "could not be read"
