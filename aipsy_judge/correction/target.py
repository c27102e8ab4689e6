"""The target: what the corrected panel says of each item, scores, N/A, flags and severity together.

Order of the rules: flags are fused first; a metric that hangs on a flag is N/A where the fused flag is not set; any
other metric is N/A where at least half of the votes say so; what is left gets its corrected value and p_fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LaneError
from ..rubric import FlagSpec, Metric, Rubric
from .answers import Answers
from .apply import correct_scores
from .fusion import fused_flag, fused_na, fused_severity
from .numbers import Bools, Floats
from .record import Correction, FlagRecord, MetricRecord

NOT_APPLICABLE, NO_SCORE = "not applicable", "no judge gave a score"


@dataclass(frozen=True, slots=True, eq=False)
class MetricTarget:
    """(I,) each, in points of the scale: value and raw are NaN where N/A or where no judge gave a score (`status`:
    "scored", "na" or "unscored"); p_fail and fails are None where they are undefined, and `no_p_fail` says why."""

    status: tuple[str, ...]
    raw: Floats
    value: Floats
    p_fail: Floats | None
    fails: Bools | None
    no_p_fail: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """flags: (I,) 1, 0 or NaN (unreadable); severities: (I,) levels above "not set" or NaN."""

    items: tuple[str, ...]
    metrics: Mapping[str, MetricTarget]
    flags: Mapping[str, Floats]
    severities: Mapping[str, Floats]

    def rows(self) -> Iterator[dict[str, Any]]:
        """An item a row, as strict JSON data."""
        for i, item in enumerate(self.items):
            yield {
                "item_id": item,
                "scores": {name: _cell(target, i) for name, target in self.metrics.items()},
                "flags": {name: _yes_no(values[i]) for name, values in self.flags.items()},
                "severities": {name: _level(values[i]) for name, values in self.severities.items()},
            }


def make_targets(correction: Correction, answers: Answers, rubric: Rubric) -> Targets:
    """Raises LaneError where the answers are not by the correction's judges, or the rubric is another one."""
    _refuse_unlike(correction, answers, rubric)
    flags: dict[str, Floats] = {}
    severities: dict[str, Floats] = {}
    for spec in rubric.flags:
        flags[spec.name], severity = _flag(correction.flags.get(spec.name), spec, answers)
        if severity is not None:
            severities[spec.name] = severity
    known = [m for m in rubric.metrics if m.name in correction.metrics]
    found = {m.name: _metric(correction.metrics[m.name], m, answers, flags) for m in known}
    return Targets(answers.items, found, flags, severities)


def _refuse_unlike(correction: Correction, answers: Answers, rubric: Rubric) -> None:
    if correction.rubric is not None and correction.rubric.hash != rubric.hash:
        raise LaneError(f"the correction was fitted with rubric {correction.rubric.name}, not with {rubric.name}")
    missing = [j for j in correction.judges if j not in answers.judges]
    if missing:
        raise LaneError(f"there are no answers for {', '.join(missing)}, whom the correction was fitted to")


def _flag(record: FlagRecord | None, spec: FlagSpec, answers: Answers) -> tuple[Floats, Floats | None]:
    values = answers.flags[spec.name]
    severity = answers.severities.get(spec.name)
    told = record.votes if record is not None else dict.fromkeys(answers.judges, 1.0)
    votes = np.array([told.get(j, 0.0) for j in answers.judges])
    direct = None if spec.severity is None else float(len(spec.severity.levels) - 1)
    level = np.full_like(values, np.nan) if severity is None else severity
    fused = fused_flag(values, level, votes, direct)
    return fused, None if severity is None else fused_severity(fused, values, severity)


def _metric(record: MetricRecord, metric: Metric, answers: Answers, flags: Mapping[str, Floats]) -> MetricTarget:
    place = [answers.judges.index(j) for j in record.judges]
    scores, na = answers.scores[metric.name][:, place], answers.na[metric.name][:, place]
    votes = np.array([record.votes[j] for j in record.judges])
    not_applicable = fused_na(na, ~np.isnan(scores), votes) & metric.may_be_na
    if metric.flag is not None:
        flag = flags[metric.flag]
        not_applicable = np.where(np.isnan(flag), not_applicable, flag == 0)
    others = [_mean(answers.scores[m][:, place]) for m in record.centres.other_scales]
    table = np.column_stack(others) if others else np.empty((len(scores), 0))
    found = correct_scores(record, scores, table, answers.families)
    unscored = np.isnan(found.value)
    gone = not_applicable | unscored
    status = np.where(not_applicable, "na", np.where(unscored, "unscored", "scored"))
    return MetricTarget(
        status=tuple(status.tolist()),
        raw=np.where(gone, np.nan, found.raw),
        value=np.where(gone, np.nan, found.value),
        p_fail=None if found.p_fail is None else np.where(gone, np.nan, found.p_fail),
        fails=None if found.fails is None else found.fails & ~gone,
        no_p_fail=record.no_p_fail,
    )


def _mean(scores: Floats) -> Floats:
    """(I,) mean over the judges who gave a score, NaN where none did."""
    scored = ~np.isnan(scores)
    count = scored.sum(axis=1)
    total = np.where(scored, scores, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _cell(target: MetricTarget, i: int) -> dict[str, Any]:
    if target.status[i] != "scored":
        status = target.status[i]
        reason = NOT_APPLICABLE if status == "na" else NO_SCORE
        return {"status": status, "value": None, "raw": None, "p_fail": None, "fails": None, "reason": reason}
    return {
        "status": "scored",
        "value": float(target.value[i]),
        "raw": float(target.raw[i]),
        "p_fail": None if target.p_fail is None else float(target.p_fail[i]),
        "fails": None if target.fails is None else bool(target.fails[i]),
        "reason": target.no_p_fail,
    }


def _yes_no(value: float) -> bool | None:
    return None if np.isnan(value) else bool(value)


def _level(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
