"""The mean rounded once, for what is held against a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def exact_mean(values: Sequence[float | Fraction]) -> float | None:
    """The arithmetic mean of the values as they are written, in their unit; None where there are none.

    In floating point 2.1 and 4.1 have the mean 3.0999999999999996 and fail a threshold of 3.1 that they meet.

    >>> exact_mean([2.1, 4.1])
    3.1
    """
    if not values:
        return None
    return float(sum(v if isinstance(v, Fraction) else Fraction(str(v)) for v in values) / len(values))
