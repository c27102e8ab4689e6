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


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """`x` the rater under test and `y` the reference, on the n items that both scored.

    group    (n,) number of the item's group, 0..G-1, every group occupied
    weight   (n,) mean 1; all ones unless the items were drawn with unequal probabilities (`weighted`)
    dropped  items given that one of the two did not score
    """

    x: Floats
    y: Floats
    group: Ints
    weight: Floats
    weighted: bool
    dropped: int

    def __len__(self) -> int:
        return len(self.x)

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1 if len(self.group) else 0


def make_pairs(
    x: Sequence[float] | Floats,
    y: Sequence[float] | Floats,
    *,
    groups: Sequence[int] | Ints | None = None,
    weights: Sequence[float] | Floats | None = None,
) -> Pairs:
    """Pair up (I,) scores, NaN where there is none. `groups`: (I,) any numbers, default each item its own;
    `weights`: (I,) positive. ValueError on unlike lengths."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    group = np.arange(len(a)) if groups is None else np.asarray(groups)
    weight = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(a) == len(b) == len(group) == len(weight):
        raise ValueError(f"unlike lengths: {len(a)}, {len(b)}, {len(group)}, {len(weight)}")
    both = ~np.isnan(a) & ~np.isnan(b)
    weight = weight[both]
    if (~(weight > 0)).any():
        raise ValueError("a weight is not positive")
    return Pairs(
        x=a[both],
        y=b[both],
        group=np.unique(group[both], return_inverse=True)[1],
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
