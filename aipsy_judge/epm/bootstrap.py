"""Percentile intervals of means, by resampling whole groups. Seeded: the same data give the same interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from .space import Floats

RESAMPLES = 10_000
SEED = 20260228
# Resampling goes in blocks of this many numbers, so that memory stays flat.
_BLOCK = 4_000_000


def resampled_means(
    values: Floats, groups: Sequence[Hashable], *, resamples: int = RESAMPLES, seed: int = SEED
) -> Floats:
    """Means (B, K) of `values` (N, K) under resampling of whole groups (N labels) with replacement.

    Groups are drawn in the order of their first appearance: two tables with the same groups in the same order are
    resampled alike, so the difference of their means is a paired one.
    """
    labels = {g: i for i, g in enumerate(dict.fromkeys(groups))}
    member = np.array([labels[g] for g in groups])
    sums = np.zeros((len(labels), values.shape[1]))
    np.add.at(sums, member, values)
    counts = np.bincount(member, minlength=len(labels)).astype(np.float64)
    random = np.random.default_rng(seed)
    block = max(1, _BLOCK // (len(labels) * values.shape[1]))
    means = []
    for first in range(0, resamples, block):
        drawn = random.integers(len(labels), size=(min(block, resamples - first), len(labels)))
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)[:, None])
    return np.concatenate(means)


def interval(means: Floats, level: float = 0.95) -> Floats:
    """Lower and upper end (2, K) of the percentile interval of resampled means (B, K)."""
    tail = (1 - level) / 2
    return np.asarray(np.quantile(means, [tail, 1 - tail], axis=0))
