"""What was read at the slots -> scores and flags, by the rubric's meaning of them.

Too little probability on legal answers makes a metric Unscored("off_contract"): at a forced choice any model looks
whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from .answer import NA, NO, YES
from .engine.choice import SlotReading
from .rubric import FlagSpec, Metric, Rubric
from .verdict import Flag, NotApplicable, Reading, Score, Scored, Unscored


def read_flags(rubric: Rubric, readings: Mapping[str, SlotReading], floor: float) -> dict[str, Flag]:
    """A flag from its own slot and its severity's; in contract `compact` one slot holds both."""
    return {f.name: _flag(f, readings, floor) for f in rubric.flags}


def _flag(flag: FlagSpec, readings: Mapping[str, SlotReading], floor: float) -> Flag:
    reading = readings[flag.name]
    if reading.legal_mass is not None and reading.legal_mass < floor:
        lost = Unscored("off_contract", f"legal mass {reading.legal_mass:.3f} under {floor}")
        return Flag(None, unscored=lost, legal_mass=reading.legal_mass, distribution=dict(reading.distribution))
    unset = flag.severity.unset if flag.severity is not None and reading.label not in (YES, NO) else NO
    severity, unread = None, None
    if flag.severity is not None and unset != NO:
        severity = reading.label
    elif flag.severity is not None:
        severity, unread = _severity(readings[flag.severity.name], floor)
    probability = 1.0 - reading.distribution[unset] if reading.distribution else None
    return Flag(
        value=reading.label != unset,
        severity=severity,
        probability=probability,
        unscored=unread,
        legal_mass=reading.legal_mass,
        distribution=dict(reading.distribution),
    )


def _severity(reading: SlotReading, floor: float) -> tuple[str | None, Unscored | None]:
    """None, and why, where too little probability lay on the levels: the flag is set, how severe is not known."""
    if reading.legal_mass is not None and reading.legal_mass < floor:
        return None, Unscored("off_contract", f"severity: legal mass {reading.legal_mass:.3f} under {floor}")
    return reading.label, None


def read_scores(
    rubric: Rubric, readings: Mapping[str, SlotReading], flags: Mapping[str, Flag], floor: float
) -> dict[str, Score]:
    """A score per metric; one that hangs on a flag is scored if and only if the flag is set."""
    scores: dict[str, Score] = {}
    for metric in rubric.metrics:
        reading = readings[metric.name]
        flag = flags[metric.flag] if metric.flag is not None else None
        if flag is not None and flag.value is None:
            scores[metric.name] = Unscored("off_contract", f"{metric.flag} could not be read")
        elif flag is not None and not flag.value:
            scores[metric.name] = NotApplicable(forced_by=metric.flag)
        else:
            scores[metric.name] = _score(metric, reading, floor)
    return scores


def _score(metric: Metric, reading: SlotReading, floor: float) -> Score:
    seen = metric_reading(metric, reading)
    if seen.legal_mass is not None and seen.legal_mass < floor:
        return Unscored("off_contract", f"legal mass {seen.legal_mass:.3f} under {floor}", seen)
    if reading.label == NA:
        return NotApplicable(reading=seen)
    return Scored(float(reading.label), seen)


def metric_reading(metric: Metric, reading: SlotReading) -> Reading:
    """p_na, expected value given that the metric applies, confidence of the chosen label, from the distribution."""
    numbers = {k: p for k, p in reading.distribution.items() if k != NA}
    mass = sum(numbers.values())
    expected = sum(float(k) * p for k, p in numbers.items()) / mass if mass > 0 else None
    return Reading(
        p_na=reading.distribution.get(NA, 0.0) if reading.distribution else None,
        expected=expected,
        confidence=reading.distribution.get(reading.label),
        legal_mass=reading.legal_mass,
        distribution=dict(reading.distribution) or None,
        near_tie=reading.near_tie,
    )
