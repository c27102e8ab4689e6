"""A correction of one judge on that judge's verdict: raw and corrected side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LaneError
from ..verdict import NotApplicable, Scored, Unscored, Verdict
from .apply import correct_scores
from .record import Correction, MetricRecord


@dataclass(frozen=True, slots=True)
class CorrectedScore:
    """One metric of one verdict, in points of the scale.

    raw     the judge's own score; None where it gave none, and then `reason` says why and nothing is corrected
    value   corrected; None with a `reason` where there is no raw score or no correction of this metric
    p_fail  probability that the expert would see a failure; fails: it is at or above the correction's limit; None
            where the metric has no threshold, p_fail would be its prior alone, or nothing was corrected; `reason`
            says which
    """

    raw: float | None
    value: float | None
    p_fail: float | None
    fails: bool | None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "raw": self.raw,
            "value": self.value,
            "p_fail": self.p_fail,
            "fails": self.fails,
            "reason": self.reason,
        }


def check_lane(correction: Correction, judge: str, rubric_hash: str) -> None:
    """Raise LaneError unless `correction` was fitted to this judge alone, with this rubric."""
    if correction.judges != [judge]:
        raise LaneError(
            f"this correction was fitted to {', '.join(correction.judges)}, not to {judge} alone",
            hint="Fit one to this judge: aipsy-judge correct fit RATINGS --rater JUDGE --expert RATER --out FILE",
        )
    if correction.rubric is None:
        raise LaneError(
            "this correction is bound to no rubric", hint="Fit it with --rubric NAME: a score means nothing without."
        )
    if correction.rubric.hash != rubric_hash:
        raise LaneError(
            f"this correction was fitted with rubric {correction.rubric.name} ({correction.rubric.hash[:12]}), "
            f"the verdict was made with {rubric_hash[:12]}"
        )


def apply_to_verdict(correction: Correction, verdict: Verdict) -> dict[str, CorrectedScore]:
    """metric -> raw and corrected, for every metric of the verdict.

    N/A and unscored stay what they are. Raises LaneError where the verdict is another judge's, or was made with
    another rubric, than the correction was fitted to.
    """
    told = verdict.provenance
    check_lane(correction, str(told.get("judge")), str(told.get("rubric")))
    return {name: _one(correction.metrics.get(name), name, verdict) for name in verdict.scores}


def _one(record: MetricRecord | None, metric: str, verdict: Verdict) -> CorrectedScore:
    match verdict.scores[metric]:
        case NotApplicable():
            return CorrectedScore(None, None, None, None, "not applicable")
        case Unscored(reason):
            return CorrectedScore(None, None, None, None, f"unscored: {reason}")
        case Scored(value):
            return _scored(record, float(value), verdict)


def _scored(record: MetricRecord | None, raw: float, verdict: Verdict) -> CorrectedScore:
    if record is None:
        return CorrectedScore(raw, None, None, None, "the correction has no such metric")
    if record.status != "fitted":
        return CorrectedScore(raw, None, None, None, "; ".join(record.warnings) or "not fitted")
    others = [[_value(verdict, m) for m in record.centres.other_scales]]
    table = np.array(others, dtype=np.float64).reshape(1, -1)
    found = correct_scores(record, np.array([[raw]]), table)
    return CorrectedScore(
        raw,
        float(found.value[0]),
        None if found.p_fail is None else float(found.p_fail[0]),
        None if found.fails is None else bool(found.fails[0]),
        record.no_p_fail,
    )


def _value(verdict: Verdict, metric: str) -> float:
    score = verdict.scores.get(metric)
    return float(score.value) if isinstance(score, Scored) else float("nan")
