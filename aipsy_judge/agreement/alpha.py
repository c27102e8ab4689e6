"""Krippendorff's alpha: agreement of any number of raters, missing ratings allowed.

1: no disagreement · 0: as much as chance would make · below 0: raters disagree systematically. One odd score among
a dozen equal ones gives 0: with hardly any variation chance agrees too. So raw agreement stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .estimate import Beside, Estimate, undefined
from .library import LIBRARY_ITEMS, confirmed, stats_library
from .pair_statistic import DENSE_LIMIT
from .pairs import Ints, numbered
from .resample import Bootstrap, Floats, interval, replicates

Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def krippendorff_alpha(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    level: Level = "ordinal",
    groups: Sequence[int] | Ints | None = None,
    n_groups: int | None = None,
    bootstrap: Bootstrap | None = None,
) -> Estimate:
    """Alpha of (I, R) scores, NaN where there is none; -inf < value <= 1.

    1 - (n - 1) sum(o d) / sum(n_c n_k d): o coincidences of values c and k within items, each item's pairs weighted
    1 / (its ratings - 1); n_c how often c occurs in them; d the squared distance of c and k: 1 if unlike (nominal),
    of their values (interval), of their mean ranks (ordinal) (Krippendorff 2011, Computing Krippendorff's
    Alpha-Reliability). Items with fewer than two ratings are left out and counted as dropped.

    Undefined where no item has two ratings, or where they do not vary. The figure is that of the krippendorff
    package.
    """
    bootstrap = bootstrap or Bootstrap()
    name, form = "alpha" if level == "ordinal" else f"alpha_{level}", f"Krippendorff's alpha, {level}"
    table = np.asarray(scores, dtype=np.float64)
    group, n_groups = numbered(len(table), groups, n_groups)
    pairable = (~np.isnan(table)).sum(axis=1) >= 2
    table, dropped = table[pairable], int((~pairable).sum())
    if len(table) == 0:
        return undefined(name, form, "no item has two ratings", n=0, dropped=dropped)
    values, counts = _value_counts(table)
    beside = _beside(table, counts)
    if len(values) == 1:
        reason = f"no variation: every score is {values[0]:g}"
        return undefined(name, form, reason, n=len(table), dropped=dropped, **beside)
    if n_groups * len(values) ** 2 > DENSE_LIMIT * 4:
        reason = f"{len(values)} distinct scores: round them to the steps of the scale"
        return undefined(name, form, reason, n=len(table), dropped=dropped, **beside)
    sums = _group_sums(counts, group[pairable], n_groups)
    value = float(_kernel(sums.sum(axis=0)[None], values, level)[0])
    if len(table) <= LIBRARY_ITEMS:
        library = stats_library("krippendorff").alpha
        told = float(library(value_counts=counts, value_domain=values, level_of_measurement=level))
        value = confirmed(told, value, "krippendorff")
    found = replicates(sums, lambda s: _kernel(s, values, level), bootstrap)
    spread = interval(found, len(np.unique(group[pairable])), bootstrap)
    return Estimate(name, form, value, len(table), None, dropped, spread, beside)


def _value_counts(table: Floats) -> tuple[Floats, Ints]:
    """The V values that occur, rising, and (I, V) how many raters gave each."""
    item, rater = np.nonzero(~np.isnan(table))
    values, code = np.unique(table[item, rater], return_inverse=True)
    counts = np.bincount(item * len(values) + code, minlength=len(table) * len(values))
    return values, counts.reshape(len(table), len(values))


def _beside(table: Floats, counts: Ints) -> dict[str, Beside]:
    """Share of the pairs of ratings within items that are equal, and of the most frequent score."""
    per_item = counts.sum(axis=1)
    equal, all_pairs = (counts * (counts - 1)).sum(), (per_item * (per_item - 1)).sum()
    return {
        "raters": int((~np.isnan(table)).any(axis=0).sum()),
        "ratings": int(per_item.sum()),
        "agreement": float(equal / all_pairs),
        "modal_share": float(counts.sum(axis=0).max() / per_item.sum()),
    }


def _group_sums(counts: Ints, group: Ints, n_groups: int) -> Floats:
    """(G, V * V) coincidences within each group."""
    per_item, v = counts.sum(axis=1), counts.shape[1]
    sums = np.zeros((n_groups, v * v))
    for c in range(v):
        for k in range(v):
            pairs = counts[:, c] * (counts[:, k] - (c == k)) / (per_item - 1)
            sums[:, c * v + k] = np.bincount(group, pairs, minlength=n_groups)
    return sums


def _kernel(sums: Floats, values: Floats, level: Level) -> Floats:
    b, v = len(sums), len(values)
    coincidences = sums.reshape(b, v, v)
    occurrences = coincidences.sum(axis=2)
    n = occurrences.sum(axis=1)
    distance = _distances(occurrences, values, level)
    observed = (coincidences * distance).sum(axis=(1, 2))
    expected = np.einsum("bc,bck,bk->b", occurrences, np.broadcast_to(distance, coincidences.shape), occurrences)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(expected > 0, 1 - (n - 1) * observed / expected, np.nan)
    return found


def _distances(occurrences: Floats, values: Floats, level: Level) -> Floats:
    """(B, V, V) or (V, V) squared distances."""
    if level == "nominal":
        return 1 - np.eye(len(values))
    if level == "interval":
        return np.subtract.outer(values, values) ** 2
    ranks = np.cumsum(occurrences, axis=1) - occurrences / 2
    found: Floats = (ranks[:, :, None] - ranks[:, None, :]) ** 2
    return found
