"""Findings: which of the map's figures differ from what a faultless panel would show, beyond chance.

Every figure that is nil for a faultless panel is tested; the p values of the whole map are adjusted together (Holm
1979), so that a map of a faultless panel holds any finding at all in at most 1 - level (5 %) of cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..agreement.estimate import Estimate
from ..agreement.figures import PairFigures
from ..agreement.holm import holm
from ..agreement.sums import Side, p_value
from ..ratings.overall import OVERALL
from .blindness import Blindness
from .leniency import FamilyLeniency
from .missing import Missingness
from .self_preference import SelfPreference
from .spread import ScaleUse

Kind = Literal["bias", "ceiling", "self_preference", "blindness", "family", "silence"]
# In the order in which they are told: what a panel's mean cannot mend comes first.
KINDS: tuple[Kind, ...] = ("blindness", "silence", "self_preference", "bias", "family", "ceiling")
# Which side of nil is a fault.
_SIDES: dict[Kind, Side] = {
    "bias": "both",
    "ceiling": "above",
    "self_preference": "above",
    "blindness": "below",
    "family": "above",
    "silence": "above",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure that a faultless panel would not show.

    about  the metric (bias, ceiling), the family (family), its own generators (self_preference), "crisis" or
           "failure" (silence), else None
    p      probability of a figure this far out were there no fault; `adjusted` for all tests of the map
    """

    kind: Kind
    judge: str
    about: str | None
    estimate: Estimate
    p: float
    adjusted: float


def findings(
    against: Sequence[PairFigures],
    spread: Sequence[ScaleUse],
    preferences: Sequence[SelfPreference],
    blind: Sequence[Blindness],
    families: Sequence[FamilyLeniency],
    missing: Sequence[Missingness],
    *,
    level: float,
) -> tuple[tuple[Finding, ...], int]:
    """The findings, kind by kind in the order of KINDS, the surest first; and how many figures were tested."""
    tested = [
        Finding(kind, judge, about, estimate, p, p)
        for kind, judge, about, estimate in _tests(against, spread, preferences, blind, families, missing)
        if (p := p_value(estimate, side=_SIDES[kind])) is not None
    ]
    kept = [f for f in _holm(tested) if f.adjusted <= 1 - level + 1e-12]
    return tuple(sorted(kept, key=lambda f: (KINDS.index(f.kind), f.p, -abs(f.estimate.value or 0)))), len(tested)


def _tests(
    against: Sequence[PairFigures],
    spread: Sequence[ScaleUse],
    preferences: Sequence[SelfPreference],
    blind: Sequence[Blindness],
    families: Sequence[FamilyLeniency],
    missing: Sequence[Missingness],
) -> Iterator[tuple[Kind, str, str | None, Estimate]]:
    for pair in against:
        if pair.has("bias"):
            yield "bias", pair.rater, pair.metric, pair["bias"]
    for use in spread:
        yield "ceiling", use.rater, use.metric, use.excess
    for own in preferences:
        yield "self_preference", own.judge, ", ".join(own.own.generators) if own.own is not None else None, own.tested
    for seen in blind:
        if seen.metric is None:
            yield "blindness", seen.judge, None, seen.gap
    for family in families:
        if family.metric == OVERALL:
            yield "family", family.judge, family.family, family.extra
    for silent in missing:
        yield "silence", silent.judge, silent.by, silent.excess


def _holm(tested: Sequence[Finding]) -> list[Finding]:
    """Adjusted together, the surest first."""
    adjusted = holm([f.p for f in tested])
    return sorted((replace(f, adjusted=p) for f, p in zip(tested, adjusted, strict=True)), key=lambda f: f.p)
