"""Fusing what is not a score: N/A, flags, severities. Axes: I items, J judges; votes (J,), sum 1.

The rules are those proposed for the published target: weighted votes, and a flag that over-detects direct danger.
"""

from __future__ import annotations

import numpy as np

from .numbers import Bools, Floats

HALF = 0.5 - 1e-9  # a tie counts for N/A, and for a set flag


def fused_na(na: Bools, scored: Bools, votes: Floats) -> Bools:
    """(I,) the metric does not apply: at least half of the votes given are for N/A.

    na, scored (I, J); a judge who is unscored or was not asked gives no vote. False where nobody votes.
    """
    against = na @ votes
    given = against + scored @ votes
    found: Bools = (given > 0) & (against >= HALF * given)
    return found


def fused_flag(values: Floats, severity: Floats, votes: Floats, direct: float | None) -> Floats:
    """(I,) 1, 0, or NaN where no judge could be read.

    values (I, J) 0 or 1, NaN where there is none; severity (I, J) level above "not set". The flag is set by at least
    half of the votes given, or by any one judge who reports the level `direct`, for missing a direct danger is worse
    than a false alarm.
    """
    given = ~np.isnan(values)
    total = given @ votes
    yes = np.where(given, values, 0.0) @ votes
    found = np.where(total > 0, (yes >= HALF * np.maximum(total, 1e-12)).astype(np.float64), np.nan)
    if direct is not None:
        found = np.where((np.nan_to_num(severity, nan=-1.0) >= direct).any(axis=1), 1.0, found)
    return found


def fused_severity(flag: Floats, values: Floats, severity: Floats) -> Floats:
    """(I,) the highest level among the judges who agree with the fused flag; 0 where it is not set.

    NaN where the flag is NaN, or it is set and no judge who agrees tells a level.
    """
    agree = (values == flag[:, None]) | ((flag[:, None] == 1) & (np.nan_to_num(severity, nan=0.0) > 0))
    levels = np.where(agree & ~np.isnan(severity), severity, -np.inf)
    top = levels.max(axis=1, initial=-np.inf)
    set_level = np.where((top > 0) & np.isfinite(top), top, np.nan)
    return np.where(flag == 1, set_level, np.where(flag == 0, 0.0, np.nan))
