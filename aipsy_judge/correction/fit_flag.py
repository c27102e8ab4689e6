"""How much each judge's word counts on a flag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ratings import Ratings, reference
from .fill import learn_fill
from .metric_fit import FEWEST_ANCHORS
from .published import published_weights
from .record import FlagRecord


def fit_flag(ratings: Ratings, flag: str, judges: Sequence[str], experts: Sequence[str]) -> FlagRecord:
    """Votes by alignment with the experts on the flag (0 or 1), shrunk to equal; equal where anchors are few."""
    matrix = ratings.matrix(flag, judges)
    used = matrix.scored.any(axis=0)
    rows = matrix.scored.any(axis=1)
    names = [matrix.raters[j] for j in np.flatnonzero(used)]
    values, index = matrix.values[rows][:, used], matrix.index[rows]
    rated = ratings.matrix(flag, experts).scored.any()
    expert = reference(ratings, flag, experts).values[index] if rated else np.full(len(index), np.nan)
    anchored = ~np.isnan(expert)
    count = int(anchored.sum())
    if count < FEWEST_ANCHORS:
        why = f"{count} anchors, fewer than {FEWEST_ANCHORS}: every judge has the same vote"
        return FlagRecord(flag, dict.fromkeys(names, 1.0 / len(names)), count, [why])
    filled = np.clip(learn_fill(values)(values[anchored]), 0.0, 1.0)
    nothing = np.zeros(count, dtype=bool)
    votes = published_weights(filled, expert[anchored], nothing, 0.0, tail_rule=False)
    return FlagRecord(flag, dict(zip(names, votes.tolist(), strict=True)), count, [])
