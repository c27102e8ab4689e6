"""Targets from ratings as they stand, without a correction: the mean of some raters, or one rater's own.

N/A, flags and severities are fused as for a corrected target, every rater with the same vote; p_fail is undefined, for
nothing has calibrated it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aipsy_judge.correction.answers import Answers
from aipsy_judge.correction.fusion import fused_flag, fused_na, fused_severity
from aipsy_judge.correction.target import MetricTarget, Targets
from aipsy_judge.rubric import FlagSpec, Metric, Rubric

from .votes import Floats

NO_P_FAIL = "not corrected: nothing calibrates p_fail"


def plain_targets(answers: Answers, rubric: Rubric) -> Targets:
    """Every metric and flag of the rubric; what nobody rated is unscored."""
    flags: dict[str, Floats] = {}
    severities: dict[str, Floats] = {}
    for spec in rubric.flags:
        flags[spec.name], severity = _flag(spec, answers)
        if severity is not None:
            severities[spec.name] = severity
    metrics = {m.name: _metric(m, answers, flags) for m in rubric.metrics}
    return Targets(answers.items, metrics, flags, severities)


def _flag(spec: FlagSpec, answers: Answers) -> tuple[Floats, Floats | None]:
    values, severity = answers.flags[spec.name], answers.severities.get(spec.name)
    level = np.full_like(values, np.nan) if severity is None else severity
    direct = None if spec.severity is None else float(len(spec.severity.levels) - 1)
    fused = fused_flag(values, level, np.ones(values.shape[1]), direct)
    return fused, None if severity is None else fused_severity(fused, values, severity)


def _metric(metric: Metric, answers: Answers, flags: Mapping[str, Floats]) -> MetricTarget:
    scores, na = answers.scores[metric.name], answers.na[metric.name]
    scored = ~np.isnan(scores)
    gone = fused_na(na, scored, np.ones(scores.shape[1])) & metric.may_be_na
    if metric.flag is not None:
        flag = flags[metric.flag]
        gone = np.where(np.isnan(flag), gone, flag == 0)
    count = scored.sum(axis=1)
    mean = np.where(count > 0, np.where(scored, scores, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)
    status = np.where(gone, "na", np.where(count > 0, "scored", "unscored"))
    value = np.where(gone, np.nan, mean)
    return MetricTarget(tuple(status.tolist()), value, value, None, None, NO_P_FAIL)
