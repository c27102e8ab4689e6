"""Cases (failures, set flags) as 1 and 0, over all items that the reference knows.

Pairs of scores leave out what a rater calls N/A or gives no score for; a rater that is silent on failures would then
find all of them. As cases such items count: what a rater was asked about and did not call a case it has not found, and
what the reference calls N/A is no case. Only what the reference does not know, or the rater was never asked about, is
left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .pairs import Marks
from .resample import Floats

Bools = NDArray[np.bool_]


def said_cases(values: Floats, asked: Bools, marks: Marks) -> Floats:
    """A rater's cases, (I,): 1 where it gives a value that `marks` a case; 0 where it gives another, says N/A or gives
    none; NaN where it was never asked. `values`: (I,) NaN where there is none."""
    found: Floats = np.where(asked, _marked(values, marks), np.nan)
    return found


def known_cases(values: Floats, na: Bools, marks: Marks) -> Floats:
    """The reference's cases, (I,): 1 where its value is one, 0 where another is or the metric does not apply; NaN where
    it is unknown."""
    found: Floats = np.where(np.isnan(values) & ~na, np.nan, _marked(values, marks))
    return found


def below(critical: float) -> Marks:
    """Scores strictly below are failures."""
    return lambda scores: scores < critical


def is_set(values: Floats) -> Bools:
    """Whether a flag, or a 1 that stands for a case, is set."""
    found: Bools = values >= 0.5
    return found


def _marked(values: Floats, marks: Marks) -> Floats:
    there = ~np.isnan(values)
    found = np.zeros(len(values))
    found[there] = marks(values[there])
    return found
