"""Spread: does a judge use its scale, or does everything sit at the top?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .rubric import Rubric
from .units import Unit, values

FEWEST_TO_BE_STUCK = 5
TOP_WARNING = 0.8  # more than this share at the top, and a score says little about the reply


@dataclass(frozen=True, slots=True)
class Spread:
    """How the scores of one metric are spread.

    counts         (value, number of scores) for every step of the scale, lowest first; values between two steps are
                   counted at the nearest one
    n              number of scores
    entropy        Shannon entropy of the counts in bits, 0 (all alike) to `entropy_max`; None for no scores
    top_share      share of scores at the scale's highest value, 0..1; None for no scores
    ceiling_share  share at or above `ceiling_from`, where the rubric's composite names it for this scale; else None
    """

    metric: str
    counts: tuple[tuple[int, int], ...]
    n: int
    entropy: float | None
    entropy_max: float
    top_share: float | None
    ceiling_from: float | None
    ceiling_share: float | None

    @property
    def crowded(self) -> bool:
        """True where more than 80 % of the scores sit at the top."""
        return (self.top_share or 0.0) > TOP_WARNING or (self.ceiling_share or 0.0) > TOP_WARNING

    @property
    def stuck_at(self) -> tuple[int, float] | None:
        """A value that more than 80 % of at least 5 scores have, and its share; None where there is none."""
        value, count = max(self.counts, key=lambda pair: pair[1])
        share = count / self.n if self.n >= FEWEST_TO_BE_STUCK else 0.0
        return (value, share) if share > TOP_WARNING else None


def spread(rubric: Rubric, units: Sequence[Unit], metric: str) -> Spread:
    """The spread of one metric's scores over the units."""
    steps = rubric.metric(metric).scale.values
    found = values(units, metric)
    counts = Counter(_nearest(v) for v in found)
    ceiling = _ceiling(rubric, metric)
    n = len(found)
    return Spread(
        metric=metric,
        counts=tuple((step, counts[step]) for step in steps),
        n=n,
        entropy=entropy_bits(counts.values()) if n else None,
        entropy_max=math.log2(len(steps)),
        top_share=sum(v >= steps[-1] for v in found) / n if n else None,
        ceiling_from=ceiling,
        ceiling_share=sum(v >= ceiling for v in found) / n if n and ceiling is not None else None,
    )


def entropy_bits(counts: Iterable[int]) -> float:
    """-sum(p log2 p) over the counts, p = count / total (Shannon 1948).

    >>> entropy_bits([1, 1, 1, 1])
    2.0
    >>> entropy_bits([7])
    0.0
    """
    positive = [c for c in counts if c > 0]
    total = sum(positive)
    return abs(sum(c / total * math.log2(total / c) for c in positive))


def _nearest(value: float) -> int:
    return math.floor(value + 0.5)


def _ceiling(rubric: Rubric, metric: str) -> float | None:
    """The composite's ceiling, for the metrics it is a mean of: only they share its scale."""
    weighted = [m.name for m in rubric.metrics if m.weight]
    return rubric.composite.ceiling_from if rubric.composite is not None and metric in weighted else None
