"""A fitted correction on new scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import LaneError
from ..ratings import Ratings
from .codec import from_centres, from_line
from .failure import failure_probability
from .numbers import Bools, Floats, Ints
from .record import Correction, MetricRecord
from .tail import tail_aware


@dataclass(frozen=True, slots=True, eq=False)
class Corrected:
    """One metric, I items, in points of the scale. NaN only where no judge gave a score.

    raw     (I,) equal mean of the judges who scored the item
    value   (I,) corrected, within the scale
    p_fail  (I,) or None where it is undefined (no threshold, or nothing but the prior to go by: see
            `MetricRecord.no_p_fail`); fails: p_fail >= the record's `flag_from`, None with p_fail
    filled  (I,) at least one judge's score was missing and filled in
    """

    metric: str
    raw: Floats
    value: Floats
    p_fail: Floats | None
    fails: Bools | None
    filled: Bools


def correct_scores(
    record: MetricRecord, judges: Floats, others: Floats, families: Sequence[str | None] | None = None
) -> Corrected:
    """judges (I, J) in the order of `record.judges`, others (I, M) in that of its other metrics, NaN where missing.

    A missing judge is filled in by regression on the scores that are there (see `fill`); weights are not changed.
    `families`: generator family of each item; an unknown one has no bias of its own.
    """
    basis = from_centres(record.centres, record.scale, record.judges)
    scales = record.centres.other_scales
    low, span = record.scale[0], record.scale[1] - record.scale[0]
    table = np.hstack([(judges - low) / span, _unit(others, list(scales.values()))])
    whole = basis.fill(table)
    scored = ~np.isnan(judges)
    own, beside = whole[:, : len(record.judges)], whole[:, len(record.judges) :]
    coefficients = from_line(basis.design, record.combined, record.scale, record.judges, scales)
    uncut = basis.design.columns(own, beside) @ coefficients
    value, p_fail = uncut, None
    if record.families is not None and families is not None:
        value = value + np.array([record.families.get(f or "", 0.0) for f in families]) / span
    value = np.clip(value, 0.0, 1.0)
    if record.failure is not None and record.no_p_fail is None:
        cut = (record.failure.below - low) / span
        p_fail = failure_probability(basis.design, np.array(record.failure.coefficients), uncut, own, beside, cut)
        if record.tail is not None:
            value = tail_aware(value, p_fail, (record.tail.failing - low) / span, record.tail.price)
    return _corrected(record, judges, low + span * value, p_fail, scored)


def apply_to_ratings(correction: Correction, ratings: Ratings) -> dict[str, tuple[Ints, Corrected]]:
    """metric -> (places in `Ratings.items`, values), for every metric of the correction that its judges scored here.

    Raises LaneError where none of its judges is in the table, or a metric stands on another scale.
    """
    known = [j for j in correction.judges if j in ratings.raters]
    if not known:
        raise LaneError(
            f"this correction is for {', '.join(correction.judges)}; the table has {', '.join(ratings.judges)}"
        )
    found = {}
    for metric, record in correction.metrics.items():
        if metric not in ratings.metrics:
            continue
        if tuple(ratings.scales[metric]) != tuple(record.scale):
            raise LaneError(f"{metric} is on {ratings.scales[metric]} here and on {record.scale} in the correction")
        index = _scored_items(ratings, metric, record.judges)
        if len(index):
            judges = np.column_stack([_scores(ratings, metric, [j])[index] for j in record.judges])
            others = [_scores(ratings, m, record.judges)[index] for m in record.centres.other_scales]
            table = np.column_stack(others) if others else np.empty((len(index), 0))
            found[metric] = (index, correct_scores(record, judges, table, _families(ratings, index)))
    return found


def _corrected(record: MetricRecord, judges: Floats, value: Floats, p_fail: Floats | None, scored: Bools) -> Corrected:
    nobody, filled = np.asarray(~scored.any(axis=1)), np.asarray(~scored.all(axis=1))
    count = np.maximum(scored.sum(axis=1), 1)
    raw = np.where(nobody, np.nan, np.where(scored, judges, 0.0).sum(axis=1) / count)
    if p_fail is not None:
        p_fail = np.where(nobody, np.nan, p_fail)
    fails = None if p_fail is None or record.failure is None else p_fail >= record.failure.flag_from
    return Corrected(record.metric, raw, np.where(nobody, np.nan, value), p_fail, fails, filled)


def _unit(others: Floats, scales: Sequence[tuple[float, float]]) -> Floats:
    low = np.array([s[0] for s in scales], dtype=np.float64)
    span = np.array([s[1] - s[0] for s in scales], dtype=np.float64)
    found: Floats = (others - low) / span
    return found


def _scores(ratings: Ratings, metric: str, judges: Sequence[str]) -> Floats:
    """(I,) mean of these judges on each item of the table, NaN where none scored it."""
    wide = np.full(len(ratings.items), np.nan)
    here = [j for j in judges if j in ratings.raters]
    if not here or metric not in ratings.metrics:
        return wide
    matrix = ratings.matrix(metric, here)
    count = matrix.scored.sum(axis=1)
    mean = np.where(matrix.scored, matrix.values, 0.0).sum(axis=1) / np.maximum(count, 1)
    wide[matrix.index] = np.where(count > 0, mean, np.nan)
    return wide


def _scored_items(ratings: Ratings, metric: str, judges: Sequence[str]) -> Ints:
    return np.flatnonzero(~np.isnan(_scores(ratings, metric, judges)))


def _families(ratings: Ratings, index: Ints) -> list[str | None]:
    labels = ratings.generator if ratings.generator_family.is_empty() else ratings.generator_family
    return [labels[int(i)] for i in index]
