"""Tail-aware values: what error on ordinary items one is willing to pay to place failures lower.

The value that makes (1 - p) (x - ok)^2 + price p (x - failing)^2 least, where p is p_fail, `failing` the expected
score of a failure and value = (1 - p) ok + p failing: price 1 gives the value back, a higher one moves an item
towards `failing` by as much as p_fail says.
"""

from __future__ import annotations

import numpy as np

from .numbers import Bools, Floats

# The tail's expected score is half way between the scale's end and the cut before any failure was seen, and that
# counts as two failures.
PRETENDED = 2.0


def failing_level(expert: Floats, fails: Bools, cut: float) -> float:
    """Expected score of a failure, unit scale, from the anchors (n,)."""
    seen = expert[fails]
    return float((seen.sum() + PRETENDED * cut / 2) / (len(seen) + PRETENDED))


def tail_aware(value: Floats, p_fail: Floats, failing: float, price: float) -> Floats:
    """(I,) values. `price` >= 1: a squared error on a failure counts as that many on another item.

    >>> tail_aware(np.array([0.8]), np.array([0.5]), failing=0.2, price=3.0)
    array([0.5])
    """
    if price < 1:
        raise ValueError(f"price {price} is below 1")
    # Only ever downwards: an item thought to be worse than the average failure stays where it is.
    moved = (value + (price - 1) * p_fail * failing) / (1 + (price - 1) * p_fail)
    found: Floats = np.minimum(value, moved)
    return found
