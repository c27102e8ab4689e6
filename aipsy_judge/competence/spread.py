"""Spread: does a judge use its scale, or does everything sit at the top?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..agreement.estimate import Estimate
from ..agreement.pairs import Ints
from ..agreement.resample import Bootstrap, Floats
from ..agreement.sums import GroupSums, ratio
from ..ratings import Ratings
from .panel_scores import PanelScores

MOST_STEPS = 101


@dataclass(frozen=True, slots=True)
class ScaleUse:
    """How one rater uses the scale of one metric.

    top      share of its scores at the highest step, 0..1
    excess   that share - the reference's, on the items that both scored: above 0, it sees the top too often
    entropy  Shannon entropy of its scores over the steps of the scale, in bits; `most` if all were as frequent
    counts   (step, number of scores) for every step; scores between two steps count at the nearest
    """

    rater: str
    metric: str
    top: Estimate
    excess: Estimate
    entropy: Estimate
    most: float
    counts: tuple[tuple[float, int], ...]


def scale_use(ratings: Ratings, panel: PanelScores, groups: Ints, bootstrap: Bootstrap) -> list[ScaleUse]:
    """For every judge and metric."""
    return [
        _one(panel, j, m, ratings.scales[metric], groups, bootstrap)
        for j in range(len(panel.judges))
        for m, metric in enumerate(panel.metrics)
    ]


def _one(
    panel: PanelScores, j: int, m: int, scale: tuple[float, float], groups: Ints, bootstrap: Bootstrap
) -> ScaleUse:
    scores, held = panel.scores[:, j, m], panel.reference_scores[:, m]
    low, high = scale
    steps = np.arange(math.ceil(low), math.floor(high) + 1) if high - low < MOST_STEPS else np.linspace(low, high, 11)
    given = ~np.isnan(scores)
    nearest = np.abs(scores[given][:, None] - steps[None, :]).argmin(axis=1) if given.any() else np.zeros(0, dtype=int)
    # A count a step, and the scores that stand at the very top.
    used = np.column_stack([np.eye(len(steps))[nearest], scores[given] >= high])
    use = GroupSums(used, groups[given], int(groups.max()) + 1, bootstrap)
    both = given & ~np.isnan(held)
    more = (scores[both] >= high).astype(np.float64) - (held[both] >= high)
    paired = np.stack([panel.weight[both], panel.weight[both] * more], axis=1)
    n, nothing, k = int(given.sum()), "no scores", len(steps)
    return ScaleUse(
        rater=panel.judges[j],
        metric=panel.metrics[m],
        top=use.estimate(
            "top_share",
            "share of scores at the highest step",
            lambda s: s[:, k] / s[:, :k].sum(axis=1),
            n=n,
            otherwise=nothing,
            share=True,
        ),
        excess=GroupSums(paired, groups[both], int(groups.max()) + 1, bootstrap).estimate(
            "top_excess",
            "share at the highest step - the reference's, same items",
            ratio(1, 0),
            n=int(both.sum()),
            dropped=n - int(both.sum()),
            otherwise="no item was scored by both",
        ),
        entropy=use.estimate(
            "entropy",
            "Shannon entropy of the scores, bits",
            lambda s: _entropy(s[:, :k]),
            n=n,
            otherwise=nothing,
        ),
        most=math.log2(k),
        counts=tuple(zip(steps.tolist(), np.bincount(nearest, minlength=k).tolist(), strict=True)),
    )


def _entropy(sums: Floats) -> Floats:
    share = sums / sums.sum(axis=1, keepdims=True)
    found: Floats = -(np.where(share > 0, share * np.log2(np.where(share > 0, share, 1)), 0)).sum(axis=1)
    return np.abs(found)
