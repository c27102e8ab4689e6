"""Two raters on the same items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .estimate import Beside
from .resample import Floats

Ints = NDArray[np.integer]
Marks = Callable[[Floats], NDArray[np.bool_]]


def numbered(n: int, groups: Sequence[int] | Ints | None, n_groups: int | None) -> tuple[Ints, int]:
    """The group of each of n items as a number, and how many groups there are: each item its own if none are given,
    numbered anew unless `n_groups` says that they are numbers already."""
    if groups is None:
        return np.arange(n), n
    if n_groups is not None:
        return np.asarray(groups), n_groups
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    return group, len(names)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """`x` the rater under test and `y` the reference, on the n items that both scored.

    group    (n,) number of the item's group, 0..n_groups-1; groups without a pair are drawn too, and add nothing
    weight   (n,) mean 1; all ones unless the items were drawn with unequal probabilities (`weighted`)
    dropped  items given that one of the two did not score
    """

    x: Floats
    y: Floats
    group: Ints
    n_groups: int
    weight: Floats
    weighted: bool
    dropped: int

    def __len__(self) -> int:
        return len(self.x)

    @property
    def occupied(self) -> int:
        """How many groups hold a pair."""
        return len(np.unique(self.group))


def make_pairs(
    x: Sequence[float] | Floats,
    y: Sequence[float] | Floats,
    *,
    groups: Sequence[int] | Ints | None = None,
    n_groups: int | None = None,
    weights: Sequence[float] | Floats | None = None,
) -> Pairs:
    """Pair up (I,) scores, NaN where there is none. `groups`: (I,) any numbers, default each item its own,
    or with `n_groups` the places 0..n_groups-1 of groups of which some may lie outside this sample; `weights`: (I,)
    positive. ValueError on unlike lengths."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weight = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=np.float64)
    lengths = [len(a), len(b), len(weight), *([len(groups)] if groups is not None else [])]
    if len(set(lengths)) > 1:
        raise ValueError(f"unlike lengths: {', '.join(map(str, lengths))}")
    group, n_groups = numbered(len(a), groups, n_groups)
    both = ~np.isnan(a) & ~np.isnan(b)
    weight = weight[both]
    if (~(weight > 0)).any():
        raise ValueError("a weight is not positive")
    return Pairs(
        x=a[both],
        y=b[both],
        group=group[both],
        n_groups=n_groups,
        weight=weight / weight.mean() if len(weight) else weight,
        weighted=bool(len(weight)) and bool(np.ptp(weight) > 0),
        dropped=int((~both).sum()),
    )


def raw_agreement(pairs: Pairs) -> dict[str, Beside]:
    """Share of items with equal scores, the two means, and the share of the reference's most frequent score."""
    if len(pairs) == 0:
        return {}
    _, places = np.unique(pairs.y, return_inverse=True)
    return {
        "agreement": float(np.average(pairs.x == pairs.y, weights=pairs.weight)),
        "mean_rater": float(np.average(pairs.x, weights=pairs.weight)),
        "mean_reference": float(np.average(pairs.y, weights=pairs.weight)),
        "modal_share": float(np.bincount(places, pairs.weight).max() / pairs.weight.sum()),
    }


def prevalence(marks: Marks) -> Callable[[Pairs], dict[str, Beside]]:
    """Beside a figure about cases (`marks` says which scores are one): how many there are, by each rater."""

    def beside(pairs: Pairs) -> dict[str, Beside]:
        if len(pairs) == 0:
            return {}
        return {
            "agreement": float(np.average(marks(pairs.x) == marks(pairs.y), weights=pairs.weight)),
            "prevalence": float(np.average(marks(pairs.y), weights=pairs.weight)),
            "positive": int(marks(pairs.y).sum()),
            "positive_rater": int(marks(pairs.x).sum()),
        }

    return beside
