"""Figures of one contestant against one reference, with intervals by resampling groups of conversations.

Values are compared where both sides have one. Failures and flags are counted over all items that the reference
knows: what a contestant calls N/A, or could not score, it has not found. Probabilities of failure are ranked where one
is told: also of N/A, 0 where a flag that is not set made it so, but not of what could not be scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from aipsy_judge.agreement import Bootstrap, Estimate
from aipsy_judge.agreement.cases import below, is_set, said_cases
from aipsy_judge.agreement.detection import pair_auc, pair_flag, pair_rule
from aipsy_judge.agreement.error import PAIR_BIAS, PAIR_MAE
from aipsy_judge.agreement.icc import pair_icc
from aipsy_judge.agreement.kappa import pair_kappa
from aipsy_judge.agreement.pair_statistic import PairStatistic, estimate_pairs
from aipsy_judge.agreement.pairs import Ints, Pairs, make_pairs
from aipsy_judge.agreement.rank import PAIR_SPEARMAN
from aipsy_judge.composite import composite
from aipsy_judge.rubric import Metric, Rubric
from aipsy_judge.verdict import NotApplicable, Score, Scored, Unscored

from .held_out_said import Bools, FlagSaid, Floats, Held, MetricSaid, Said
from .held_out_words import fails

VIEWS = ("expected", "likely", "given")
COMPOSITE, RULE = "composite", "failure rule"


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What is resampled: (I,) group of each item as a number, how many there are, and how."""

    groups: Ints
    n_groups: int
    bootstrap: Bootstrap

    def pairs(self, mine: Floats, theirs: Floats, weights: Floats | None) -> Pairs:
        """The items that both know; the others are counted as dropped only where the reference knows them."""
        known = ~np.isnan(theirs) if weights is None else ~np.isnan(theirs) & ~np.isnan(weights)
        return make_pairs(
            mine[known],
            theirs[known],
            groups=self.groups[known],
            n_groups=self.n_groups,
            weights=None if weights is None else weights[known],
        )


@dataclass(frozen=True, slots=True)
class Counts:
    """Over the items of the part that the contestant was asked about: what it said."""

    scored: int
    na: int
    unscored: int


def risk_auc() -> PairStatistic:
    """The AUC of probabilities: x is 1 - probability, y is 1 - case."""
    return replace(pair_auc(0.5), form="area under the ROC curve of the probability")


def value_statistics(critical: float | None) -> list[PairStatistic]:
    return [
        pair_icc("A,1"),
        PAIR_SPEARMAN,
        PAIR_MAE,
        PAIR_BIAS,
        *([pair_auc(critical)] if critical is not None else []),
    ]


FAILURE = [pair_rule("recall"), pair_rule("precision")]


def metric_figures(said: MetricSaid, held: Held, metric: Metric, ground: Ground) -> dict[str, list[Estimate]]:
    """view (also "p_fail" and "na") -> estimates."""
    truth, na = held.values[metric.name], held.na[metric.name]
    found = {
        view: estimate_pairs(
            ground.pairs(said.view(view), truth, held.weights), value_statistics(metric.critical), ground.bootstrap
        )
        for view in VIEWS
    }
    if metric.critical is not None:
        failing = fails(truth, na, metric.critical)
        for view in ("expected", "likely"):
            mine = said_cases(said.view(view), said.asked, below(metric.critical))
            found[view] += estimate_pairs(ground.pairs(mine, failing, held.weights), FAILURE, ground.bootstrap)
        risk = ground.pairs(1 - said.p_fail, 1 - failing, held.weights)
        found["p_fail"] = estimate_pairs(risk, [risk_auc()], ground.bootstrap)
        half = np.where(said.asked, (said.p_fail >= 0.5).astype(np.float64), np.nan)
        if (~np.isnan(said.p_fail)).any():
            found["p_fail"] += estimate_pairs(ground.pairs(half, failing, held.weights), FAILURE, ground.bootstrap)
    if metric.may_be_na:
        found["na"] = _na_figures(said, truth, na, held, ground)
    return found


def _na_figures(said: MetricSaid, truth: Floats, na: Bools, held: Held, ground: Ground) -> list[Estimate]:
    """Agreement on N/A over the items on which both say whether the metric applies."""
    mine = np.where(said.na, 1.0, np.where(np.isnan(said.expected), np.nan, 0.0))
    theirs = np.where(na, 1.0, np.where(np.isnan(truth), np.nan, 0.0))
    return estimate_pairs(
        ground.pairs(mine, theirs, held.weights), [pair_kappa((0.0, 1.0), "unweighted")], ground.bootstrap
    )


def flag_figures(said: FlagSaid, truth: Floats, held: Held, ground: Ground) -> dict[str, list[Estimate]]:
    """A flag that could not be read is not set."""
    mine = said_cases(said.value, said.asked, is_set)
    found = {
        "value": estimate_pairs(
            ground.pairs(mine, truth, held.weights), [pair_flag("recall"), pair_flag("precision")], ground.bootstrap
        )
    }
    if (~np.isnan(said.probability)).any():
        probable = ground.pairs(said.probability, truth, held.weights)
        found["probability"] = [
            *estimate_pairs(probable, [pair_icc("A,1")], ground.bootstrap),
            *estimate_pairs(
                ground.pairs(1 - said.probability, 1 - truth, held.weights), [risk_auc()], ground.bootstrap
            ),
        ]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """The rubric's composite of every item, (I,): its value, and whether the item fails by the failure rule (1, 0);
    NaN where undefined."""

    value: Floats
    failing: Floats


def whole(rubric: Rubric, values: Mapping[str, Floats], na: Mapping[str, Bools]) -> Whole:
    """By composite.composite; what is neither scored nor N/A is unscored."""
    items = len(next(iter(values.values())))
    found = []
    for n in range(items):
        scores: dict[str, Score] = {}
        for m in rubric.metric_names:
            scored = not np.isnan(values[m][n])
            scores[m] = Scored(float(values[m][n])) if scored else NotApplicable() if na[m][n] else Unscored("missing")
        found.append(composite(rubric, scores))
    return Whole(
        np.array([np.nan if c.value is None else c.value for c in found]),
        np.array([np.nan if c.failure is None else float(c.failure) for c in found]),
    )


def whole_of(said: Said, view: str, rubric: Rubric) -> Whole:
    return whole(rubric, {m: s.view(view) for m, s in said.metrics.items()}, {m: s.na for m, s in said.metrics.items()})


def composite_figures(said: Said, held: Held, rubric: Rubric, ground: Ground) -> dict[str, dict[str, list[Estimate]]]:
    """COMPOSITE and RULE -> view -> estimates. COMPOSITE fails below the rubric's failure_below, as a metric below its
    critical threshold; RULE is the rubric's whole failure rule."""
    truth = whole(rubric, held.values, held.na)
    low = rubric.composite.failure_below if rubric.composite is not None else None
    found: dict[str, dict[str, list[Estimate]]] = {COMPOSITE: {}, RULE: {}}
    asked = np.any([s.asked for s in said.metrics.values()], axis=0)
    for view in ("expected", "likely"):
        mine = whole_of(said, view, rubric)
        pairs = ground.pairs(mine.value, truth.value, held.weights)
        found[COMPOSITE][view] = estimate_pairs(pairs, value_statistics(low), ground.bootstrap)
        if low is not None:
            failing = np.where(np.isnan(truth.value), np.nan, (truth.value < low).astype(np.float64))
            low_ones = ground.pairs(said_cases(mine.value, asked, below(low)), failing, held.weights)
            found[COMPOSITE][view] += estimate_pairs(low_ones, FAILURE, ground.bootstrap)
        ruled = said_cases(mine.failing, asked, is_set)
        rule = ground.pairs(ruled, truth.failing, held.weights)
        found[RULE][view] = estimate_pairs(rule, FAILURE, ground.bootstrap)
    return found


def counts(said: MetricSaid) -> Counts:
    return Counts(int((~np.isnan(said.expected)).sum()), int(said.na.sum()), int(said.unscored.sum()))


def all_figures(said: Said, held: Held, rubric: Rubric, ground: Ground) -> dict[str, dict[str, list[Estimate]]]:
    """metric, flag, COMPOSITE, RULE -> view -> estimates."""
    return dict(_all(said, held, rubric, ground))


def _all(said: Said, held: Held, rubric: Rubric, ground: Ground) -> Iterator[tuple[str, dict[str, list[Estimate]]]]:
    for metric in rubric.metrics:
        yield metric.name, metric_figures(said.metrics[metric.name], held, metric, ground)
    yield from composite_figures(said, held, rubric, ground).items()
    for flag in rubric.flags:
        yield flag.name, flag_figures(said.flags[flag.name], held.flags[flag.name], held, ground)
