"""The columns that every rung is a linear function of.

[1 | judges - their means | steps of each judge | other metrics - their means]; a step column is 1 where the judge
scored at or above one of the thresholds, minus the share of items where it did. All on the unit scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .numbers import Floats

MOST_STEPS = 6


def thresholds(low: float, high: float) -> tuple[float, ...]:
    """Where the steps lie on the unit scale: between whole numbers, or five evenly spread ones on a longer scale.

    >>> thresholds(1, 5)
    (0.125, 0.375, 0.625, 0.875)
    """
    span = high - low
    n = int(span) if span == int(span) and span <= MOST_STEPS else MOST_STEPS - 1
    return tuple((k + 0.5) / n for k in range(n))


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Where the columns are centred, learnt from the items that judges rated (no expert's rating enters).

    judges, others      (J,), (M,) mean scores
    thresholds, shares  (L,) and (J, L): share of items on which judge j scored at or above threshold l
    loadings            (M,) correlation of each other metric with this one, over the judges' mean scores
    """

    judges: Floats
    others: Floats
    thresholds: Floats
    shares: Floats
    loadings: Floats

    @property
    def sizes(self) -> tuple[int, int, int]:
        """J, J·L, M."""
        return len(self.judges), self.shares.size, len(self.others)

    @property
    def width(self) -> int:
        return 1 + sum(self.sizes)

    @property
    def blocks(self) -> dict[str, slice]:
        """Columns of each kind."""
        found, start = {"offset": slice(0, 1)}, 1
        for name, size in zip(("judges", "steps", "others"), self.sizes, strict=True):
            found[name] = slice(start, start + size)
            start += size
        return found

    @property
    def centre(self) -> float:
        """Mean over judges of their mean score: where the offset is measured."""
        return float(self.judges.mean())

    def columns(self, judges: Floats, others: Floats) -> Floats:
        """(I, J) and (I, M) scores without gaps -> (I, K)."""
        steps = (judges[:, :, None] >= self.thresholds) - self.shares
        return np.hstack(
            [
                np.ones((len(judges), 1)),
                judges - self.judges,
                steps.reshape(len(judges), -1),
                others - self.others,
            ]
        )


def learn_design(judges: Floats, others: Floats, at: tuple[float, ...]) -> Design:
    """Centres over all items (I, J), (I, M) without gaps; `at`: thresholds on the unit scale."""
    steps = np.asarray(at, dtype=np.float64)
    return Design(
        judges=judges.mean(axis=0),
        others=others.mean(axis=0),
        thresholds=steps,
        shares=(judges[:, :, None] >= steps).mean(axis=0),
        loadings=_correlations(judges.mean(axis=1), others),
    )


def _correlations(one: Floats, many: Floats) -> Floats:
    a, b = one - one.mean(), many - many.mean(axis=0)
    scale = np.sqrt((a @ a) * (b * b).sum(axis=0))
    found: Floats = np.where(scale > 1e-12, a @ b / np.maximum(scale, 1e-12), 0.0)
    return found
