"""Reference: the experts' ratings as one column to hold judges against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import RatingsError
from .table import Bools, Floats, Ratings


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """One metric's reference over all I items of the table.

    name    how it is called in results
    values  (I,) score, NaN where there is none
    na      (I,) the reference says: does not apply
    """

    name: str
    raters: tuple[str, ...]
    values: Floats
    na: Bools


def reference_raters(ratings: Ratings, named: Sequence[str] | None = None) -> tuple[str, ...]:
    """Who is held to be right: those named, else whoever is `adjudicated` or `expert`. None: nobody is."""
    if named:
        unknown = [r for r in named if r not in ratings.raters]
        if unknown:
            raise RatingsError(f"no rater {', '.join(unknown)}; there are: {', '.join(ratings.raters)}")
        return tuple(named)
    return ratings.of_kind("adjudicated", "expert")


def reference_name(ratings: Ratings, raters: Sequence[str]) -> str:
    """A short name for the reference these raters make."""
    if len(raters) == 1:
        return raters[0]
    adjudicated = any(ratings.kinds[r] == "adjudicated" for r in raters)
    return f"{'adjudication, else ' if adjudicated else ''}mean of {len(raters) - adjudicated} experts"


def reference(ratings: Ratings, metric: str, raters: Sequence[str]) -> Reference:
    """The adjudicated score where there is one, else the mean of the raters who scored the item.

    An item is N/A where the adjudication says so or, without one, more raters say N/A than give a score.
    """
    matrix = ratings.matrix(metric, raters)
    settled = np.array([ratings.kinds[r] == "adjudicated" for r in raters])
    values, na = _mean(matrix.values[:, ~settled], matrix.na[:, ~settled])
    if settled.any():
        final, final_na = _mean(matrix.values[:, settled], matrix.na[:, settled])
        decided = ~np.isnan(final) | final_na
        values, na = np.where(decided, final, values), np.where(decided, final_na, na)
    wide, wide_na = np.full(len(ratings.items), np.nan), np.zeros(len(ratings.items), dtype=bool)
    wide[matrix.index], wide_na[matrix.index] = values, na
    return Reference(reference_name(ratings, raters), tuple(raters), wide, wide_na)


def _mean(values: Floats, na: Bools) -> tuple[Floats, Bools]:
    scored = ~np.isnan(values)
    count = scored.sum(axis=1)
    mean = np.where(scored, values, 0).sum(axis=1) / np.maximum(count, 1)
    says_na = na.sum(axis=1) > count
    return np.where((count > 0) & ~says_na, mean, np.nan), says_na
