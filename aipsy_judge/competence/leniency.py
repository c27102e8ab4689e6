"""Leniency by generator family: whose replies does a judge overrate?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..agreement.estimate import Estimate
from ..agreement.pairs import Ints
from ..agreement.resample import Bootstrap, Floats, Kernel
from ..agreement.sums import GroupSums, ratio
from ..ratings.overall import OVERALL
from .panel_scores import PanelScores


@dataclass(frozen=True, slots=True)
class FamilyLeniency:
    """One judge, metric and family. `metric` may be OVERALL, the overall score.

    bias   mean of judge - reference on the family's replies, in points
    extra  that bias - the median of its biases on the other families' replies: how much more lenient it is with
           these. (The median, so that one favoured family does not make the judge look strict with all others.)
    """

    judge: str
    metric: str
    family: str
    bias: Estimate
    extra: Estimate


def family_leniency(
    panel: PanelScores,
    families: Sequence[str],
    item_family: Sequence[str | None],
    groups: Ints,
    bootstrap: Bootstrap,
    *,
    against_peers: bool,
) -> list[FamilyLeniency]:
    """For every judge and family, overall and a metric at a time. `against_peers`: with nobody as reference, the
    mean of the other judges stands for it. Nothing where the families of the replies are unknown."""
    if not families:
        return []
    column = np.array([families.index(f) if f is not None else -1 for f in item_family])
    found = []
    for m, metric in enumerate((OVERALL, *panel.metrics)):
        scores = panel.overall if m == 0 else panel.scores[:, :, m - 1]
        held = panel.reference_overall if m == 0 else panel.reference_scores[:, m - 1]
        for j, judge in enumerate(panel.judges):
            peers = np.delete(scores, j, axis=1)
            right = held if not against_peers or peers.shape[1] == 0 else peers.mean(axis=1)
            gap = scores[:, j] - right
            weight = np.ones(len(gap)) if against_peers else panel.weight
            found += _one(judge, metric, families, column, gap, weight, groups, bootstrap)
    return found


def _one(
    judge: str,
    metric: str,
    families: Sequence[str],
    column: Ints,
    gap: Floats,
    weight: Floats,
    groups: Ints,
    bootstrap: Bootstrap,
) -> list[FamilyLeniency]:
    n = len(families)
    use = ~np.isnan(gap) & (column >= 0)
    values = np.zeros((int(use.sum()), 2 * n))
    rows = np.arange(len(values))
    values[rows, column[use]], values[rows, n + column[use]] = weight[use], weight[use] * gap[use]
    sums = GroupSums(values, groups[use], int(groups.max()) + 1, bootstrap)
    found = []
    for f, family in enumerate(families):
        items = int((column[use] == f).sum())
        dropped = int(((column == f) & np.isnan(gap)).sum())
        bias = sums.estimate(
            "family_bias",
            "mean of judge - reference on this family's replies",
            ratio(n + f, f),
            n=items,
            dropped=dropped,
            otherwise="no reply of this family was scored by both",
            cases=f,
        )
        extra = sums.estimate(
            "family_extra",
            "bias on this family's replies - median of the biases on the other families'",
            _extra(f, n),
            n=items,
            dropped=dropped,
            otherwise="fewer than two families were scored by both",
        )
        found.append(FamilyLeniency(judge, metric, family, bias, extra))
    return found


def _extra(f: int, n: int) -> Kernel:
    def kernel(sums: Floats) -> Floats:
        means = sums[:, n:] / sums[:, :n]
        others = np.delete(means, f, axis=1)
        found = np.full(len(sums), np.nan)
        known = ~np.isnan(others).all(axis=1)
        found[known] = means[known, f] - np.nanmedian(others[known], axis=1)
        return found

    return kernel
