"""Seeded draws of anchors: which items an expert rates, and on which the correction is then judged."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]
FEWEST_GROUPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Places of the n anchors and of the items they are tested on; they share no conversation (if there are any)."""

    number: int
    anchors: Ints
    test: Ints


def draws(groups: Ints, n: int, count: int, name: str, seed: int) -> Iterator[Draw]:
    """`count` draws of n of the items; groups (I,): the conversation of each.

    Without conversations the anchors are any n items and the test is all others. With them, half of the conversations
    (or as many as hold n items) are drawn first, the anchors among their items; the other conversations are the test.
    """
    items = len(groups)
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    for number in range(count):
        random = np.random.default_rng([seed, number, n, zlib.crc32(name.encode())])
        if len(size) == items or len(size) < FEWEST_GROUPS:
            order = random.permutation(items)
            yield Draw(number, order[:n], order[n:])
            continue
        order = random.permutation(len(size))
        held = np.cumsum(size[order])
        last = min(int(np.searchsorted(held, max(n, items // 2))), len(size) - 2)
        inside = np.isin(group, order[: last + 1])
        pool = random.permutation(np.flatnonzero(inside))
        yield Draw(number, pool[:n], np.flatnonzero(~inside))
