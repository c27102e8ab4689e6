"""Everything that is learnt for one metric, and its use on new items. Unit scale throughout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .design import Design, learn_design
from .failure import failure_probability, fit_failure
from .fill import Fill, learn_fill
from .folds import FEWEST_GROUPS
from .ladder import Anchors, Ladder, fit_ladder, unfitted_ladder
from .numbers import Bools, Floats, Ints

FEWEST_ANCHORS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """What the judges said of I items, unit scale, NaN where a judge gave no score: judges (I, J) on this metric,
    others (I, M) their mean on each other metric. At least one judge scored each item."""

    judges: Floats
    others: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """What is learnt without any expert."""

    fill: Fill
    design: Design

    def filled(self, panel: Panel) -> tuple[Floats, Floats]:
        """(I, J) and (I, M) without gaps."""
        table = self.fill(np.hstack([panel.judges, panel.others]))
        judges = panel.judges.shape[1]
        return table[:, :judges], table[:, judges:]


@dataclass(frozen=True, slots=True, eq=False)
class MetricFit:
    """One metric's correction. `failure` are the coefficients of p_fail; `enough`: the anchors sufficed to learn."""

    basis: Basis
    ladder: Ladder
    failure: Floats
    cut: float
    enough: bool

    def values(self, panel: Panel) -> Floats:
        """(I,) corrected values, cut to the scale."""
        return np.clip(self.uncut(*self.basis.filled(panel)), 0.0, 1.0)

    def uncut(self, judges: Floats, others: Floats) -> Floats:
        found: Floats = self.basis.design.columns(judges, others) @ self.ladder.combined
        return found

    def probabilities(self, panel: Panel) -> Floats:
        """(I,) p_fail."""
        judges, others = self.basis.filled(panel)
        value = self.uncut(judges, others)
        return failure_probability(self.basis.design, self.failure, value, judges, others, self.cut)


def learn_basis(panel: Panel, at: tuple[float, ...]) -> Basis:
    """Fill and design from all items that judges rated, anchors or not; `at`: thresholds of the steps."""
    fill = learn_fill(np.hstack([panel.judges, panel.others]))
    table = fill(np.hstack([panel.judges, panel.others]))
    count = panel.judges.shape[1]
    return Basis(fill, learn_design(table[:, :count], table[:, count:], at))


def fit_metric(
    basis: Basis,
    panel: Panel,
    expert: Floats,
    fails: Bools,
    *,
    cut: float,
    groups: Ints,
    weights: Floats | None = None,
    seed: int = 14,
    only: str | None = None,
    fewest: tuple[int, int] = (FEWEST_ANCHORS, FEWEST_GROUPS),
) -> MetricFit:
    """Fit to n anchors: panel of n items, expert (n,), fails (n,). `only`: this rung instead of the blend.

    Fewer than `fewest` anchors or conversations: the equal mean, and the prior of p_fail, with `enough` False.
    ValueError where a rating or weight is NaN.
    """
    if not (np.isfinite(expert).all() and (weights is None or np.isfinite(weights).all())):
        raise ValueError("an anchor's rating or weight is not a number")
    judges, others = basis.filled(panel)
    if len(expert) < fewest[0] or len(np.unique(groups)) < fewest[1]:
        nothing = np.empty(0)
        prior = fit_failure(basis.design, nothing, judges[:0], others[:0], nothing, cut)
        return MetricFit(basis, unfitted_ladder(basis.design), prior, cut, enough=False)
    share = np.ones(len(expert)) if weights is None else weights / weights.mean()
    anchors = Anchors(judges, others, expert, groups, share, fails, cut)
    ladder = fit_ladder(basis.design, anchors, seed, only)
    failure = fit_failure(basis.design, ladder.blended_out_of_fold, judges, others, fails.astype(np.float64), cut)
    return MetricFit(basis, ladder, failure, cut, enough=True)
