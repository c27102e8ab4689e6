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
from .cases import Bools, below, is_set, known_cases, said_cases
from .detection import pair_auc, pair_failure_case, pair_flag, pair_rule
from .error import PAIR_BIAS, PAIR_MAE, PAIR_RMSE
from .estimate import Estimate
from .icc import FORMS, icc, pair_icc
from .kappa import WEIGHTINGS, pair_kappa
from .pair_statistic import PairStatistic, estimate_pairs
from .pairs import Ints, Marks, Pairs, make_pairs
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The statistics that make sense for a metric.

    scored  over the items that both sides scored
    cases   over all items that the reference knows and the rater was asked about (cases.py); `marks` says which scores
            are a case
    """

    scored: tuple[PairStatistic, ...]
    cases: tuple[PairStatistic, ...]
    marks: Marks


def statistics(ratings: Ratings, metric: str, yardstick: Yardstick) -> Wanted:
    """For flags those of yes and no, for severities no threshold."""
    steps = labels(ratings, metric)
    if metric in yardstick.flags:
        return Wanted((pair_kappa(steps, "unweighted"),), (pair_flag("recall"), pair_flag("precision")), is_set)
    kappas = [pair_kappa(steps, w) for w in WEIGHTINGS] if steps else []
    found = (pair_icc("A,1"), pair_icc("C,1"), *kappas, PAIR_SPEARMAN, PAIR_BIAS, PAIR_MAE, PAIR_RMSE)
    critical = yardstick.critical.get(metric)
    if critical is None:
        return Wanted(found, (), is_set)
    cases = (pair_failure_case("recall", critical), pair_failure_case("precision", critical))
    return Wanted((*found, pair_auc(critical)), cases, below(critical))


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
        wanted = statistics(ratings, metric, yardstick)
        truth = known_cases(held.values, held.na, wanted.marks)
        for rater in raters:
            mine, asked = said_of(ratings, metric, rater)
            said = said_cases(mine, asked, wanted.marks)
            found = [
                *estimate_pairs(_weighed(ratings, mine, held.values, group), wanted.scored, bootstrap),
                *estimate_pairs(_weighed(ratings, said, truth, group), wanted.cases, bootstrap),
            ]
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

    Each side by its own pattern of N/A. A score counts where both sides' is known. Failures are sought among all items
    of which the reference's failing is known and of which the rater was asked anything: an item that it leaves open it
    does not fail.
    """
    group = ratings.groups() if groups is None else groups
    scores, failing = overall_of_raters(ratings, raters, yardstick)
    held, held_failing = overall_of_reference(ratings, judged_by, yardstick)
    name = reference_name(ratings, judged_by)
    for r, rater in enumerate(raters):
        asked = np.zeros(len(ratings.items), dtype=bool)
        for metric in yardstick.scored:
            asked |= said_of(ratings, metric, rater)[1]
        said = said_cases(failing[:, r], asked, is_set)
        found: list[Estimate] = []
        for mine, theirs, wanted in (
            (scores[:, r], held, _ON_SCORES),
            (said, held_failing, _ON_FAILURES),
            (failing[:, r], held_failing, _ON_FAILING),
        ):
            found += estimate_pairs(_weighed(ratings, mine, theirs, group), wanted, bootstrap)
        yield PairFigures(OVERALL, rater, name, tuple(found))


_ON_SCORES = [pair_icc("A,1"), pair_icc("C,1"), PAIR_SPEARMAN, PAIR_BIAS, PAIR_MAE, PAIR_RMSE]
_ON_FAILURES = [pair_rule("recall"), pair_rule("precision")]
_ON_FAILING = [pair_kappa((0.0, 1.0), "unweighted")]


def said_of(ratings: Ratings, metric: str, rater: str) -> tuple[Floats, Bools]:
    """The rater's scores over all (I,) items of the table, NaN where there is none; and where it was asked at all."""
    matrix = ratings.matrix(metric, [rater])
    values, asked = np.full(len(ratings.items), np.nan), np.zeros(len(ratings.items), dtype=bool)
    values[matrix.index], asked[matrix.index] = matrix.values[:, 0], True
    return values, asked


def _weighed(ratings: Ratings, mine: Floats, theirs: Floats, group: Ints) -> Pairs:
    """The pairs over the items that the reference (`theirs`) knows, by the inverse of their inclusion."""
    index = np.flatnonzero(~np.isnan(theirs))
    weights = inclusion_weights(ratings, index) if len(index) else None
    return make_pairs(mine[index], theirs[index], groups=group[index], n_groups=_count(group), weights=weights)


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
        wanted = statistics(ratings, metric, yardstick)
        scored, cases = ([s for s in of if names is None or s.name in names] for of in (wanted.scored, wanted.cases))
        matrix = ratings.matrix(metric, raters)
        place, n = group[matrix.index], _count(group)
        asked = matrix.scored | matrix.na | matrix.unscored
        for i, j in combinations(range(len(raters)), 2):
            mine, theirs = matrix.values[:, i], matrix.values[:, j]
            found = estimate_pairs(make_pairs(mine, theirs, groups=place, n_groups=n), scored, bootstrap)
            if cases:
                truth = known_cases(theirs, matrix.na[:, j], wanted.marks)
                known = ~np.isnan(truth)
                said = said_cases(mine, asked[:, i], wanted.marks)
                pairs = make_pairs(said[known], truth[known], groups=place[known], n_groups=n)
                found += estimate_pairs(pairs, cases, bootstrap)
            yield PairFigures(metric, raters[i], raters[j], tuple(found))


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
