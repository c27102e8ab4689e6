"""Folds by conversation: what was said in one conversation is never on both sides."""

from __future__ import annotations

import numpy as np

from .numbers import Floats, Ints

INNER_FOLDS = 10
OUTER_FOLDS = 5
FEWEST_GROUPS = 3


def fold_of(groups: Ints, folds: int, seed: int) -> Ints:
    """(n,) fold of each anchor, 0..F-1 with F = min(folds, number of groups); every fold is occupied.

    The larger conversations are dealt out first, so that folds hold about equally many anchors.
    """
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    count = min(folds, len(size))
    order = np.random.default_rng([seed, len(groups)]).permutation(len(size))
    order = order[np.argsort(-size[order], kind="stable")]
    fold, load = np.empty(len(size), dtype=np.int64), np.zeros(count)
    for one in order:
        fold[one] = int(load.argmin())
        load[fold[one]] += size[one]
    return fold[group]


def left_out(fold: Ints) -> Floats:
    """(F + 1, n): 1 where an anchor is left out; the last row leaves out none."""
    out = (fold == np.arange(int(fold.max()) + 1)[:, None]).astype(np.float64)
    return np.vstack([out, np.zeros((1, len(fold)))])
