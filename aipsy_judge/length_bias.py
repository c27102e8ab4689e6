"""Length against score: does the judge reward long replies?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .conversation import Conversation
from .runs import RunView
from .units import Key, Unit
from .verdict import Scored

MIN_PAIRS = 3  # with two pairs a rank correlation is always 1 or -1


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rank correlation: rho in -1..1 over n pairs; None with a `reason` where it is undefined."""

    rho: float | None
    n: int
    reason: str | None = None


def length_correlations(run: RunView, units: Sequence[Unit]) -> dict[str, Correlation]:
    """Spearman's rho between a reply's length in characters and its score, per metric.

    For a rubric over whole conversations the length is that of everything the assistant said.
    """
    lengths = reply_lengths(run)
    return {m: _for_metric(m, units, lengths) for m in run.rubric.metric_names}


def reply_lengths(run: RunView) -> dict[Key, int]:
    """Characters of what was judged, by unit; empty where the run keeps no text."""
    lengths: dict[Key, int] = {}
    for conversation in run.conversations:
        if run.rubric.unit == "conversation":
            lengths[(conversation.id, None)] = _spoken(conversation)
        else:
            lengths.update({(conversation.id, t.number): len(t.message.content) for t in conversation.turns})
    return lengths


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Spearman's rho: Pearson's r of the ranks, ties at their mean rank.

    Undefined (None) for fewer than 3 pairs, or where one side does not vary.

    >>> spearman([1, 2, 3], [10, 20, 30]).rho
    1.0
    """
    n = len(x)
    if n < MIN_PAIRS:
        return Correlation(None, n, f"fewer than {MIN_PAIRS} pairs")
    a, b = (_ranks(np.asarray(v, dtype=np.float64)) for v in (x, y))
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    if scale == 0.0:
        return Correlation(None, n, "the scores do not vary" if a.any() else "the lengths do not vary")
    # Rounding can carry a perfect correlation a last bit past 1.
    return Correlation(float(np.clip((a @ b) / scale, -1.0, 1.0)), n)


def _for_metric(metric: str, units: Sequence[Unit], lengths: Mapping[Key, int]) -> Correlation:
    pairs = [
        (float(lengths[u.key]), s.value)
        for u in units
        if u.key in lengths and isinstance(s := u.scores[metric], Scored)
    ]
    if not lengths:
        return Correlation(None, 0, "no text at hand")
    return spearman([p[0] for p in pairs], [p[1] for p in pairs])


def _ranks(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, ties at their mean rank; shape as `x`."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    mean_rank: NDArray[np.float64] = last - (count - 1) / 2.0
    return mean_rank[place]


def _spoken(conversation: Conversation) -> int:
    return sum(len(turn.message.content) for turn in conversation.turns)
