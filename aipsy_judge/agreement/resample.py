"""The bootstrap over groups: whole conversations are drawn again, for their turns are not independent.

Every statistic here is a function of sums over groups (counts of score pairs, squares, ...). Drawing groups with
replacement multiplies each group's sums by how often it was drawn, so B resamples are one matrix product,
(B, G) @ (G, P) -> (B, P), whatever the number of items. `G` groups, `P` sums, `B` resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .. import student_t
from .estimate import Interval

Floats = NDArray[np.float64]
Kernel = Callable[[Floats], Floats]

FEWEST_GROUPS = 5  # below, the drawn samples are nearly all alike and an interval would only look like one
MOST_UNDEFINED = 0.5  # share of resamples in which the figure may be undefined
MOST_GROUPS, BLOCKS = 20_000, 5_000
CELLS_AT_ONCE = 4_000_000  # numbers held per step: 32 MB


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How intervals are made. `resamples` 0: none are. `unit` is what is drawn, in `blocks` of many if not 0 (see
    `in_blocks`); both only name what the caller did."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 14
    unit: str = "conversation"
    blocks: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 0 or not 0 < self.level < 1:
            raise ValueError("resamples is at least 0, level lies between 0 and 1")


def in_blocks(groups: NDArray[np.integer], bootstrap: Bootstrap) -> tuple[NDArray[np.integer], Bootstrap]:
    """Many thousands of groups put together at random into 5,000 blocks, which are drawn instead.

    The variance over random blocks of independent groups is that over the groups (the random group method; Wolter
    2007, Introduction to Variance Estimation, chapter 2), with a relative error of 2 % for 5,000 blocks, and costs no
    more however many groups there are. Up to 20,000 groups are left as they are.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    if n_groups <= MOST_GROUPS:
        return groups, bootstrap
    block = np.random.default_rng([bootstrap.seed, n_groups]).permutation(n_groups) % BLOCKS
    return block[groups], replace(bootstrap, blocks=BLOCKS)


@lru_cache(maxsize=2)
def draws(n_groups: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """(B, G) how often each group was drawn in each resample; every row sums to G.

    The same for every statistic over the same groups, so that differences between them are paired.
    """
    random = np.random.default_rng([seed, n_groups])
    counts = np.empty((resamples, n_groups), dtype=np.uint8)
    for row in counts:
        drawn = np.bincount(random.integers(0, n_groups, n_groups), minlength=n_groups)
        row[:] = np.minimum(drawn, 255)  # a count above 255 has probability below 1e-500
    return counts


def resampled_sums(sums: Floats, bootstrap: Bootstrap) -> Iterator[Floats]:
    """The sums (G, P) of each resample, in chunks (b, P)."""
    counts = draws(len(sums), bootstrap.resamples, bootstrap.seed)
    step = max(1, CELLS_AT_ONCE // max(1, *sums.shape))
    # Whole numbers whose sums stay below 2^24 are exact in 32 bits, and twice as fast.
    exact = bool((sums == np.rint(sums)).all()) and float(np.abs(sums).sum(axis=0).max(initial=0)) < 2**21
    single = sums.astype(np.float32) if exact else None
    for start in range(0, len(counts), step):
        chunk = counts[start : start + step]
        if single is not None:
            yield (chunk.astype(np.float32) @ single).astype(np.float64)
        else:
            yield chunk.astype(np.float64) @ sums


def replicates(sums: Floats, kernel: Kernel, bootstrap: Bootstrap) -> Floats:
    """(B,) the figure in each resample, NaN where it is undefined there."""
    if bootstrap.resamples == 0 or len(sums) == 0:
        return np.empty(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.concatenate([kernel(chunk) for chunk in resampled_sums(sums, bootstrap)])


def interval(found: Floats, groups: int, bootstrap: Bootstrap, *, of_cases: bool = False) -> Interval | None:
    """The expanded percentile interval of the replicates `found` (B,), NaN for an undefined one.

    The percentiles are taken at Phi(+-sqrt(G / (G - 1)) t(G - 1)) instead of (1 - level) / 2, because the plain
    percentile interval is too narrow for few groups (Hesterberg 2015, What Teachers Should Know About the Bootstrap,
    section 5.3). `groups`: those that hold what the figure is made of; others are drawn too but add nothing.
    `of_cases`: that is cases (failures, set flags), which fewer groups hold than hold items. None where no interval
    was asked for.
    """
    if bootstrap.resamples == 0:
        return None
    together = f" in {bootstrap.blocks:,} random blocks" if bootstrap.blocks else ""
    method = (
        f"bootstrap over {bootstrap.unit}s{together}, expanded percentile, {bootstrap.resamples} resamples, "
        f"seed {bootstrap.seed}"
    )

    def none(reason: str) -> Interval:
        return Interval(None, None, bootstrap.level, method, groups, None, reason)

    if groups < FEWEST_GROUPS:
        unit = f"{bootstrap.unit}{'s' if groups != 1 else ''}"
        holding = f" that hold{'s' if groups == 1 else ''} a case" if of_cases else ""
        return none(f"{groups} {unit}{holding}: too few to resample")
    defined = found[np.isfinite(found)]
    if len(defined) < (1 - MOST_UNDEFINED) * bootstrap.resamples:
        return none(f"undefined in {bootstrap.resamples - len(defined)} of {bootstrap.resamples} resamples")
    if np.ptp(defined) <= 1e-12 * max(1.0, abs(float(defined[0]))):
        return none("every resample gives the same figure: resampling cannot tell how far off it may be")
    tail = tail_share(groups, bootstrap.level)
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high), bootstrap.level, method, groups, float(np.std(defined, ddof=1)))


def tail_share(groups: int, level: float) -> float:
    """The share cut off at each end.

    >>> 0.0249 < tail_share(10_000, 0.95) < 0.025 and tail_share(10, 0.95) < 0.01
    True
    """
    t = student_t.quantile((1 + level) / 2, groups - 1)
    return NormalDist().cdf(-t * (groups / (groups - 1)) ** 0.5)
