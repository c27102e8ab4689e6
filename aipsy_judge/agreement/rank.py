"""Spearman's rank correlation: do two raters put the items in the same order?"""

from __future__ import annotations

import numpy as np

from .estimate import Estimate
from .library import stats_library
from .pair_statistic import Cells, PairStatistic, estimate_pair
from .pairs import Ints, Pairs
from .resample import Bootstrap, Floats

FEWEST_ITEMS = 3


def spearman(pairs: Pairs, *, bootstrap: Bootstrap | None = None) -> Estimate:
    """Spearman's rho, -1..1: Pearson's correlation of the ranks, ties at their mean rank (Spearman 1904).

    Undefined for fewer than 3 items, or where one rater's scores do not vary. The figure is scipy's.

    >>> from aipsy_judge.agreement import make_pairs
    >>> spearman(make_pairs([1, 2, 3, 4], [1, 2, 4, 3])).value
    0.7999999999999999
    """
    return estimate_pair(pairs, PAIR_SPEARMAN, bootstrap)


def _why_not(pairs: Pairs) -> str | None:
    if len(pairs) < FEWEST_ITEMS:
        return f"fewer than {FEWEST_ITEMS} items"
    if np.ptp(pairs.x) == 0:
        return f"the rater's scores do not vary: all are {pairs.x[0]:g}"
    return f"the reference's scores do not vary: all are {pairs.y[0]:g}" if np.ptp(pairs.y) == 0 else None


def _kernel(table: Cells, counts: Floats) -> Floats:
    n = counts.sum(axis=1)
    x = _mean_ranks(counts, table.x_code, len(table.x_values))
    y = _mean_ranks(counts, table.y_code, len(table.y_values))
    # Mean ranks average to half the count, whatever the ties.
    x, y = x - n[:, None] / 2, y - n[:, None] / 2
    scale = np.sqrt((counts * x * x).sum(axis=1) * (counts * y * y).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = (counts * x * y).sum(axis=1) / scale
    found: Floats = np.where(scale > 0, np.clip(rho, -1, 1), np.nan)
    return found


def marginal(counts: Floats, code: Ints, k: int) -> Floats:
    """(B, K) counts of each value, from counts (B, C) of the cells."""
    order = np.argsort(code, kind="stable")
    found: Floats = np.add.reduceat(counts[:, order], np.searchsorted(code[order], np.arange(k)), axis=1)
    return found


def _mean_ranks(counts: Floats, code: Ints, k: int) -> Floats:
    """(B, C) mean rank (from 0) of each cell's value: items below, and half of those level with it."""
    values = marginal(counts, code, k)
    return (np.cumsum(values, axis=1) - values / 2)[:, code]


def _scipy(pairs: Pairs) -> float:
    return float(stats_library("scipy.stats").spearmanr(pairs.x, pairs.y).statistic)


PAIR_SPEARMAN = PairStatistic("spearman", "Spearman's rho", _kernel, _why_not, ("scipy", _scipy))
