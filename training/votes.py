"""Shares of the raters' votes: for N/A, for a set flag, for each severity. Axes: I items, J raters, L levels.

Where a rule, not the majority, decides (one rater who sees direct danger sets the flag), a slot trained on the votes
alone would say the opposite of the target. Its shares then lie half-way between the votes and the rule, which is the
least that lets the rule's choice win.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def na_share(na: Bools, scored: Bools, votes: Floats) -> Floats:
    """(I,) votes for N/A / votes given; NaN where nobody votes. na, scored (I, J); votes (J,)."""
    against = na @ votes
    given = against + scored @ votes
    return np.where(given > 0, against / np.where(given > 0, given, 1.0), np.nan)


def flag_share(values: Floats, votes: Floats, fused: Floats) -> Floats:
    """(I,) share for yes, NaN where `fused` (I,) is NaN. values (I, J) 1, 0 or NaN."""
    given = ~np.isnan(values)
    total = given @ votes
    yes = np.where(given, values, 0.0) @ votes / np.where(total > 0, total, 1.0)
    share = np.where(total > 0, yes, fused)
    against = (share >= 0.5 - 1e-9) != (fused == 1)
    return np.where(np.isnan(fused), np.nan, np.where(against, (share + fused) / 2, np.maximum(share, fused * 0.5)))


def severity_shares(
    values: Floats, severity: Floats, votes: Floats, flag: Floats, fused: Floats, levels: int
) -> Floats:
    """(I, L) shares, rows of NaN where `fused` (I,), the level of the target, is NaN.

    values, severity (I, J); flag (I,). Raters who agree with the flag vote; where it is not set, "not set" has all.
    """
    agree = (values == flag[:, None]) | ((flag[:, None] == 1) & (np.nan_to_num(severity) > 0))
    counted = agree & ~np.isnan(severity)
    shares = np.stack([(counted & (severity == level)) @ votes for level in range(levels)], axis=1)
    shares[flag == 1, 0] = 0.0
    total = shares.sum(axis=1, keepdims=True)
    rule = np.eye(levels)[np.nan_to_num(fused).astype(int)]
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), rule)
    wins = (shares * rule).sum(axis=1) >= shares.max(axis=1) - 1e-9
    mixed = np.where(wins[:, None], shares, (shares + rule) / 2)
    mixed = np.where((flag == 0)[:, None], np.eye(levels)[0], mixed)
    return np.where(np.isnan(fused)[:, None], np.nan, mixed)
