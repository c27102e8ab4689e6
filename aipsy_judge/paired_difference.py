"""One quantity in two runs, paired by unit: its difference, an interval over conversations, and how surely it fell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import student_t
from .agreement.resample import FEWEST_GROUPS, Bootstrap, in_blocks, interval, replicates
from .pairing import Pair
from .units import Key, Unit

BOOTSTRAP = Bootstrap(resamples=5_000)
METHOD = (
    f"expanded percentile bootstrap over conversations, {BOOTSTRAP.level:.0%}, {BOOTSTRAP.resamples:,} resamples, "
    f"seed {BOOTSTRAP.seed}"
)

Kinds = tuple[str, str]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity, NEW against BASE, in its own unit (points of the scale; for failing units a share, 0..1).

    base, new, difference  means over the n pairs of which it is known in both; None for no such pair
    low, high              interval of the difference by resampling whole conversations; None with a `reason`
    se                     standard error of the difference, as the same resamples have it; None with a `reason`
    n, conversations       pairs, and the conversations they come from
    newly_below            pairs that fell below a threshold (of the share of failing units: newly failing)
    transitions            pairs by what they were and became, e.g. {("scored", "unscored"): 2}
    """

    metric: str
    base: float | None
    new: float | None
    difference: float | None
    low: float | None
    high: float | None
    se: float | None
    reason: str | None
    n: int
    conversations: int
    newly_below: tuple[Key, ...]
    transitions: Mapping[Kinds, int]


def difference(
    name: str,
    pairs: Sequence[Pair],
    value: Callable[[Pair, Unit], float | None],
    kind: Callable[[Pair, Unit], str],
    newly_below: tuple[Key, ...],
) -> Difference:
    """The difference of `value` over the pairs where both sides have one; `value` and `kind` are told the pair and
    which side of it is meant."""
    both = [
        (p.key[0], a, b) for p in pairs if (a := value(p, p.base)) is not None and (b := value(p, p.new)) is not None
    ]
    groups = [g for g, _, _ in both]
    gaps = np.array([b - a for _, a, b in both])
    low, high, se, reason = _interval(gaps, groups)
    return Difference(
        metric=name,
        base=float(np.mean([a for _, a, _ in both])) if both else None,
        new=float(np.mean([b for _, _, b in both])) if both else None,
        difference=float(gaps.mean()) if both else None,
        low=low,
        high=high,
        se=se,
        reason=reason,
        n=len(both),
        conversations=len(set(groups)),
        newly_below=newly_below,
        transitions=dict(sorted(Counter((kind(p, p.base), kind(p, p.new)) for p in pairs).items())),
    )


def p_fallen(d: Difference, margin: float = 0.0, *, rising: bool = False) -> float | None:
    """Probability of a fall this far beyond `margin` (of the difference's unit) were there no fall beyond it, 0..1.

    t = (difference + margin) / se, conversations - 1 degrees of freedom. Where every conversation has the very same
    difference there is no standard error, and the sign test over the conversations says how surprising that is.
    `rising`: a rise instead of a fall. None where nothing can be tested: fewer than 5 conversations, or not one in
    which the two runs differ.
    """
    if d.difference is None or d.conversations < FEWEST_GROUPS or (d.se is None and d.difference == 0):
        return None
    beyond = (-d.difference if rising else d.difference) + margin
    if d.se is None:
        return 0.5**d.conversations if beyond < -1e-12 else 1.0
    return student_t.cdf(beyond / d.se, d.conversations - 1)


def _interval(gaps: Floats, groups: Sequence[str]) -> tuple[float | None, float | None, float | None, str | None]:
    """Low, high, standard error and why there are none.

    The standard error is widened by sqrt(G / (G - 1)) as the interval is: the spread of G drawn conversations about
    their own mean is too small by that.
    """
    labels = {g: i for i, g in enumerate(dict.fromkeys(groups))}
    if not labels:
        return None, None, None, "of no pair is it known in both"
    member, bootstrap = in_blocks(np.array([labels[g] for g in groups]), BOOTSTRAP)
    sums = np.stack([np.bincount(member, gaps), np.bincount(member).astype(np.float64)], axis=1)
    drawn = len(sums)
    spread = interval(replicates(sums, lambda s: s[:, 0] / s[:, 1], bootstrap), drawn, bootstrap)
    if spread is None or spread.se is None:
        return None, None, None, None if spread is None else spread.reason
    return spread.low, spread.high, spread.se * (drawn / (drawn - 1)) ** 0.5, None
