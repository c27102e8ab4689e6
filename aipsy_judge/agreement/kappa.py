"""Cohen's kappa: agreement on labels beyond what the two raters' label frequencies alone would give.

1: they always agree · 0: as often as by chance · below 0: less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .estimate import Estimate
from .library import stats_library
from .pair_statistic import Cells, PairStatistic, estimate_pair
from .pairs import Pairs, prevalence, raw_agreement
from .resample import Bootstrap, Floats

Weighting = Literal["unweighted", "linear", "quadratic"]
WEIGHTINGS: tuple[Weighting, ...] = ("unweighted", "linear", "quadratic")


def cohen_kappa(
    pairs: Pairs,
    *,
    labels: Sequence[float],
    weighting: Weighting = "unweighted",
    bootstrap: Bootstrap | None = None,
) -> Estimate:
    """Kappa over the rubric's `labels` (rising), -1..1.

    1 - sum(d o) / sum(d e): o observed shares of label pairs, e the product of the raters' label shares, d the
    distance of two labels: 1 if unlike, |i - j|, or (i - j)^2 (Cohen 1960, 1968; Artstein and Poesio 2008, eq. 10).

    Undefined where both raters use one and the same label throughout, and where a score is not a label (a mean of
    several people). The figure is scikit-learn's.

    >>> from aipsy_judge.agreement import make_pairs
    >>> cohen_kappa(make_pairs([1, 1, 0, 0], [1, 0, 0, 0]), labels=[0, 1]).value
    0.5
    """
    return estimate_pair(pairs, pair_kappa(labels, weighting), bootstrap)


def pair_kappa(labels: Sequence[float], weighting: Weighting) -> PairStatistic:
    legal = np.asarray(labels, dtype=np.float64)
    return PairStatistic(
        "kappa" if weighting == "unweighted" else f"kappa_{weighting}",
        f"Cohen's kappa, {weighting}",
        lambda table, counts: _kernel(table, counts, legal, weighting),
        lambda pairs: _why_not(pairs, legal),
        ("scikit-learn", lambda pairs: _sklearn(pairs, legal, weighting)),
        beside=prevalence(lambda scores: scores == labels[1]) if len(labels) == 2 else raw_agreement,
    )


def _why_not(pairs: Pairs, labels: Floats) -> str | None:
    off = ~np.isin(np.concatenate([pairs.x, pairs.y]), labels)
    if off.any():
        example = np.concatenate([pairs.x, pairs.y])[off][0]
        many = f"{int(off.sum())} scores are" if off.sum() > 1 else "1 score is"
        return f"{many} no step of the scale (such as {example:g})"
    if pairs.x[0] == pairs.y[0] and np.ptp(pairs.x) == 0 and np.ptp(pairs.y) == 0:
        return f"one class: both raters say {pairs.x[0]:g} throughout"
    return None


def _kernel(table: Cells, counts: Floats, labels: Floats, weighting: Weighting) -> Floats:
    i, j = np.searchsorted(labels, table.x), np.searchsorted(labels, table.y)
    distance = _distances(len(labels), weighting)
    observed = counts @ distance[i, j]
    rows = counts @ np.eye(len(labels))[i]
    columns = counts @ np.eye(len(labels))[j]
    expected = ((rows @ distance) * columns).sum(axis=1) / counts.sum(axis=1)
    found: Floats = np.where(expected > 0, 1 - observed / np.where(expected > 0, expected, 1), np.nan)
    return found


def _distances(k: int, weighting: Weighting) -> Floats:
    gap = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)
    return {"unweighted": np.minimum(gap, 1), "linear": gap, "quadratic": gap**2}[weighting]


def _sklearn(pairs: Pairs, labels: Floats, weighting: Weighting) -> float:
    i, j = np.searchsorted(labels, pairs.x), np.searchsorted(labels, pairs.y)
    weights = None if weighting == "unweighted" else weighting
    score = stats_library("sklearn.metrics").cohen_kappa_score
    return float(score(i, j, labels=np.arange(len(labels)), weights=weights))
