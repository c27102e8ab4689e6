"""Yardstick: what scores are held against (thresholds, weights, flags), from a rubric or from the scales alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import RatingsError
from ..rubric import Metric, Rubric
from .table import Floats, Ratings

MOST_LABELS = 21


@dataclass(frozen=True, slots=True)
class Yardstick:
    """For the metrics of one ratings table.

    scored         metrics with a scale of quality, in the table's order; higher is better
    flags          metrics on 0..1 that are yes or no, and `levels`: severities of a flag
    critical       metric -> a score strictly below is a failure; metrics without a threshold are not in it
    weights        metric -> share in the composite; empty where there is no composite
    failure_below  a composite strictly below is a failure, or None
    flag_of        metric -> the flag it hangs on
    notes          what was taken for granted
    """

    scored: tuple[str, ...]
    flags: tuple[str, ...]
    levels: tuple[str, ...]
    critical: Mapping[str, float]
    weights: Mapping[str, float]
    failure_below: float | None
    flag_of: Mapping[str, str]
    rubric: str | None = None
    rubric_hash: str | None = None
    notes: tuple[str, ...] = field(default=())


def make_yardstick(
    ratings: Ratings, rubric: Rubric | None = None, *, critical: Mapping[str, float | None] | None = None
) -> Yardstick:
    """Thresholds and weights from `rubric` where it knows the metric; else a failure is a score below the middle of
    the scale and there is no composite. `critical` overrides a metric's threshold (None: it has none).

    Raises RatingsError where a metric stands on another scale than in the rubric, or `critical` is off its scale.
    """
    told = critical or {}
    known = {m.name: m for m in rubric.metrics} if rubric is not None else {}
    levels = _severities(ratings, rubric)
    flags = tuple(m for m in ratings.metrics if ratings.scales[m] == (0, 1) and m not in levels)
    scored = tuple(m for m in ratings.metrics if m not in flags and m not in levels)
    _refuse_unlike_scales(ratings, [known[m] for m in scored if m in known])
    thresholds, notes = _thresholds(ratings, scored, {m: s.critical for m, s in known.items()}, told)
    weights = {m: s.weight for m, s in known.items() if s.weight}
    whole = bool(weights) and set(weights) <= set(scored)
    if rubric is not None and weights and not whole:
        notes.append(f"no composite: the table lacks {', '.join(m for m in weights if m not in scored)}")
    composite = rubric.composite if rubric is not None and whole else None
    return Yardstick(
        scored=scored,
        flags=flags,
        levels=levels,
        critical=thresholds,
        weights=weights if composite is not None else {},
        failure_below=composite.failure_below if composite is not None else None,
        flag_of={m: s.flag for m, s in known.items() if s.flag is not None and s.flag in flags},
        rubric=rubric.name if rubric is not None else None,
        rubric_hash=rubric.hash if rubric is not None else None,
        notes=tuple(notes),
    )


def labels(ratings: Ratings, metric: str) -> tuple[float, ...]:
    """The whole-number steps of a metric's scale; none for a scale that has no such steps, or too many."""
    low, high = ratings.scales[metric]
    if low != int(low) or high != int(high) or high - low >= MOST_LABELS:
        return ()
    return tuple(float(v) for v in range(int(low), int(high) + 1))


def inclusion_weights(ratings: Ratings, index: NDArray[np.integer]) -> Floats | None:
    """1 / inclusion probability of these items, or None where none was drawn with a known probability.

    Raises RatingsError where only some have one: an unknown weight cannot be filled in.
    """
    chance = ratings.inclusion[index]
    unknown = np.isnan(chance)
    if unknown.all():
        return None
    if unknown.any():
        example = ratings.items[int(index[unknown][0])]
        raise RatingsError(
            f"{int(unknown.sum())} of {len(chance)} rated items have no inclusion probability (such as {example})",
            hint="Give one to every item that an expert rated, or to none.",
        )
    weights: Floats = 1.0 / chance
    return weights


def _severities(ratings: Ratings, rubric: Rubric | None) -> tuple[str, ...]:
    named = {f.severity.name for f in rubric.flags if f.severity is not None} if rubric is not None else set()
    return tuple(m for m in ratings.metrics if m in named)


def _refuse_unlike_scales(ratings: Ratings, metrics: Sequence[Metric]) -> None:
    for metric in metrics:
        low, high = ratings.scales[metric.name]
        if (low, high) != (metric.scale.minimum, metric.scale.maximum):
            raise RatingsError(
                f"{metric.name} is on {low:g}..{high:g} in the table and on "
                f"{metric.scale.minimum}..{metric.scale.maximum} in the rubric",
                hint=f"Convert it (--scale {metric.name}={metric.scale.minimum}:{metric.scale.maximum}) "
                "or leave the rubric out (--rubric none).",
            )


def _thresholds(
    ratings: Ratings,
    scored: Sequence[str],
    known: Mapping[str, float | None],
    told: Mapping[str, float | None],
) -> tuple[dict[str, float], list[str]]:
    unknown = [m for m in told if m not in scored]
    if unknown:
        raise RatingsError(f"a threshold for {', '.join(unknown)}, of which the table holds no scores")
    found: dict[str, float] = {}
    middle = []
    for metric in scored:
        low, high = ratings.scales[metric]
        if metric in told or metric in known:
            value = told[metric] if metric in told else known[metric]
            if value is not None and not low < value <= high:
                raise RatingsError(f"threshold {value:g} of {metric} is not within its scale {low:g}..{high:g}")
        else:
            value = (low + high) / 2
            middle.append(f"{metric} below {value:g}")
        if value is not None:
            found[metric] = value
    notes = [f"no threshold in the rubric, the middle of the scale is taken: {', '.join(middle)}"] if middle else []
    return found, notes
