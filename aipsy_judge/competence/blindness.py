"""Failure blindness: of the failures that other judges see, how many does this one see?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..agreement.estimate import Beside, Estimate
from ..agreement.pairs import Ints
from ..agreement.resample import Bootstrap, Floats, Kernel
from ..agreement.sums import GroupSums, ratio
from ..ratings.table import Bools
from .panel_scores import PanelScores


@dataclass(frozen=True, slots=True)
class Blindness:
    """How much a judge sees of what others see; a low share is blindness.

    metric  None: an item fails by the failure rule; else: the metric is below its threshold
    loose   share of the items that at least one other judge marks a failure which this one marks too, 0..1
    strict  the same for items that every other judge marks (with two judges the same as loose)
    gap     loose - mean of the other judges' loose shares: below 0, it sees less than its peers see of each other
    """

    judge: str
    metric: str | None
    loose: Estimate
    strict: Estimate
    gap: Estimate


def blindness(
    failing: Floats, judges: tuple[str, ...], metric: str | None, groups: Ints, bootstrap: Bootstrap
) -> list[Blindness]:
    """For every judge, from (I, J) failing: 1, 0 or NaN (unknown). Items whose failing is unknown for the judge are
    left out of its share; another judge's unknown is no mark."""
    values, known = _counts(failing)
    sums = GroupSums(values, groups, int(groups.max()) + 1, bootstrap)
    return [_one(sums, values, known, judges, j, metric) for j in range(len(judges))]


def _one(
    sums: GroupSums, values: Floats, known: Bools, judges: tuple[str, ...], j: int, metric: str | None
) -> Blindness:
    loose, strict = int(values[:, 4 * j].sum()), int(values[:, 4 * j + 2].sum())
    beside: dict[str, Beside] = {"others_failures": loose, "strict": strict}
    dropped = int((~known[:, j]).sum())
    return Blindness(
        judges[j],
        metric,
        sums.estimate(
            "failures_seen",
            "share of what at least one other judge marks a failure",
            ratio(4 * j + 1, 4 * j),
            n=loose,
            otherwise="no other judge marks a failure",
            dropped=dropped,
            cases=4 * j,
            share=True,
            beside=beside,
        ),
        sums.estimate(
            "failures_seen_strict",
            "share of what every other judge marks a failure",
            ratio(4 * j + 3, 4 * j + 2),
            n=strict,
            otherwise="there is no failure that every other judge marks",
            dropped=dropped,
            cases=4 * j + 2,
            share=True,
            beside=beside,
        ),
        sums.estimate(
            "failures_seen_gap",
            "share seen - mean of the other judges' shares",
            _gap(j, len(judges)),
            n=loose,
            otherwise="a judge's share is undefined" if len(judges) > 2 else "fewer than three judges",
            dropped=dropped,
            cases=4 * j,
            beside=beside,
        ),
    )


def panel_blindness(
    panel: PanelScores, critical: Mapping[str, float], groups: Ints, bootstrap: Bootstrap
) -> list[Blindness]:
    """By the failure rule, and for every metric with a threshold."""
    found = blindness(panel.failing, panel.judges, None, groups, bootstrap)
    for m, metric in enumerate(panel.metrics):
        if metric in critical:
            scores = panel.scores[:, :, m]
            below = np.where(np.isnan(scores), np.nan, scores < critical[metric])
            found += blindness(below, panel.judges, metric, groups, bootstrap)
    return found


def _counts(failing: Floats) -> tuple[Floats, Bools]:
    """(I, 4 J): per judge, loose cases, those it sees, strict cases, those it sees; and (I, J) what is known."""
    known = ~np.isnan(failing)
    marks = failing == 1
    n_judges = failing.shape[1]
    values = np.zeros((len(failing), 4 * n_judges))
    for j in range(n_judges):
        others = np.delete(marks, j, axis=1)
        loose = others.any(axis=1) & known[:, j]
        strict = others.all(axis=1) & known[:, j] if n_judges > 1 else np.zeros(len(failing), dtype=bool)
        for offset, cases in enumerate((loose, loose & marks[:, j], strict, strict & marks[:, j])):
            values[:, 4 * j + offset] = cases
    return values, known


def _gap(j: int, n_judges: int) -> Kernel:
    def kernel(sums: Floats) -> Floats:
        shares = sums[:, 1::4] / sums[:, ::4]
        if n_judges < 3:  # two judges see the same share of each other's failures only if they mark equally many
            return np.full(len(sums), np.nan)
        found: Floats = shares[:, j] - np.delete(shares, j, axis=1).mean(axis=1)
        return found

    return kernel
