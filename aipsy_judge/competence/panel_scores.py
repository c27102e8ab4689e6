"""Everything the map reads, once, as arrays. Axes: `I` items, `J` judges, `M` metrics of quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ratings import Ratings, Yardstick, inclusion_weights
from ..ratings.overall import overall_and_failing, overall_form, reference_table, score_cube
from ..ratings.table import Bools, Floats


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
    scores, na, asked = score_cube(ratings, judges, yard)
    held, held_na = reference_table(ratings, held_right, yard)
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
        weight=_weights(ratings, (~np.isnan(held)).sum(axis=1) > 0),
        overall_form=overall_form(ratings, yard),
    )


def _weights(ratings: Ratings, held: Bools) -> Floats:
    weight = np.ones(len(ratings.items))
    index = np.flatnonzero(held)
    known = inclusion_weights(ratings, index) if len(index) else None
    if known is not None:
        weight[index] = known / known.mean()
    return weight
