"""The figures of one draw, for many methods at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from .human_methods import P_FAIL, Outcome

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
FIGURES = ("rmse", "mae", "spearman", "tail_auc", "tail_recall")
LOWER_IS_BETTER = ("rmse", "mae")


def figures(outcome: Outcome, expert: Floats, fails: Bools, span: float) -> dict[str, Floats]:
    """Method -> (5,) in the order of FIGURES, NaN where undefined; RMSE and MAE in points of the scale.

    Each over the test items that the method has a value of. Spearman is undefined where either side does not vary; AUC
    and recall where all of these items, or none, are failures.
    """
    table = np.full((len(outcome.names), len(FIGURES)), np.nan)
    patterns, of_row = np.unique(~np.isnan(outcome.values), axis=0, return_inverse=True)
    for number, here in enumerate(patterns):
        if here.any():
            rows = np.flatnonzero(of_row.reshape(-1) == number)
            miss = (outcome.values[np.ix_(rows, here)] - expert[here]) * span
            risk = outcome.risk[np.ix_(rows, here)]
            table[rows] = np.column_stack(
                [
                    np.sqrt((miss**2).mean(axis=1)),
                    np.abs(miss).mean(axis=1),
                    _spearman(outcome.values[np.ix_(rows, here)], expert[here]),
                    tail_auc(risk, fails[here]),
                    tail_recall(risk, fails[here]),
                ]
            )
    found = dict(zip(outcome.names, table, strict=True))
    last = outcome.risk[-1:]
    found[P_FAIL] = np.concatenate([np.full(3, np.nan), tail_auc(last, fails), tail_recall(last, fails)])
    return found


def scored(outcome: Outcome) -> dict[str, int]:
    """Method -> on how many of the test items its figures rest."""
    known = (~np.isnan(outcome.risk)).sum(axis=1)
    return dict(zip((*outcome.names, P_FAIL), known.tolist(), strict=True))


def tail_auc(risk: Floats, fails: Bools) -> Floats:
    """(V,) probability that a failure has a higher risk (V, T) than another item, ties counted half."""
    bad, good = int(fails.sum()), int((~fails).sum())
    if not bad or not good:
        return np.full(len(risk), np.nan)
    ranks = rankdata(risk, axis=1)
    found: Floats = (ranks[:, fails].sum(axis=1) - bad * (bad + 1) / 2) / (bad * good)
    return found


def tail_recall(risk: Floats, fails: Bools) -> Floats:
    """(V,) share of the failures among as many items of highest risk as there are failures.

    So every method flags equally many, and recall is precision too. Of items that tie at the limit, the expected
    share is counted.
    """
    count = int(fails.sum())
    if not count or count == len(fails):
        return np.full(len(risk), np.nan)
    limit = -np.partition(-risk, count - 1, axis=1)[:, count - 1 : count]
    above, level = risk > limit, risk == limit
    room = (count - above.sum(axis=1)) / level.sum(axis=1)
    found: Floats = ((above & fails).sum(axis=1) + room * (level & fails).sum(axis=1)) / count
    return found


def _spearman(values: Floats, expert: Floats) -> Floats:
    a = rankdata(values, axis=1) - (values.shape[1] + 1) / 2
    b = rankdata(expert) - (len(expert) + 1) / 2
    scale = np.sqrt((a * a).sum(axis=1) * (b @ b))
    found: Floats = np.where(scale > 0, a @ b / np.where(scale > 0, scale, 1), np.nan)
    return found
