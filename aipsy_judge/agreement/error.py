"""Error of a rater against a reference, in points of the scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .estimate import Estimate
from .pair_statistic import Cells, PairStatistic, estimate_pair
from .pairs import Pairs
from .resample import Bootstrap, Floats


def _statistic(name: str, form: str, kernel: Callable[[Cells, Floats], Floats]) -> PairStatistic:
    return PairStatistic(name, form, kernel, lambda pairs: None)


PAIR_BIAS = _statistic("bias", "mean of rater - reference", lambda t, c: (c @ (t.x - t.y)) / c.sum(axis=1))
PAIR_MAE = _statistic("mae", "mean of |rater - reference|", lambda t, c: (c @ np.abs(t.x - t.y)) / c.sum(axis=1))
PAIR_RMSE = _statistic(
    "rmse", "root of the mean of (rater - reference)^2", lambda t, c: np.sqrt((c @ (t.x - t.y) ** 2) / c.sum(axis=1))
)


def bias(pairs: Pairs, *, bootstrap: Bootstrap | None = None) -> Estimate:
    """Mean of rater - reference: above 0 the rater is lenient, below strict."""
    return estimate_pair(pairs, PAIR_BIAS, bootstrap)


def mae(pairs: Pairs, *, bootstrap: Bootstrap | None = None) -> Estimate:
    """Mean absolute difference, 0 or more."""
    return estimate_pair(pairs, PAIR_MAE, bootstrap)


def rmse(pairs: Pairs, *, bootstrap: Bootstrap | None = None) -> Estimate:
    """Root of the mean squared difference, 0 or more; large misses weigh more than in `mae`."""
    return estimate_pair(pairs, PAIR_RMSE, bootstrap)
