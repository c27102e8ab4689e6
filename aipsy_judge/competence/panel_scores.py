"""Everything the map reads, once, as arrays. Axes: `I` items, `J` judges, `M` metrics of quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..ratings import Ratings, Yardstick, inclusion_weights, reference
from ..ratings.table import Bools, Floats

FOUND, NOT_FOUND, UNKNOWN = 1.0, 0.0, float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class PanelScores:
    """scores       (I, J, M) score, NaN where there is none
    na           (I, J, M) does not apply
    asked        (I, M) somebody has a row for this metric of this item
    overall      (I, J) the composite, or without a rubric the mean of the metrics; NaN where a metric it needs is
                 missing
    failing      (I, J) 1 failure, 0 none, NaN unknown: a metric is missing and what is there does not fail
    reference_*  the same of the reference, (I, M) and (I,); NaN throughout where nobody is the reference
    weight       (I,) for comparisons with the reference: 1 / inclusion probability (mean 1), else 1
    overall_form what `overall` is
    """

    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    scores: Floats
    na: Bools
    asked: Bools
    overall: Floats
    failing: Floats
    reference_scores: Floats
    reference_overall: Floats
    reference_failing: Floats
    weight: Floats
    overall_form: str


def panel_scores(ratings: Ratings, judges: Sequence[str], held_right: Sequence[str], yard: Yardstick) -> PanelScores:
    """Read the table into arrays."""
    shape = (len(ratings.items), len(judges), len(yard.scored))
    scores, na = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    asked = np.zeros((shape[0], shape[2]), dtype=bool)
    held = np.full((shape[0], shape[2]), np.nan)
    held_na = np.zeros((shape[0], shape[2]), dtype=bool)
    for m, metric in enumerate(yard.scored):
        everybody = ratings.matrix(metric)
        asked[everybody.index, m] = True
        matrix = ratings.matrix(metric, judges)
        scores[matrix.index, :, m], na[matrix.index, :, m] = matrix.values, matrix.na
        if held_right:
            right = reference(ratings, metric, held_right)
            held[:, m], held_na[:, m] = right.values, right.na
    overall, failing = overall_and_failing(ratings, yard, scores, na, asked[:, None, :])
    right_overall, right_failing = overall_and_failing(ratings, yard, held, held_na, asked)
    return PanelScores(
        metrics=yard.scored,
        judges=tuple(judges),
        scores=scores,
        na=na,
        asked=asked,
        overall=overall,
        failing=failing,
        reference_scores=held,
        reference_overall=right_overall,
        reference_failing=right_failing,
        weight=_weights(ratings, ~np.isnan(held).all(axis=1)),
        overall_form=overall_form(ratings, yard),
    )


def _weights(ratings: Ratings, held: Bools) -> Floats:
    weight = np.ones(len(ratings.items))
    index = np.flatnonzero(held)
    known = inclusion_weights(ratings, index) if len(index) else None
    if known is not None:
        weight[index] = known / known.mean()
    return weight


def overall_form(ratings: Ratings, yard: Yardstick) -> str:
    """What the overall score is, in words."""
    if yard.weights:
        return f"composite of {yard.rubric}"
    alike = len({ratings.scales[m] for m in yard.scored}) == 1
    return "mean of the metrics" if alike else "mean of the metrics, each as a share of its scale"


def overall_and_failing(
    ratings: Ratings, yard: Yardstick, scores: Floats, na: Bools, asked: Bools
) -> tuple[Floats, Floats]:
    """Composite and failure of each rater's scores (..., M), by the rules of `composite.composite`.

    A metric that nobody was asked about does not belong to the item; one that this rater alone lacks is missing, and
    makes the overall score undefined.
    """
    present = ~np.isnan(scores)
    missing = ~present & ~na & asked
    weight = np.array([yard.weights.get(m, 0.0) if yard.weights else 1.0 for m in yard.scored])
    filled = np.where(present, _common_scale(ratings, yard, scores), 0.0)
    total = (present * weight).sum(axis=-1)
    lacks = (missing & (weight > 0)).any(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        overall = np.where((total > 0) & ~lacks, (filled * weight).sum(axis=-1) / total, np.nan)
    critical = np.array([yard.critical.get(m, -np.inf) for m in yard.scored])
    below = (present & (np.where(present, scores, np.inf) < critical)).any(axis=-1)
    if yard.failure_below is not None:
        below |= np.where(np.isnan(overall), np.inf, overall) < yard.failure_below
    # What could still turn out a failure: a missing weighted metric, or one with a threshold.
    open_question = (missing & ((weight > 0) | (critical > -np.inf))).any(axis=-1)
    nothing = ~present.any(axis=-1)
    failing: Floats = np.where(below, FOUND, np.where(open_question | nothing, UNKNOWN, NOT_FOUND))
    return overall, failing


def _common_scale(ratings: Ratings, yard: Yardstick, scores: Floats) -> Floats:
    if yard.weights or len({ratings.scales[m] for m in yard.scored}) == 1:
        return scores
    ends: NDArray[np.float64] = np.array([ratings.scales[m] for m in yard.scored])
    shares: Floats = (scores - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
    return shares
