"""What drawn items say of all items: each stands for 1 / its inclusion probability of them.

A stratified draw takes failures and crises more often than they occur, so a plain mean of it is a mean of nothing.
Statistics that read a ratings table with the column `inclusion` use the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def horvitz_thompson_mean(
    values: Sequence[float] | Floats, inclusion: Sequence[float] | Floats, population: int
) -> float:
    """Mean of all `population` items, estimated from those drawn: sum(value / inclusion) / population.

    Unbiased over draws where every item has a value (Horvitz and Thompson 1952). (I,) values, (I,) probabilities in
    (0, 1].
    """
    return float((np.asarray(values, dtype=np.float64) / np.asarray(inclusion, dtype=np.float64)).sum() / population)


def weighted_mean(values: Sequence[float] | Floats, inclusion: Sequence[float] | Floats) -> float | None:
    """Mean of those items of the population that have a value, estimated: sum(value / inclusion) / sum(1 / inclusion).

    For a metric that does not apply everywhere, and where an expert left cells empty (Hájek 1971; biased by O(1/n)).
    None where nothing has a value.
    """
    weight = 1.0 / np.asarray(inclusion, dtype=np.float64)
    if not len(weight):
        return None
    return float((np.asarray(values, dtype=np.float64) * weight).sum() / weight.sum())
