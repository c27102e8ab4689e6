"""The figures of a correction, each with n, form and interval."""

from __future__ import annotations

import numpy as np

from ..agreement import (
    Bootstrap,
    Estimate,
    failure_auc,
    failure_precision,
    failure_recall,
    mae,
    make_pairs,
    rmse,
    spearman,
)
from ..agreement.library import stats_library
from .assess import BLEND, BY_FAMILY, OutOfFold
from .ladder import Anchors
from .metric_data import Tail
from .numbers import Floats
from .record import Figure, Range

P_FAIL, TAIL_AWARE = "p_fail", "blend, tail-aware"
IN_FULL = (BLEND, BY_FAMILY, TAIL_AWARE, "mean of the judges", "published rule")
JUST_ABOVE = 1e-6  # agreement figures know only "strictly below"


def figures(
    ways: OutOfFold, anchors: Anchors, scale: tuple[float, float], tail: Tail | None, flag_from: float, often: Bootstrap
) -> dict[str, dict[str, Figure]]:
    """way -> figure -> value, in points of the scale. `tail` None: the metric has no threshold."""
    found = {}
    for name, values in ways.values.items():
        found[name] = _of_values(_points(values, scale), anchors, scale, tail if name in IN_FULL else None, often)
        if name not in IN_FULL:
            found[name] = {"rmse": found[name]["rmse"]}
    if tail is not None:
        found[P_FAIL] = _of_probabilities(ways.p_fail, anchors, scale, tail, flag_from, often)
    return found


def to_figure(estimate: Estimate) -> Figure:
    reason = estimate.reason
    if reason is None and estimate.interval is not None and estimate.interval.reason is not None:
        reason = f"no interval: {estimate.interval.reason}"
    return Figure(estimate.value, estimate.low, estimate.high, estimate.n, estimate.form, reason)


def jackknife(without: Floats, whole: float) -> Range:
    """95 % interval of a figure from its values with each of F folds left out (delete-a-group jackknife)."""
    count = len(without)
    if count < 3:
        return Range(None, None, "fewer than 3 folds")
    error = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    reach = float(stats_library("scipy.stats").t.ppf(0.975, count - 1)) * error
    return Range(whole - reach, whole + reach)


def _of_values(
    values: Floats, anchors: Anchors, scale: tuple[float, float], tail: Tail | None, often: Bootstrap
) -> dict[str, Figure]:
    pairs = make_pairs(values, _points(anchors.expert, scale), groups=anchors.groups, weights=anchors.weights)
    found = {"rmse": rmse(pairs, bootstrap=often)}
    if tail is not None:
        found |= {"failure_auc": failure_auc(pairs, critical=_critical(tail), bootstrap=often)}
        found |= {"failure_recall": failure_recall(pairs, critical=_critical(tail), bootstrap=often)}
        found |= {"failure_precision": failure_precision(pairs, critical=_critical(tail), bootstrap=often)}
    found |= {"mae": mae(pairs, bootstrap=often), "spearman": spearman(pairs, bootstrap=often)}
    return {name: to_figure(estimate) for name, estimate in found.items()}


def _of_probabilities(
    p_fail: Floats, anchors: Anchors, scale: tuple[float, float], tail: Tail, flag_from: float, often: Bootstrap
) -> dict[str, Figure]:
    """p_fail as a detector; a flagged item stands as the bottom of the scale, another as its top."""
    expert, critical = _points(anchors.expert, scale), _critical(tail)
    ranked = make_pairs(-p_fail, expert, groups=anchors.groups, weights=anchors.weights)
    flagged = make_pairs(
        np.where(p_fail >= flag_from, scale[0], scale[1]), expert, groups=anchors.groups, weights=anchors.weights
    )
    brier = Figure(
        float(np.average((p_fail - anchors.fails) ** 2, weights=anchors.weights)),
        None,
        None,
        len(p_fail),
        "mean of (p_fail - failed)^2",
    )
    return {
        "failure_auc": to_figure(failure_auc(ranked, critical=critical, bootstrap=often)),
        "failure_recall": to_figure(failure_recall(flagged, critical=critical, bootstrap=often)),
        "failure_precision": to_figure(failure_precision(flagged, critical=critical, bootstrap=often)),
        "brier": brier,
    }


def _critical(tail: Tail) -> float:
    return tail.cut + JUST_ABOVE if tail.inclusive else tail.cut


def _points(values: Floats, scale: tuple[float, float]) -> Floats:
    found: Floats = scale[0] + (scale[1] - scale[0]) * values
    return np.round(found, 9)
