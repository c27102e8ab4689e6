"""One metric of a ratings table as the arrays that the correction is fitted to, on the unit scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import RatingsError
from ..ratings import Labels, Matrix, Ratings, inclusion_weights, reference
from .metric_fit import Panel
from .numbers import Bools, Floats, Ints
from .severity import adjusted, severities

# Another metric helps only where the judges scored it on a fair share of this metric's items.
LEAST_SHARED = 0.2
LEAST_SPREAD = 1e-6


@dataclass(frozen=True, slots=True)
class Tail:
    """What counts as a failure: a score below `cut` (or at it, where `inclusive`), in points of the scale."""

    cut: float
    inclusive: bool = False

    def of(self, scores: Floats) -> Bools:
        """(n,) failures; NaN is none."""
        # A mean of experts may miss the cut by rounding alone.
        found: Bools = scores <= self.cut + 1e-9 if self.inclusive else scores < self.cut - 1e-9
        return found


@dataclass(frozen=True, slots=True, eq=False)
class MetricData:
    """I items that at least one judge scored.

    index     (I,) places in `Ratings.items`
    panel     judges (I, J) and others (I, M), NaN where there is no score
    expert    (I,) the reference, NaN where there is none; `leniency` (E,) of several experts, where adjusted for
    fails     (I,) the reference lies in the tail
    groups    (I,) conversation; weights (I,) 1 / inclusion probability, mean 1 over the anchors
    family    (I,) place in `families`, -1 unknown
    unjudged  items that have a reference and no judge's score: they cannot be anchors
    """

    metric: str
    scale: tuple[float, float]
    judges: tuple[str, ...]
    other_scales: dict[str, tuple[float, float]]
    index: Ints
    panel: Panel
    expert: Floats
    experts: tuple[str, ...]
    leniency: Floats | None
    fails: Bools
    cut: float
    groups: Ints
    weights: Floats
    family: Ints
    families: tuple[str, ...]
    unjudged: int

    @property
    def anchors(self) -> Bools:
        """(I,) items with a reference."""
        found: Bools = ~np.isnan(self.expert)
        return found


def metric_data(
    ratings: Ratings,
    metric: str,
    *,
    judges: Sequence[str],
    experts: Sequence[str],
    tail: Tail,
    beside: Sequence[str] = (),
    severity: bool = False,
) -> MetricData:
    """`judges` and `experts` are raters; `beside`: metrics whose scores by the same judges may help (not `metric`).

    severity  adjust for how severe each of several experts is (see `severity`)
    Raises RatingsError where no judge scored the metric.
    """
    low, high = ratings.scales[metric]
    matrix = ratings.matrix(metric, judges)
    scored = matrix.scored
    if not scored.any():
        raise RatingsError(f"no judge has a score on {metric}")
    used, rows = scored.any(axis=0), scored.any(axis=1)
    index = matrix.index[rows]
    expert, leniency = expert_values(ratings, metric, experts, severity)
    family, families = _families(ratings, index)
    others, names = _others(ratings, index, judges, [m for m in beside if m != metric])
    anchored = ~np.isnan(expert)
    return MetricData(
        metric=metric,
        scale=(low, high),
        judges=tuple(matrix.raters[j] for j in np.flatnonzero(used)),
        other_scales={m: ratings.scales[m] for m in names},
        index=index,
        panel=Panel((matrix.values[rows][:, used] - low) / (high - low), others),
        expert=(expert[index] - low) / (high - low),
        experts=tuple(experts),
        leniency=leniency,
        fails=tail.of(expert[index]),
        cut=(tail.cut - low) / (high - low),
        groups=ratings.groups()[index],
        weights=_weights(ratings, index, anchored[index]),
        family=family,
        families=families,
        unjudged=int(anchored.sum() - anchored[index].sum()),
    )


def expert_values(
    ratings: Ratings, metric: str, experts: Sequence[str], severity: bool
) -> tuple[Floats, Floats | None]:
    """(I,) reference in points of the scale over all items; leniency (E,) in points, where it was adjusted for."""
    if not experts or not _rates(ratings, metric, experts):
        return np.full(len(ratings.items), np.nan), None
    plain = reference(ratings, metric, experts)
    free = [r for r in experts if ratings.kinds[r] != "adjudicated"]
    if not severity or len(free) < 2:
        return plain.values, None
    matrix, (low, high) = ratings.matrix(metric, free), ratings.scales[metric]
    leniency = severities((matrix.values - low) / (high - low)) * (high - low)
    changed = np.clip(adjusted(matrix.values, leniency), low, high)
    values = plain.values.copy()
    mine = ~np.isnan(values[matrix.index]) & ~_settled(ratings, metric, experts)[matrix.index]
    values[matrix.index[mine]] = changed[mine]
    return values, leniency


def _rates(ratings: Ratings, metric: str, raters: Sequence[str]) -> bool:
    return bool(ratings.matrix(metric, raters).scored.any())


def _settled(ratings: Ratings, metric: str, experts: Sequence[str]) -> Bools:
    """(I,) an adjudicated score stands: no severity is taken off it."""
    found = np.zeros(len(ratings.items), dtype=bool)
    final = [r for r in experts if ratings.kinds[r] == "adjudicated"]
    if final:
        matrix: Matrix = ratings.matrix(metric, final)
        found[matrix.index] = matrix.scored.any(axis=1)
    return found


def _others(
    ratings: Ratings, index: Ints, judges: Sequence[str], metrics: Sequence[str]
) -> tuple[Floats, tuple[str, ...]]:
    """(I, M) mean over the judges of each other metric that is scored often enough and varies."""
    kept: dict[str, Floats] = {}
    for metric in metrics:
        matrix, (low, high) = ratings.matrix(metric, judges), ratings.scales[metric]
        wide = np.full(len(ratings.items), np.nan)
        count = matrix.scored.sum(axis=1)
        mean = np.where(matrix.scored, matrix.values, 0.0).sum(axis=1) / np.maximum(count, 1)
        wide[matrix.index] = np.where(count > 0, (mean - low) / (high - low), np.nan)
        here = wide[index]
        known = here[~np.isnan(here)]
        if len(known) >= LEAST_SHARED * len(index) and float(np.std(known)) > LEAST_SPREAD:
            kept[metric] = here
    table = np.column_stack(list(kept.values())) if kept else np.empty((len(index), 0))
    return table, tuple(kept)


def _families(ratings: Ratings, index: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Generator family of each item, or its generator where no families are told."""
    labels: Labels = ratings.generator if ratings.generator_family.is_empty() else ratings.generator_family
    return labels.codes[index], labels.names


def _weights(ratings: Ratings, index: Ints, anchored: Bools) -> Floats:
    found = np.ones(len(index))
    known = inclusion_weights(ratings, index[anchored]) if anchored.any() else None
    if known is not None:
        found[anchored] = known / known.mean()
    return found
