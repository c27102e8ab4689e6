"""The figures of one draw, for many methods at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from .human_methods import P_FAIL, Outcome

Floats = NDArray[np.float64]
FIGURES = ("rmse", "mae", "spearman", "tail_auc", "tail_recall")
LOWER_IS_BETTER = ("rmse", "mae")


def figures(outcome: Outcome, expert: Floats, fails: NDArray[np.bool_], span: float) -> dict[str, Floats]:
    """Method -> (5,) in the order of FIGURES, NaN where undefined; RMSE and MAE in points of the scale.

    Spearman is undefined where either side does not vary; AUC and recall where all test items, or none, are failures.
    """
    miss = (outcome.values - expert) * span
    by_value = np.stack([np.sqrt((miss**2).mean(axis=1)), np.abs(miss).mean(axis=1), _spearman(outcome.values, expert)])
    by_risk = np.stack([tail_auc(outcome.risk, fails), tail_recall(outcome.risk, fails)])
    found = {name: np.concatenate([by_value[:, i], by_risk[:, i]]) for i, name in enumerate(outcome.names)}
    found[P_FAIL] = np.concatenate([np.full(3, np.nan), by_risk[:, -1]])
    return found


def tail_auc(risk: Floats, fails: NDArray[np.bool_]) -> Floats:
    """(V,) probability that a failure has a higher risk (V, T) than another item, ties counted half."""
    bad, good = int(fails.sum()), int((~fails).sum())
    if not bad or not good:
        return np.full(len(risk), np.nan)
    ranks = rankdata(risk, axis=1)
    found: Floats = (ranks[:, fails].sum(axis=1) - bad * (bad + 1) / 2) / (bad * good)
    return found


def tail_recall(risk: Floats, fails: NDArray[np.bool_]) -> Floats:
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
