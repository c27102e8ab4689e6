"""Does a rater find what the reference calls a failure (a score below the critical threshold) or a crisis (a flag)?

The functions here know the pairs they are given: an item that one side did not score is in no pair, and counts neither
as found nor as missed. Where it must count, make the pairs of cases (cases.py) and not of scores.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from .cases import Bools, below, is_set
from .estimate import Estimate, Interval
from .library import stats_library
from .pair_statistic import Cells, PairStatistic, estimate_pair
from .pairs import Marks, Pairs, prevalence
from .rank import marginal
from .resample import Bootstrap, Floats


def failure_recall(pairs: Pairs, *, critical: float, bootstrap: Bootstrap | None = None) -> Estimate:
    """Share of the reference's failures (score < critical), of the items that both scored, that the rater scores below
    critical too, 0..1.

    Undefined where the reference has no failure: sensitivity cannot be estimated.

    >>> from aipsy_judge.agreement import make_pairs
    >>> failure_recall(make_pairs([1, 4, 5], [1, 1, 5]), critical=2).value
    0.5
    """
    return estimate_pair(pairs, pair_failure("recall", critical), bootstrap)


def failure_precision(pairs: Pairs, *, critical: float, bootstrap: Bootstrap | None = None) -> Estimate:
    """Share of what the rater scores below critical, of the items that both scored, that is a failure by the reference,
    0..1.

    Undefined where the rater scores nothing below critical.
    """
    return estimate_pair(pairs, pair_failure("precision", critical), bootstrap)


def failure_auc(pairs: Pairs, *, critical: float, bootstrap: Bootstrap | None = None) -> Estimate:
    """Probability that the rater scores a failure of the reference lower than a non-failure, ties counted half; over
    the items that both scored, for an item without a score has no rank.

    0.5: no better than a coin, whatever the cut. Undefined where the reference has no failure or nothing else. The
    figure is scikit-learn's.
    """
    return estimate_pair(pairs, pair_auc(critical), bootstrap)


def flag_recall(pairs: Pairs, *, bootstrap: Bootstrap | None = None) -> Estimate:
    """Share of the reference's set flags (1), of the items that both answered, that the rater sets too, 0..1. Undefined
    where the reference sets none."""
    return estimate_pair(pairs, pair_flag("recall"), bootstrap)


def flag_precision(pairs: Pairs, *, bootstrap: Bootstrap | None = None) -> Estimate:
    """Share of the rater's set flags, of the items that both answered, that the reference sets too, 0..1. Undefined
    where the rater sets none."""
    return estimate_pair(pairs, pair_flag("precision"), bootstrap)


def pair_failure(what: Literal["recall", "precision"], critical: float) -> PairStatistic:
    return _share(f"failure_{what}", _below_form(what, critical), what, below(critical), "failure")


def pair_failure_case(what: Literal["recall", "precision"], critical: float) -> PairStatistic:
    """The same for cases: x and y are 1 where a side puts the item below critical, else 0 (cases.py)."""
    without = {"recall": "N/A or no score finds none", "precision": "its N/A is none"}[what]
    return _share(f"failure_{what}", f"{_below_form(what, critical)}; {without}", what, is_set, "failure")


def _below_form(what: Literal["recall", "precision"], critical: float) -> str:
    return {
        "recall": f"share of the reference's scores below {critical:g} that the rater puts below it too",
        "precision": f"share of the rater's scores below {critical:g} that the reference puts below it too",
    }[what]


def pair_rule(what: Literal["recall", "precision"]) -> PairStatistic:
    """For whole items: x and y are 1 where the failure rule holds, else 0."""
    form = {
        "recall": "share of the items that fail by the reference which fail by the rater too",
        "precision": "share of the items that fail by the rater which fail by the reference too",
    }[what]
    return _share(f"failure_{what}", form, what, is_set, "failure")


def pair_flag(what: Literal["recall", "precision"]) -> PairStatistic:
    """x and y are 1 where the flag is set, else 0."""
    form = {
        "recall": "share of the reference's set flags that the rater sets too",
        "precision": "share of the rater's set flags that the reference sets too",
    }[what]
    return _share(f"flag_{what}", form, what, is_set, "set flag")


def _share(name: str, form: str, what: Literal["recall", "precision"], marks: Marks, word: str) -> PairStatistic:
    def kernel(table: Cells, counts: Floats) -> Floats:
        base = marks(table.y) if what == "recall" else marks(table.x)
        hits = marks(table.x) & marks(table.y)
        found: Floats = (counts @ hits.astype(np.float64)) / (counts @ base.astype(np.float64))
        return found

    def why_not(pairs: Pairs) -> str | None:
        if marks(pairs.y if what == "recall" else pairs.x).any():
            return None
        if what == "recall":
            return f"the reference has no {word}: sensitivity cannot be estimated"
        return f"the rater has no {word}"

    def case_groups(pairs: Pairs) -> int:
        return _holding(pairs, marks(pairs.y if what == "recall" else pairs.x))

    def fallback(pairs: Pairs, spread: Interval) -> Interval:
        base = marks(pairs.y if what == "recall" else pairs.x)
        hits = marks(pairs.x) & marks(pairs.y)
        weights = pairs.weight[base]
        share = float(np.average(hits[base], weights=weights))
        return wilson(share, case_groups(pairs), spread, unequal=kish(weights))

    return PairStatistic(name, form, kernel, why_not, None, fallback, case_groups, prevalence(marks))


def _holding(pairs: Pairs, cases: Bools) -> int:
    """How many groups hold one of these cases."""
    return len(np.unique(pairs.group[cases]))


def wilson(share: float, groups: int, spread: Interval, *, unequal: float = 1.0) -> Interval:
    """The score interval of Wilson (1927), with the groups that hold a case as its n: for shares of 0 and 1, where
    every resample gives the same, and of few groups. Taking groups, not items, for n errs on the wide side.

    unequal  how far unequal weights lessen that n (`kish`), at least 1. Wilson's interval at an effective number is
             what Franco, Little, Louis and Slud (2019, Journal of Survey Statistics and Methodology 7) recommend for
             shares in weighted and clustered samples.
    """
    z, n = NormalDist().inv_cdf((1 + spread.level) / 2), groups / unequal
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    method = f"Wilson, n = {groups} groups that hold a case"
    if unequal > 1:
        method = (
            f"Wilson, n = {n:.2f}: {groups} groups that hold a case, by Kish's factor {unequal:.2f} for unequal weights"
        )
    # Rounding may put the end that is exactly 0 or 1 a last bit beside it.
    low, high = min(max(0.0, middle - half), share), max(min(1.0, middle + half), share)
    return replace(spread, low=low, high=high, method=method, reason=None, groups=groups)


def kish(weights: Floats) -> float:
    """By how much unequal weights (n,) enlarge a variance: n sum(w^2) / sum(w)^2, from 1 where all are alike to n (Kish
    1992, Weighting for Unequal P_i, Journal of Official Statistics 8)."""
    if np.ptp(weights) == 0:
        return 1.0  # exactly, whatever the rounding of the squares
    return float(len(weights) * (weights**2).sum() / weights.sum() ** 2)


def pair_auc(critical: float) -> PairStatistic:
    def kernel(table: Cells, counts: Floats) -> Floats:
        failing = (table.y < critical).astype(np.float64)
        bad = marginal(counts * failing, table.x_code, len(table.x_values))
        good = marginal(counts * (1 - failing), table.x_code, len(table.x_values))
        higher = good.sum(axis=1, keepdims=True) - np.cumsum(good, axis=1)
        found: Floats = (bad * (higher + good / 2)).sum(axis=1) / (bad.sum(axis=1) * good.sum(axis=1))
        return found

    def why_not(pairs: Pairs) -> str | None:
        failing = pairs.y < critical
        if not failing.any():
            return "the reference has no failure"
        return "the reference has nothing but failures" if failing.all() else None

    def sklearn(pairs: Pairs) -> float:
        return float(stats_library("sklearn.metrics").roc_auc_score(pairs.y < critical, -pairs.x))

    def case_groups(pairs: Pairs) -> int:
        # It compares the two classes, and is no surer than the one in fewer groups lets it be.
        failing = pairs.y < critical
        return min(_holding(pairs, failing), _holding(pairs, ~failing))

    form = f"area under the ROC curve, reference below {critical:g}"
    beside = prevalence(lambda scores: scores < critical)
    library = ("scikit-learn", sklearn)
    return PairStatistic("failure_auc", form, kernel, why_not, library, case_groups=case_groups, beside=beside)
