"""All agreement figures of a ratings table: every rater against the reference, every two raters, all together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from ..ratings import Ratings, Yardstick, inclusion_weights, labels, reference, reference_name
from ..ratings.overall import OVERALL, overall_of_raters, overall_of_reference
from .alpha import LEVELS, krippendorff_alpha
from .detection import pair_auc, pair_failure, pair_flag, pair_rule
from .error import PAIR_BIAS, PAIR_MAE, PAIR_RMSE
from .estimate import Estimate
from .icc import FORMS, icc, pair_icc
from .kappa import WEIGHTINGS, pair_kappa
from .pair_statistic import PairStatistic, estimate_pairs
from .pairs import Ints, Pairs, make_pairs
from .rank import PAIR_SPEARMAN
from .resample import Bootstrap, Floats

By = Literal["conversation", "scenario", "item"]


@dataclass(frozen=True, slots=True)
class PairFigures:
    """One metric, one rater against another. `estimates` by name, in the order of the statistics."""

    metric: str
    rater: str
    reference: str
    estimates: tuple[Estimate, ...]

    def __getitem__(self, name: str) -> Estimate:
        return next(e for e in self.estimates if e.name == name)

    def has(self, name: str) -> bool:
        return any(e.name == name for e in self.estimates)


@dataclass(frozen=True, slots=True)
class PanelFigures:
    """One metric, several raters together; `applicability`: do they agree on where it applies at all?"""

    metric: str
    raters: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    applicability: Estimate

    def __getitem__(self, name: str) -> Estimate:
        return next(e for e in self.estimates if e.name == name)


def statistics(ratings: Ratings, metric: str, yardstick: Yardstick) -> list[PairStatistic]:
    """The statistics that make sense for a metric: for flags those of yes and no, for severities no threshold."""
    steps = labels(ratings, metric)
    if metric in yardstick.flags:
        return [pair_kappa(steps, "unweighted"), pair_flag("recall"), pair_flag("precision")]
    kappas = [pair_kappa(steps, w) for w in WEIGHTINGS] if steps else []
    found = [pair_icc("A,1"), pair_icc("C,1"), *kappas, PAIR_SPEARMAN, PAIR_BIAS, PAIR_MAE, PAIR_RMSE]
    critical = yardstick.critical.get(metric)
    if critical is not None:
        found += [pair_failure("recall", critical), pair_failure("precision", critical), pair_auc(critical)]
    return found


def against_reference(
    ratings: Ratings,
    raters: Sequence[str],
    judged_by: Sequence[str],
    yardstick: Yardstick,
    bootstrap: Bootstrap,
    *,
    groups: Ints | None = None,
) -> Iterator[PairFigures]:
    """Each of `raters` against the reference that `judged_by` make, metric by metric.

    Items that were drawn for the experts with known probabilities count by their inverse.
    """
    group = ratings.groups() if groups is None else groups
    for metric in ratings.metrics:
        held = reference(ratings, metric, judged_by)
        for rater in raters:
            pairs = reference_pairs(ratings, metric, rater, held.values, group)
            found = estimate_pairs(pairs, statistics(ratings, metric, yardstick), bootstrap)
            yield PairFigures(metric, rater, held.name, tuple(found))


def overall_against_reference(
    ratings: Ratings,
    raters: Sequence[str],
    judged_by: Sequence[str],
    yardstick: Yardstick,
    bootstrap: Bootstrap,
    *,
    groups: Ints | None = None,
) -> Iterator[PairFigures]:
    """The same for the overall score and for failing by the failure rule, the metric being called OVERALL.

    An item counts where both sides' overall score (failure) is known; each side by its own pattern of N/A.
    """
    group = ratings.groups() if groups is None else groups
    scores, failing = overall_of_raters(ratings, raters, yardstick)
    held, held_failing = overall_of_reference(ratings, judged_by, yardstick)
    name = reference_name(ratings, judged_by)
    for r, rater in enumerate(raters):
        found = []
        for mine, theirs, wanted in ((scores, held, _ON_SCORES), (failing, held_failing, _ON_FAILURES)):
            index = np.flatnonzero(~np.isnan(theirs))
            weights = inclusion_weights(ratings, index) if len(index) else None
            pairs = make_pairs(
                mine[index, r], theirs[index], groups=group[index], n_groups=_count(group), weights=weights
            )
            found += estimate_pairs(pairs, wanted, bootstrap)
        yield PairFigures(OVERALL, rater, name, tuple(found))


_ON_SCORES = [pair_icc("A,1"), pair_icc("C,1"), PAIR_SPEARMAN, PAIR_BIAS, PAIR_MAE, PAIR_RMSE]
_ON_FAILURES = [pair_rule("recall"), pair_rule("precision"), pair_kappa((0.0, 1.0), "unweighted")]


def reference_pairs(
    ratings: Ratings,
    metric: str,
    rater: str,
    held: Floats,
    group: Ints,
) -> Pairs:
    """The rater's scores and the reference's, over the items that the reference scored."""
    matrix = ratings.matrix(metric, [rater])
    mine = np.full(len(ratings.items), np.nan)
    mine[matrix.index] = matrix.values[:, 0]
    index = np.flatnonzero(~np.isnan(held))
    weights = inclusion_weights(ratings, index) if len(index) else None
    return make_pairs(mine[index], held[index], groups=group[index], n_groups=_count(group), weights=weights)


def between_raters(
    ratings: Ratings,
    raters: Sequence[str],
    yardstick: Yardstick,
    bootstrap: Bootstrap,
    *,
    names: Sequence[str] | None = None,
    groups: Ints | None = None,
) -> Iterator[PairFigures]:
    """Every two of `raters`, metric by metric, the second standing as reference. `names`: only these statistics."""
    group = ratings.groups() if groups is None else groups
    for metric in ratings.metrics:
        wanted = [s for s in statistics(ratings, metric, yardstick) if names is None or s.name in names]
        matrix = ratings.matrix(metric, raters)
        asked = group[matrix.index]
        for i, j in combinations(range(len(raters)), 2):
            pairs = make_pairs(matrix.values[:, i], matrix.values[:, j], groups=asked, n_groups=_count(group))
            yield PairFigures(metric, raters[i], raters[j], tuple(estimate_pairs(pairs, wanted, bootstrap)))


def panels(
    ratings: Ratings,
    raters: Sequence[str],
    bootstrap: Bootstrap,
    *,
    groups: Ints | None = None,
) -> Iterator[PanelFigures]:
    """All of `raters` together, metric by metric: alpha on every level, and the forms of ICC."""
    group = ratings.groups() if groups is None else groups
    for metric in ratings.metrics:
        matrix = ratings.matrix(metric, raters)
        asked, n = group[matrix.index], _count(group)
        found = [
            krippendorff_alpha(matrix.values, level=v, groups=asked, n_groups=n, bootstrap=bootstrap) for v in LEVELS
        ]
        found += [icc(matrix.values, form=f, groups=asked, n_groups=n, bootstrap=bootstrap) for f in FORMS]
        applies = np.where(matrix.scored, 1.0, np.where(matrix.na, 0.0, np.nan))
        together = krippendorff_alpha(applies, level="nominal", groups=asked, n_groups=n, bootstrap=bootstrap)
        if (together.reason or "").startswith("no variation"):
            always = "applies" if matrix.scored.any() else "does not apply"
            together = replace(together, reason=f"no variation: everybody says that it {always}, throughout")
        yield PanelFigures(metric, tuple(raters), tuple(found), together)


def _count(group: Ints) -> int:
    return int(group.max(initial=-1)) + 1


def resampling_unit(ratings: Ratings, by: By) -> By:
    """What `by` comes to: single items, where the table names no conversation (or scenario)."""
    if by == "conversation" and ratings.conversation.is_empty():
        return "item"
    return "item" if by == "scenario" and ratings.scenario.is_empty() else by
