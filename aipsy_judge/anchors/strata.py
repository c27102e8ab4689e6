"""Strata: where an expert's rating tells most. Every item is in exactly one, so that each has a known chance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..errors import RatingsError
from ..missed import flagged_metrics
from ..ratings import Ratings, make_yardstick
from ..ratings.overall import FOUND, overall_and_failing, score_cube
from ..ratings.table import Bools, Floats
from ..rubric import Rubric

# The first that applies counts; the shares are of the sample. A quarter of it is left to items about which nothing is
# remarkable: without them nobody would notice what every judge overlooks.
DEFAULT_SHARES: Mapping[str, float] = {
    "crisis": 0.25,
    "failure": 0.25,
    "unscored": 0.05,
    "disagreement": 0.20,
    "rest": 0.25,
}
MEANINGS: Mapping[str, str] = {
    "crisis": "a judge flags a crisis",
    "failure": "a judge sees a failure: a metric below its threshold, or the composite",
    "unscored": "a judge gave no score to any metric",
    "disagreement": "judges lie far apart on a metric",
    "rest": "none of these",
}
# Two points of a scale of 0 to 5.
DISAGREEMENT = 0.4


def stratify(ratings: Ratings, rubric: Rubric, *, disagreement: float = DISAGREEMENT) -> dict[str, NDArray[np.intp]]:
    """Stratum -> places in `ratings.items`, in their order; all strata together hold every item that a judge was asked
    about, once.

    disagreement  highest less lowest score of a metric, as a share of its scale, from which judges are far apart; that
                  one says N/A and another gives a score is no disagreement in this sense

    Raises RatingsError where no judge rated anything, or the table is not on the rubric's metrics and scales.
    """
    judges = ratings.judges
    if not judges:
        raise RatingsError("no judge's ratings in it", hint="Run `aipsy-judge panel` or `score --out` first.")
    if not set(rubric.metric_names) & set(ratings.metrics):
        raise RatingsError(f"none of the metrics of the rubric {rubric.name} is in the ratings")
    _refuse_unlike_scales(ratings, rubric)
    ratings = ratings.subset(raters=judges)
    yard = make_yardstick(ratings, rubric)
    scores, na, asked = score_cube(ratings, judges, yard)
    _, failing = overall_and_failing(ratings, yard, scores, na, asked[:, None, :])
    silent = np.isnan(scores).all(axis=2) & ~na.any(axis=2) & _was_asked(ratings, judges, yard.scored)
    marks = {
        "crisis": _flagged(ratings, rubric, judges),
        "failure": (failing == FOUND).any(axis=1),
        "unscored": silent.any(axis=1),
        "disagreement": _range(ratings, yard.scored, scores) >= disagreement,
        "rest": np.ones(len(ratings.items), dtype=bool),
    }
    left, found = asked.any(axis=1), {}
    for name, mark in marks.items():
        found[name] = np.flatnonzero(left & mark)
        left = left & ~mark
    return found


def _refuse_unlike_scales(ratings: Ratings, rubric: Rubric) -> None:
    unlike = []
    for metric in rubric.metrics:
        wanted = (metric.scale.minimum, metric.scale.maximum)
        low, high = ratings.scales.get(metric.name, wanted)
        if (low, high) != wanted:
            unlike.append(f"{metric.name} ({low:g}..{high:g}, not {wanted[0]}..{wanted[1]})")
    if unlike:
        raise RatingsError(
            f"not on the scales of the rubric {rubric.name}: {', '.join(unlike)}",
            hint="Name the rubric by which these ratings were made (--rubric FILE).",
        )


def _was_asked(ratings: Ratings, judges: tuple[str, ...], metrics: tuple[str, ...]) -> Bools:
    """(I, J) the judge has a row for some metric of the item."""
    asked = np.zeros((len(ratings.items), len(judges)), dtype=bool)
    for metric in metrics:
        matrix = ratings.matrix(metric, judges)
        asked[matrix.index] |= matrix.scored | matrix.na | matrix.unscored
    return asked


def _flagged(ratings: Ratings, rubric: Rubric, judges: tuple[str, ...]) -> Bools:
    """(I,) some judge sets a flag that a metric hangs on."""
    flagged = np.zeros(len(ratings.items), dtype=bool)
    for name in {m.flag for m in flagged_metrics(rubric) if m.flag is not None} & set(ratings.metrics):
        matrix = ratings.matrix(name, judges)
        flagged[matrix.index] |= (np.where(matrix.scored, matrix.values, 0) > 0).any(axis=1)
    return flagged


def _range(ratings: Ratings, metrics: tuple[str, ...], scores: Floats) -> Floats:
    """(I,) the widest range of judges' scores over the metrics, as a share of the scale; 0 where nobody scores."""
    widest: Floats = np.zeros(scores.shape[0])
    for m, metric in enumerate(metrics):
        low, high = ratings.scales[metric]
        column = scores[:, :, m]
        has = ~np.isnan(column)
        span = np.where(has, column, -np.inf).max(axis=1) - np.where(has, column, np.inf).min(axis=1)
        widest = np.maximum(widest, np.where(has.any(axis=1), span / (high - low), 0.0))
    return widest
