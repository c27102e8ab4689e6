"""Composite, bands, failure rule. Undefined stays None; N/A leaves numerator and denominator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from .rubric import Rubric
from .verdict import Flag, Score, Scored, Unscored, is_held_back

Band = Literal["failure", "middle", "ceiling"]


@dataclass(frozen=True, slots=True)
class Composite:
    """The weighted mean of one unit.

    value    in points of the scale, or None with a `reason`
    failed   names of the metrics below their critical threshold
    failure  value < the rubric's failure_below, or any metric in `failed`; None where nothing failed but some
             metric with a weight or a critical threshold is unscored, or where the rubric says of nothing what a
             failure is: failure can be neither stated nor excluded
    """

    value: float | None
    reason: str | None
    band: Band | None
    failed: tuple[str, ...]
    failure: bool | None
    scored: int
    not_applicable: int
    unscored: int


def critical_failures(rubric: Rubric, scores: Mapping[str, Score]) -> tuple[str, ...]:
    """Metrics whose score lies strictly below their critical threshold, in the rubric's order."""
    return tuple(
        m.name
        for m in rubric.metrics
        if m.critical is not None and isinstance(s := scores.get(m.name), Scored) and s.value < m.critical
    )


def composite(rubric: Rubric, scores: Mapping[str, Score]) -> Composite:
    """sum(w·s) / sum(w) over the metrics that apply (Keeman and Keeman 2026, aipsy-bench data v1).

    A weighted metric that is Unscored (or missing) makes the value undefined: a mean over what happened to be
    readable would hide it. All metrics N/A: undefined, not 0.
    """
    unreadable = _unreadable(rubric, scores)
    exact = exact_composite(rubric, scores)
    value = float(exact) if exact is not None else None
    reason: str | None = None
    if rubric.composite is None:
        reason = "the rubric defines no composite"
    elif unreadable:
        reason = f"unscored: {', '.join(unreadable)}"
    elif value is None:
        reason = "no metric applies"
    failed = critical_failures(rubric, scores)
    low = value is not None and rubric.composite is not None and value < rubric.composite.failure_below
    failure: bool | None = bool(failed) or low
    critical = [m.name for m in rubric.metrics if m.critical is not None]
    if not failure and (unreadable or any(isinstance(scores.get(n), Unscored) or n not in scores for n in critical)):
        failure = None
    if rubric.composite is None and not critical:
        failure = None
    everything = list(scores.values())
    return Composite(
        value=value,
        reason=reason,
        band=_band(rubric, value, failure),
        failed=failed,
        failure=failure,
        scored=sum(isinstance(s, Scored) for s in everything),
        not_applicable=len(everything) - sum(isinstance(s, Scored | Unscored) for s in everything),
        unscored=sum(isinstance(s, Unscored) for s in everything),
    )


def wants_reason(rubric: Rubric, flags: Mapping[str, Flag], scores: Mapping[str, Score]) -> bool:
    """Whether a person should look at this unit, so that a rationale is worth its time: a flag that is set or could
    not be read, a failure, or a score that could not be had. What the judge is never believed on (not_validated) says
    nothing about this unit."""
    lost = [s for s in (*scores.values(), *(f.unscored for f in flags.values())) if isinstance(s, Unscored)]
    unread = any(not is_held_back(s) for s in lost)
    raised = any(f.value or (f.value is None and f.unscored is None) for f in flags.values())
    return raised or unread or bool(composite(rubric, scores).failure)


def exact_composite(rubric: Rubric, scores: Mapping[str, Score]) -> Fraction | None:
    """The value of `composite` before it is rounded, of weights taken as they are written; None where it has none.

    In floating point 5, 5, 3, 0, 0, 1 with the shipped weights came to 2.4999999999999996 and failed a threshold of 2.5
    that they meet. A mean of composites is taken of these, so that it too is rounded once.
    """
    if rubric.composite is None or _unreadable(rubric, scores):
        return None
    weighted = [(scores.get(m.name), Fraction(str(m.weight))) for m in rubric.metrics if m.weight]
    present = [(Fraction(s.value), w) for s, w in weighted if isinstance(s, Scored)]
    return sum((v * w for v, w in present), Fraction()) / sum(w for _, w in present) if present else None


def _unreadable(rubric: Rubric, scores: Mapping[str, Score]) -> list[str]:
    """The weighted metrics that are unscored or missing."""
    return [m.name for m in rubric.metrics if m.weight and isinstance(scores.get(m.name), Unscored | None)]


def _band(rubric: Rubric, value: float | None, failure: bool | None) -> Band | None:
    if failure:
        return "failure"
    if value is None or failure is None or rubric.composite is None:  # what may be a failure yet has no band
        return None
    return "ceiling" if value >= rubric.composite.ceiling_from else "middle"
