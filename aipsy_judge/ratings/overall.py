"""The overall score of an item and whether it fails, by rater: `composite.composite` for a whole table at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .reference import reference
from .table import Bools, Floats, Ratings
from .yardstick import Yardstick

OVERALL = "overall score"
FOUND, NOT_FOUND, UNKNOWN = 1.0, 0.0, float("nan")


def overall_of_raters(ratings: Ratings, raters: Sequence[str], yard: Yardstick) -> tuple[Floats, Floats]:
    """(I, R) overall score and failing (1, 0, NaN unknown) of each rater."""
    cube, na, asked = score_cube(ratings, raters, yard)
    return overall_and_failing(ratings, yard, cube, na, asked[:, None, :])


def overall_of_reference(ratings: Ratings, held_right: Sequence[str], yard: Yardstick) -> tuple[Floats, Floats]:
    """(I,) the same of the reference that these raters make."""
    held, na = reference_table(ratings, held_right, yard)
    return overall_and_failing(ratings, yard, held, na, asked_metrics(ratings, yard))


def score_cube(ratings: Ratings, raters: Sequence[str], yard: Yardstick) -> tuple[Floats, Bools, Bools]:
    """(I, R, M) scores and N/A of the metrics of quality, and (I, M) which of them anybody was asked about."""
    shape = (len(ratings.items), len(raters), len(yard.scored))
    scores, na = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    for m, metric in enumerate(yard.scored):
        matrix = ratings.matrix(metric, raters)
        scores[matrix.index, :, m], na[matrix.index, :, m] = matrix.values, matrix.na
    return scores, na, asked_metrics(ratings, yard)


def asked_metrics(ratings: Ratings, yard: Yardstick) -> Bools:
    """(I, M) somebody has a row for this metric of this item."""
    asked = np.zeros((len(ratings.items), len(yard.scored)), dtype=bool)
    for m, metric in enumerate(yard.scored):
        asked[ratings.matrix(metric).index, m] = True
    return asked


def reference_table(ratings: Ratings, held_right: Sequence[str], yard: Yardstick) -> tuple[Floats, Bools]:
    """(I, M) the reference's scores and N/A; without anybody to be right, NaN throughout."""
    held = np.full((len(ratings.items), len(yard.scored)), np.nan)
    na = np.zeros(held.shape, dtype=bool)
    for m, metric in enumerate(yard.scored if held_right else ()):
        right = reference(ratings, metric, held_right)
        held[:, m], na[:, m] = right.values, right.na
    return held, na


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
        # Rounded past what weights in floating point get wrong: a mean on a threshold is on it (composite.py).
        means = np.round((filled * weight).sum(axis=-1) / total, 12)
        overall = np.where((total > 0) & ~lacks, means, np.nan)
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
    if yard.weights or len({ratings.scales[m] for m in yard.scored}) <= 1:  # none in a table of flags alone
        return scores
    ends: NDArray[np.float64] = np.array([ratings.scales[m] for m in yard.scored])
    shares: Floats = (scores - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
    return shares
