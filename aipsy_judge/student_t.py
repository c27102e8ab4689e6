"""Student's t for whole degrees of freedom, in closed form: what is installed without extras has no scipy."""

from __future__ import annotations

import math
from functools import lru_cache

_NEGLIGIBLE = 1e-18  # a term of the series below this changes no digit of a sum near 1


def cdf(t: float, freedom: int) -> float:
    """P(T <= t), 0..1, for `freedom` >= 1 degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).

    Absolute error below 1e-12, whatever the degrees of freedom.

    >>> round(cdf(2.776, 4), 4), cdf(0.0, 7)
    (0.975, 0.5)
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total, k = (cosine if odd else 1.0), 0.0, 2 + odd
    while k <= freedom and term > _NEGLIGIBLE:
        total += term
        term *= cosine * cosine * (k - 1) / k
        k += 2
    within = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(1.0, max(0.0, (1 + within) / 2))


@lru_cache(maxsize=256)
def quantile(share: float, freedom: int) -> float:
    """The t below which `share` (strictly between 0 and 1) of the distribution lies, to about 1e-8 of itself.

    >>> round(quantile(0.975, 4), 3)
    2.776
    """
    if not 0 < share < 1 or freedom < 1:
        raise ValueError(f"no quantile for a share of {share} and {freedom} degrees of freedom")
    high = 1.0
    while cdf(high, freedom) < max(share, 1 - share):
        high *= 2
    low = -high
    while high - low > 1e-12 * max(1.0, abs(low), abs(high)):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if cdf(middle, freedom) < share else (low, middle)
    return (low + high) / 2
