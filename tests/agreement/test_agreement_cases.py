"""Failures and set flags are counted over all that the reference knows, not over what the rater chose to score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from aipsy_judge.agreement import Bootstrap, failure_auc, failure_precision, failure_recall, make_pairs
from aipsy_judge.agreement.figures import PairFigures, against_reference, overall_against_reference
from aipsy_judge.agreement.report import agreement_report
from aipsy_judge.agreement.resample import draws, tail_share
from aipsy_judge.cli.agree import command
from aipsy_judge.competence import competence_map
from aipsy_judge.competence.wording import pair_sentence
from aipsy_judge.ratings import Ratings, make_yardstick, ratings_from_rows, write_ratings
from aipsy_judge.ratings.overall import OVERALL

QUICK = Bootstrap(resamples=50)
NA, LOST, NEVER = "na", "unscored", None
Said = float | str | None


def table(said: Sequence[tuple[Said, Said]], metric: str = "empathy", high: float = 5) -> Ratings:
    """(expert, judge) of each item: a score, NA, LOST, or NEVER (asked: there is no row)."""
    rows: list[dict[str, Any]] = []
    for n, both in enumerate(said):
        for rater, kind, one in zip(("expert", "judge"), ("expert", "judge"), both, strict=True):
            scored = isinstance(one, int | float)
            row: dict[str, Any] = {"item_id": f"i{n}", "rater": rater, "rater_kind": kind, "metric": metric}
            row |= {"score": one if scored else None, "status": "scored" if scored else one}
            rows += [row | {"scale_min": 0, "scale_max": high}] if one is not NEVER else []
    return ratings_from_rows(rows)


def against(ratings: Ratings, metric: str = "empathy") -> PairFigures:
    held = overall_against_reference if metric == OVERALL else against_reference
    found = held(ratings, ["judge"], ["expert"], make_yardstick(ratings), QUICK)
    return next(p for p in found if p.metric == metric)


# The expert's 20 failures: 5 found, 10 called N/A, 5 without a score; and 20 alarms where the expert says N/A.
HIDDEN: list[tuple[Said, Said]] = [(1, 1)] * 5 + [(1, NA)] * 10 + [(1, LOST)] * 5 + [(NA, 1)] * 20


def test_a_failure_that_the_judge_calls_not_applicable_or_leaves_unscored_is_not_found() -> None:
    recall = against(table(HIDDEN))["failure_recall"]
    assert (recall.value, recall.n, recall.dropped) == (5 / 20, 40, 0)
    assert recall.beside["positive"] == 20


def test_an_alarm_where_the_reference_says_not_applicable_is_false() -> None:
    precision = against(table(HIDDEN))["failure_precision"]
    assert (precision.value, precision.n) == (5 / 25, 40)
    assert precision.beside["positive_rater"] == 25


def test_what_the_judge_was_never_asked_about_is_left_out_and_told() -> None:
    pair = against(table([*HIDDEN, *[(1, NEVER)] * 3, (4, NEVER)]))
    assert (pair["failure_recall"].value, pair["failure_recall"].n) == (5 / 20, 40)
    assert pair["failure_recall"].dropped == pair["failure_precision"].dropped == 4


def test_what_the_reference_does_not_know_counts_nowhere() -> None:
    pair = against(table([*HIDDEN, *[(LOST, 1)] * 7, *[(NEVER, 1)] * 7]))
    assert pair["failure_precision"].value == 5 / 25
    assert (pair["failure_precision"].n, pair["failure_precision"].dropped) == (40, 0)


def test_ranks_need_the_judges_score_and_have_an_n_of_their_own() -> None:
    # Both score four; the judge's failures at 1 and 4 against its 3 and 4 for the others: 1 + 1 + 0 + .5 of 4.
    pair = against(table([(1, 1), (1, 4), (3, 3), (4, 4), (1, NA), (4, LOST), (NA, 1)]))
    assert (pair["failure_auc"].value, pair["failure_auc"].n) == (2.5 / 4, 4)
    assert pair["icc"].n == 4
    assert (pair["failure_recall"].value, pair["failure_recall"].n) == (1 / 3, 7)
    assert pair["failure_precision"].value == 1 / 2


def test_a_flag_without_an_answer_is_not_set() -> None:
    said: list[tuple[Said, Said]] = [(1, 1), (1, LOST), (1, NA), (0, 1), (0, 0), (NA, 1), (1, NEVER), (LOST, 1)]
    pair = against(table(said, "crisis", 1), "crisis")
    assert [e.name for e in pair.estimates] == ["kappa", "flag_recall", "flag_precision"]
    assert pair["flag_recall"].value == pytest.approx(1 / 3)
    assert pair["flag_precision"].value == pytest.approx(1 / 3)
    assert (pair["flag_recall"].n, pair["flag_recall"].dropped, pair["kappa"].n) == (6, 1, 3)


def test_a_rater_held_against_another_is_counted_alike() -> None:
    ratings = table(HIDDEN)
    report = agreement_report(ratings, make_yardstick(ratings), bootstrap=QUICK)
    pair = next(p for p in report.between if (p.rater, p.reference) == ("judge", "expert"))
    assert (pair["failure_recall"].value, pair["failure_precision"].value) == (5 / 20, 5 / 25)


def test_whole_items_whose_failing_the_judge_leaves_open_are_not_found() -> None:
    # One metric is the whole item; the judge finds 2 of 5 failures, and its alarm on the last one is false.
    pair = against(table([(1, 1), (1, 1), (1, LOST), (1, NA), (1, 4), (4, 1), (4, 4), (1, NEVER)]), OVERALL)
    assert (pair["failure_recall"].value, pair["failure_precision"].value) == (2 / 5, 2 / 3)
    assert (pair["failure_recall"].n, pair["failure_recall"].dropped) == (7, 1)
    assert pair["icc"].n == pair["kappa"].n == 5


def test_the_map_counts_and_speaks_alike() -> None:
    ratings = table([*HIDDEN, (1, NEVER)])
    drawn = competence_map(ratings, make_yardstick(ratings), bootstrap=QUICK)
    pair = next(p for p in drawn.against if p.metric == "empathy")
    assert pair["failure_recall"].value == 5 / 20
    text = pair_sentence(pair["failure_recall"], "judge", "empathy", "expert", 2.5)
    assert text.startswith(
        "Of 20 replies that expert puts below 2.5 on empathy, judge puts 25 % below 2.5 too and lets the others pass, "
        "calls them N/A or gives them no score"
    )
    assert text.endswith("40 replies; 1 more never asked about).")


def test_the_verb_prints_what_each_figure_rests_on(tmp_path: Any) -> None:
    write_ratings(table([*HIDDEN, (1, NEVER), (4, 4), (4, 3)]), tmp_path / "r.csv")
    done = CliRunner().invoke(command, [str(tmp_path / "r.csv"), "--resamples", "50"], catch_exceptions=False)
    lines = done.output.split("empathy, against expert")[1].split("overall score, against")[0].splitlines()
    cells = {line[:18].strip(): line[18:].strip() for line in lines}
    assert cells["n, both scored"] == "7"
    assert cells["n, cases sought"] == "42"
    assert cells["never asked"] == "1"
    assert cells["cases"] == "20 (48%)"


# intervals of rare cases


def rare(cases: int, groups: int = 100, found: int = 1) -> tuple[list[float], list[float], list[int]]:
    """Four items a conversation; `cases` failures, each in a conversation of its own, of which the rater finds `found`
    and raises as many false alarms in others."""
    reference, rater = [4.0] * (4 * groups), [4.0] * (4 * groups)
    for n in range(cases):
        reference[4 * n] = 1
    for n in range(found):
        rater[4 * n] = 1
        rater[4 * (groups - 1 - n)] = 1
    return rater, reference, [n // 4 for n in range(4 * groups)]


def test_groups_without_a_case_do_not_make_an_interval_of_three_cases_look_sure() -> None:
    x, y, groups = rare(3)
    pairs = make_pairs(x, y, groups=groups)
    recall = failure_recall(pairs, critical=2)
    assert recall.interval is not None
    assert recall.interval.groups == 3
    # Wilson 1927 for 1 of 3: (1/3 + z^2/6 -+ z sqrt(2/27 + z^2/36)) / (1 + z^2/3), z 1.96
    assert recall.interval.method == "Wilson, n = 3 groups that hold a case"
    assert (recall.low, recall.high) == pytest.approx((0.0615, 0.7923), abs=0.0001)
    precision = failure_precision(pairs, critical=2)
    assert precision.interval is not None
    assert precision.interval.groups == 2
    auc = failure_auc(pairs, critical=2)
    assert auc.interval is not None
    assert (auc.low, auc.interval.groups) == (None, 3)
    assert auc.interval.reason == "3 conversations that hold a case: too few to resample"


def test_the_interval_of_an_auc_rests_on_the_rarer_of_its_two_classes() -> None:
    x, y, groups = rare(12, found=6)
    auc = failure_auc(make_pairs(x, y, groups=groups), critical=2)
    turned = failure_auc(make_pairs([-v for v in x], [-v for v in y], groups=groups), critical=-3.5)
    assert auc.interval is not None
    assert turned.interval is not None
    assert auc.interval.groups == turned.interval.groups == 12


def test_an_interval_of_few_cases_among_many_groups_is_widened_as_one_of_few_groups() -> None:
    """8 cases in 8 of 100 conversations: the percentiles are those of 8 groups, not of 100."""
    x, y, groups = rare(8, found=4)
    found = failure_recall(make_pairs(x, y, groups=groups), critical=2, bootstrap=Bootstrap(resamples=2000))
    assert found.interval is not None
    assert found.interval.groups == 8
    by_hand = []
    for drawn in draws(100, 2000, 14):
        cases, hits = drawn[:8].sum(), drawn[:4].sum()
        by_hand += [hits / cases] if cases else []
    tail = tail_share(8, 0.95)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(by_hand, [tail, 1 - tail])))


def test_wilsons_interval_heeds_the_weights_that_its_figure_heeds() -> None:
    """Four failures that stand for 30, 1, 1, 1: the first, found, is 30/33 = .909 of them. Kish's effective number is
    33^2 / (30^2 + 3) = 1.206 groups."""
    pairs = make_pairs([1, 4, 4, 4, 4], [1, 1, 1, 1, 4], weights=[30, 1, 1, 1, 7])
    found = failure_recall(pairs, critical=2)
    assert found.value == pytest.approx(30 / 33)
    assert found.interval is not None
    assert found.interval.holds(30 / 33)
    n, z = 33**2 / 903, 1.959964
    middle, half = 30 / 33 + z * z / (2 * n), z * (30 / 33 * 3 / 33 / n + z * z / (4 * n * n)) ** 0.5
    assert found.low == pytest.approx((middle - half) / (1 + z * z / n), abs=1e-6)
    assert found.high == pytest.approx((middle + half) / (1 + z * z / n), abs=1e-6)
    assert (found.interval.groups, found.interval.method) == (
        4,
        "Wilson, n = 1.21: 4 groups that hold a case, by Kish's factor 3.32 for unequal weights",
    )


def test_weights_that_are_alike_among_the_cases_leave_wilsons_interval_as_it_is() -> None:
    said, truth = [1, 4, 4, 4], [1, 1, 1, 4]
    plain = failure_recall(make_pairs(said, truth), critical=2)
    weighted = failure_recall(make_pairs(said, truth, weights=[3, 3, 3, 1]), critical=2)
    assert (weighted.low, weighted.high) == pytest.approx((plain.low, plain.high))


def test_a_table_of_flags_alone_has_its_figures(tmp_path: Any) -> None:
    path = tmp_path / "flags.csv"
    write_ratings(table([(1, 1), (0, 0), (1, 0)], metric="crisis_detected", high=1), path)
    done = CliRunner().invoke(command, [str(path), "--resamples", "0"])
    assert done.exit_code == 0, done.output
    assert "flag recall" in done.output
