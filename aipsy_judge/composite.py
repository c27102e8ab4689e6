"""Composite, bands, failure rule. Undefined stays None; N/A leaves numerator and denominator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from .rubric import Rubric
from .verdict import Flag, Score, Scored, Unscored

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
    weighted = [(m.name, m.weight) for m in rubric.metrics if m.weight]
    present = [(scores[n].value, w) for n, w in weighted if isinstance(scores.get(n), Scored)]  # type: ignore[union-attr]
    unreadable = [n for n, _ in weighted if isinstance(scores.get(n), Unscored) or n not in scores]
    value: float | None = None
    reason: str | None = None
    if rubric.composite is None:
        reason = "the rubric defines no composite"
    elif unreadable:
        reason = f"unscored: {', '.join(unreadable)}"
    elif not present:
        reason = "no metric applies"
    else:
        value = _mean(present)
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
    unread = any(s.reason != "not_validated" for s in lost)
    raised = any(f.value or (f.value is None and f.unscored is None) for f in flags.values())
    return raised or unread or bool(composite(rubric, scores).failure)


def _mean(present: Sequence[tuple[float, float]]) -> float:
    """The weighted mean, rounded once, of weights taken as they are written: in floating point 5, 5, 3, 0, 0, 1 with
    the shipped weights came to 2.4999999999999996 and failed a threshold of 2.5 that they meet."""
    weights = [Fraction(str(w)) for _, w in present]
    return float(sum(Fraction(v) * w for (v, _), w in zip(present, weights, strict=True)) / sum(weights))


def _band(rubric: Rubric, value: float | None, failure: bool | None) -> Band | None:
    if failure:
        return "failure"
    if value is None or failure is None or rubric.composite is None:  # what may be a failure yet has no band
        return None
    return "ceiling" if value >= rubric.composite.ceiling_from else "middle"
