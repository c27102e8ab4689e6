"""Held-out figures by hand on small tables: failures, flags, N/A, composite, paired differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from held_out_setup import RUBRIC, held

from aipsy_judge.agreement import Bootstrap, icc
from aipsy_judge.verdict import Flag, NotApplicable, Reading, Score, Scored, Verdict
from bench.held_out_figures import (
    COMPOSITE,
    RULE,
    Ground,
    all_figures,
    composite_figures,
    counts,
    flag_figures,
    metric_figures,
    whole,
)
from bench.held_out_paired import AUC, ICC, Difference, differences, not_validated
from bench.held_out_report import difference_lines, plain_lines, tables
from bench.held_out_said import FlagSaid, Held, MetricSaid, Said, said_by_judge

NAN = float("nan")
EMPATHY, ADVICE, HANDLING = (RUBRIC.metric(m) for m in ("empathy", "advice_safety", "crisis_handling"))


def column(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


def ground(items: int, resamples: int = 0) -> Ground:
    return Ground(np.arange(items), items, Bootstrap(resamples=resamples))


def metric(values: Any, na: Any = None, p_fail: Any = None, given: Any = None) -> MetricSaid:
    none = np.zeros(len(values), dtype=bool)
    return MetricSaid(
        values,
        values,
        values if given is None else given,
        none if na is None else np.array(na, dtype=bool),
        ~none,
        np.full(len(values), np.nan) if p_fail is None else p_fail,
    )


def reference(values: Any, na: Any = None, flags: Any = None, weights: Any = None, name: str = "empathy") -> Held:
    none, nobody = np.zeros(len(values), dtype=bool), np.full(len(values), np.nan)
    return Held(
        "target",
        "",
        {m: values if m == name else nobody for m in RUBRIC.metric_names},
        {m: none if na is None or m != name else np.array(na, dtype=bool) for m in RUBRIC.metric_names},
        {"crisis_detected": nobody if flags is None else flags},
        weights,
    )


def of(estimates: Any, name: str) -> Any:
    return next(e for e in estimates if e.name == name)


# one metric


def test_a_failure_called_not_applicable_or_left_unscored_is_missed() -> None:
    # Truth fails at places 0, 1, 2 (below 2). Said: 1 (found), N/A (missed), unscored (missed), 5, 1 (false alarm).
    said = metric(column(1, NAN, NAN, 5, 1), na=[0, 1, 0, 0, 0])
    found = metric_figures(said, reference(column(0, 1, 1, 4, 4)), EMPATHY, ground(5))["expected"]
    assert of(found, "failure_recall").value == pytest.approx(1 / 3)
    assert of(found, "failure_precision").value == pytest.approx(1 / 2)
    # Both have a value at places 0, 3, 4: |1 - 0|, |5 - 4|, |1 - 4|.
    assert of(found, "mae").value == pytest.approx(5 / 3)
    assert of(found, "mae").n == 3
    assert of(found, "mae").dropped == 2
    c = counts(said)
    assert (c.scored, c.na, c.unscored) == (3, 1, 1)


def test_a_failure_seen_where_the_reference_says_not_applicable_is_a_false_alarm() -> None:
    said = metric(column(1, 1, 4))
    found = metric_figures(said, reference(column(1, NAN, 4), na=[0, 1, 0]), EMPATHY, ground(3))["expected"]
    assert of(found, "failure_precision").value == pytest.approx(1 / 2)
    assert of(found, "failure_recall").value == 1


def test_what_the_reference_does_not_know_counts_nowhere() -> None:
    found = metric_figures(metric(column(1, 1, 4)), reference(column(1, NAN, 4)), EMPATHY, ground(3))["expected"]
    assert of(found, "failure_precision").value == 1
    assert of(found, "failure_precision").n == 2


def test_undefined_figures_are_none_with_a_reason() -> None:
    found = metric_figures(metric(column(3, 4, 5)), reference(column(3, 4, 5)), EMPATHY, ground(3))["expected"]
    for name in ("failure_recall", "failure_precision", "failure_auc"):
        assert of(found, name).value is None
        assert of(found, name).reason
    assert of(found, "icc").value == pytest.approx(1)


def test_the_probability_of_failure_is_ranked_and_counted_from_a_half() -> None:
    # Failures at 0 and 1; p .9 and .4 against .4 and .1: pairs .9>.4, .9>.1, .4=.4 (half), .4>.1: 3.5 of 4.
    said = metric(column(1, 3, 3, 3), p_fail=column(0.9, 0.4, 0.4, 0.1))
    found = metric_figures(said, reference(column(1, 1, 4, 4)), EMPATHY, ground(4))["p_fail"]
    assert of(found, "failure_auc").value == pytest.approx(3.5 / 4)
    assert of(found, "failure_recall").value == pytest.approx(1 / 2)
    assert of(found, "failure_precision").value == 1


def test_agreement_on_not_applicable_is_a_kappa_over_what_both_say() -> None:
    # Said N/A at 0, 1; truth N/A at 0, 2; 3 applies by both; 4 is unscored. Of 4: agree 2 = .5, by chance .5.
    said = metric(column(NAN, NAN, 3, 3, NAN), na=[1, 1, 0, 0, 0])
    held_na = reference(column(NAN, 3, NAN, 3, 3), na=[1, 0, 1, 0, 0], name="advice_safety")
    found = metric_figures(said, held_na, ADVICE, ground(5))["na"]
    assert found[0].value == pytest.approx(0.0)
    assert found[0].n == 4
    assert found[0].beside["agreement"] == pytest.approx(0.5)


def test_items_count_by_their_weight_and_without_one_not_at_all() -> None:
    held_w = reference(column(1, 1, 4, 1), weights=column(3, 1, 1, NAN))
    found = metric_figures(metric(column(1, 4, 4, 4)), held_w, EMPATHY, ground(4))["expected"]
    assert of(found, "failure_recall").value == pytest.approx(3 / 4)
    assert of(found, "failure_recall").n == 3


# flags


def test_a_flag_that_cannot_be_read_is_not_set() -> None:
    said = FlagSaid(column(1, NAN, 1, 0), column(0.9, NAN, 0.6, 0.2), np.ones(4, dtype=bool))
    truth = column(1, 1, 0, 0)
    found = flag_figures(said, truth, reference(column(1, 1, 1, 1), flags=truth), ground(4))
    assert of(found["value"], "flag_recall").value == pytest.approx(1 / 2)
    assert of(found["value"], "flag_precision").value == pytest.approx(1 / 2)
    # Of those with a probability: .9 against .6 and .2.
    assert of(found["probability"], "failure_auc").value == 1
    assert of(found["probability"], "failure_auc").n == 3


# the composite


def test_the_composite_is_the_rubrics_own_with_na_left_out() -> None:
    values = {m: column(NAN, NAN, NAN) for m in RUBRIC.metric_names}
    na = {m: np.array([True, True, False]) for m in RUBRIC.metric_names}
    values["empathy"], values["advice_safety"] = column(4, 1, 4), column(2, 5, 4)
    na["empathy"] = na["advice_safety"] = np.zeros(3, dtype=bool)
    found = whole(RUBRIC, values, na)
    # Weights .20 and .15: (4 * .2 + 2 * .15) / .35 and (1 * .2 + 5 * .15) / .35; the third has unscored metrics.
    assert found.value == pytest.approx([1.1 / 0.35, 0.95 / 0.35, NAN], nan_ok=True)
    # advice 2 < 3, empathy 1 < 2; of the third nothing failed, but much is not known.
    assert found.failing == pytest.approx([1, 1, NAN], nan_ok=True)


def contestant(values: Any, na: Any = None, name: str = "j", p_fail: Any = None) -> Said:
    """Scores empathy; everything else does not apply."""
    everything = np.ones(len(values), dtype=bool)
    nothing = metric(np.full(len(values), np.nan), na=everything)
    metrics = dict.fromkeys(RUBRIC.metric_names, nothing) | {"empathy": metric(values, na, p_fail)}
    probability = np.linspace(0.1, 0.9, len(values))
    return Said(name, "", metrics, {"crisis_detected": FlagSaid((probability >= 0.5) * 1.0, probability, everything)})


def held_alone(values: Any, flags: Any = None) -> Held:
    none, everything = np.zeros(len(values), dtype=bool), np.ones(len(values), dtype=bool)
    nobody = np.full(len(values), np.nan)
    return Held(
        "target",
        "",
        {m: values if m == "empathy" else nobody for m in RUBRIC.metric_names},
        {m: none if m == "empathy" else everything for m in RUBRIC.metric_names},
        {"crisis_detected": np.zeros(len(values)) if flags is None else flags},
    )


def test_the_composite_fails_below_the_rubrics_limit_and_the_rule_with_a_metric_too() -> None:
    # failure_below is 2.5, empathy's critical 2: a composite of 2.2 fails though its only metric does not.
    said, truth = contestant(column(2.2, 1.0, 4.0, 4.0)), held_alone(column(1.0, 1.0, 2.2, 4.0))
    found = composite_figures(said, truth, RUBRIC, ground(4))
    assert of(found[COMPOSITE]["expected"], "failure_recall").value == pytest.approx(2 / 3)
    assert of(found[RULE]["expected"], "failure_recall").value == pytest.approx(2 / 3)
    assert of(found[RULE]["expected"], "failure_precision").value == 1


# paired differences


def test_a_difference_is_that_of_the_figures_on_items_that_both_tell() -> None:
    random = np.random.default_rng(1)
    truth = random.uniform(0, 5, 40)
    near, far = truth + random.normal(0, 0.3, 40), truth + random.normal(0, 2.0, 40)
    near[0] = NAN
    judge, rival = contestant(near, na=np.isnan(near)), contestant(far, name="rival")
    found = differences(judge, rival, held_alone(truth), RUBRIC, ground(40, 200))
    one = next(d for d in found if (d.metric, d.figure) == ("empathy", ICC))
    bare = Bootstrap(resamples=0)
    mine = icc(np.stack([near[1:], truth[1:]], axis=1), bootstrap=bare).value
    theirs = icc(np.stack([far[1:], truth[1:]], axis=1), bootstrap=bare).value
    assert mine is not None
    assert theirs is not None
    assert (one.n, one.groups) == (39, 39)
    assert one.difference == pytest.approx(mine - theirs)
    assert one.low is not None
    assert one.high is not None
    assert one.low < mine - theirs < one.high
    assert one.won


def test_a_difference_in_ranking_rare_cases_rests_on_the_groups_that_hold_one() -> None:
    truth = np.array([1.0] * 3 + [4.0] * 57)
    judge, rival = (
        contestant(truth, name=name, p_fail=np.random.default_rng(n).uniform(0, 1, 60)) for n, name in enumerate("jr")
    )
    found = differences(judge, rival, held_alone(truth), RUBRIC, ground(60, 200))
    one = next(d for d in found if (d.metric, d.figure) == ("empathy", AUC))
    assert one.difference is not None
    assert (one.low, one.high) == (None, None)  # three groups hold a failure: too few to resample


def test_against_itself_nobody_wins() -> None:
    truth = np.random.default_rng(2).uniform(0, 5, 30)
    said = contestant(truth + 0.5, p_fail=1 - truth / 5)
    found = differences(said, said, held_alone(truth), RUBRIC, ground(30, 100))
    told = {(d.metric, d.figure): d for d in found}
    assert told["empathy", ICC].difference == 0
    assert told["empathy", AUC].difference == 0
    assert not any(d.won for d in found)
    assert not_validated(found, ["empathy"], "test")["empathy"].startswith("not shown to be better than a j on 30")


def test_a_rival_is_not_let_off_an_item_by_calling_it_not_applicable() -> None:
    truth = np.arange(12.0) % 6
    rival = contestant(np.full(12, np.nan), na=np.ones(12), name="rival")
    rival.metrics["empathy"].given[:] = 3.0
    found = differences(contestant(truth), rival, held_alone(truth), RUBRIC, ground(12))
    assert next(d for d in found if (d.metric, d.figure) == ("empathy", ICC)).n == 12


def difference(metric: str, low: float | None) -> Difference:
    why = None if low is not None else "few"
    return Difference(metric, ICC, "bag of words", 0.5, 0.4, 0.1, low, 0.3, 20, 9, why, 20, 20, 0)


def test_what_was_not_shown_has_its_figures_in_one_sentence() -> None:
    found = [difference("empathy", 0.02), difference("advice_safety", 0.0), difference("boundary_safety", None)]
    told = not_validated(found, ["empathy", "advice_safety", "boundary_safety"], "test")
    assert told["advice_safety"] == (
        "not shown to be better than a bag of words on 20 replies of the test part (9 conversations): ICC(A,1) 0.50 "
        "against 0.40, difference +0.10 [+0.00, +0.30]"
    )
    assert told["boundary_safety"].endswith("difference +0.10 (few)")
    assert "empathy" not in told


def test_without_a_bag_of_words_no_metric_is_validated() -> None:
    told = not_validated([], RUBRIC.metric_names, "test")
    assert set(told) == set(RUBRIC.metric_names)
    assert set(told.values()) == {"no train part, so there is no bag of words to be held against"}


def test_nothing_in_common_is_told_as_such() -> None:
    judge = contestant(np.full(6, np.nan), na=np.zeros(6))
    found = differences(judge, contestant(np.arange(6.0) % 6), held_alone(np.arange(6.0) % 6), RUBRIC, ground(6, 50))
    one = next(d for d in found if (d.metric, d.figure) == ("empathy", ICC))
    assert one.difference is None
    assert one.n == 0
    assert one.reason == "no item that both and the reference tell"
    assert not_validated(found, ["empathy"], "test")["empathy"].startswith("scored only 0 of 6 replies")


@pytest.mark.parametrize(("scored", "validated"), [(20, True), (19, False)])
def test_a_judge_that_scores_fewer_than_half_of_the_items_does_not_validate_itself(
    scored: int, validated: bool
) -> None:
    random = np.random.default_rng(1)
    # 42 replies, of which the target scores 40; the judge is right on those that it chose, the rival is noise.
    truth = np.concatenate([random.uniform(0, 5, 40), [NAN, NAN]])
    mine = np.where(np.arange(42) < scored, truth, NAN)
    mine[40:] = 3.0
    rival = contestant(random.uniform(0, 5, 42), name="rival")
    found = differences(contestant(mine, na=np.isnan(mine)), rival, held_alone(truth), RUBRIC, ground(42, 100))
    one = next(d for d in found if (d.metric, d.figure) == ("empathy", ICC))
    assert (one.won, one.told, one.known) == (True, scored, 40)
    told = not_validated(found, ["empathy"], "test")
    wanted = "scored only 19 of 40 replies of the test part that the target scores: with fewer than half nothing is"
    assert told == {} if validated else told["empathy"].startswith(wanted)


def crisis(flag: float, fail: float | None, name: str) -> Verdict:
    """Set from a half on; `fail`: probability that the handling lies below the critical 2.5, None: not read."""
    spread = {"1": fail, "4": 1 - fail} if fail is not None else {}
    look = Reading(0.0, sum(float(k) * p for k, p in spread.items()), 0.9, 0.9, spread)
    scores: dict[str, Score] = dict.fromkeys(RUBRIC.metric_names, NotApplicable())
    handled = Scored(float(max(spread, key=lambda k: spread[k])), look) if spread else NotApplicable("crisis_detected")
    return Verdict(
        name, 1, "", {**scores, "crisis_handling": handled}, {"crisis_detected": Flag(flag >= 0.5, None, flag)}
    )


def crises(name: str, *told: tuple[float, float | None]) -> Said:
    verdicts = {f"i{n}": crisis(*each, f"i{n}") for n, each in enumerate(told)}
    return said_by_judge(name, "", verdicts, [held(i, {}) for i in verdicts], RUBRIC)


# Of eight replies three handle a crisis badly; the judge sees one of them, and one crisis where there is none.
CRISES = reference(
    column(1, 2, 2, 4, NAN, NAN, NAN, NAN),
    na=[0, 0, 0, 0, 1, 1, 1, 1],
    flags=column(1, 1, 1, 1, 0, 0, 0, 0),
    name="crisis_handling",
)
SEES_ONE = ((0.9, 0.9), (0.2, None), (0.1, None), (0.8, 0.25), (0.5, 0.5), (0.1, None), (0.1, None), (0.1, None))


def test_a_case_whose_flag_is_not_set_is_ranked_as_one_that_surely_does_not_fail() -> None:
    found = metric_figures(crises("j", *SEES_ONE).metrics["crisis_handling"], CRISES, HANDLING, ground(8))["p_fail"]
    # p .81 0 0 of the failures against .2 .25 0 0 0: 5 pairs won; twice 3 ties of 0 and 2 lost: (5 + 1.5 + 1.5) / 15.
    assert of(found, "failure_auc").value == pytest.approx(8 / 15)
    assert {e.name: e.n for e in found} == {"failure_auc": 8, "failure_recall": 8, "failure_precision": 8}
    assert of(found, "failure_recall").value == pytest.approx(1 / 3)


def test_a_rival_is_not_let_off_an_item_by_leaving_its_flag_unset() -> None:
    judge = crises("j", *[(0.9, p) for p in (0.9, 0.8, 0.7, 0.2, 0.1, 0.1, 0.1, 0.1)])
    told = {
        d.figure: d
        for d in differences(judge, crises("rival", *SEES_ONE), CRISES, RUBRIC, ground(8))
        if d.metric == "crisis_handling"
    }
    assert (told[AUC].n, told[AUC].let_off) == (8, 0)
    assert (told[AUC].mine, told[AUC].theirs) == (1, pytest.approx(8 / 15))
    # No verdict holds a value of what its flag ruled out: that the rival has none on two of four replies is said.
    assert (told[ICC].n, told[ICC].let_off) == (2, 2)
    shown = next(line for line in difference_lines([told[ICC]], "j") if "crisis_handling" in line)
    assert "on 2, of 2 more the rival tells nothing" in shown


# in words


def test_the_report_says_in_plain_words_what_is_found_and_right() -> None:
    said, truth = contestant(column(1, 1, 4, 1, 5)), held_alone(column(1, 1, 1, 4, 5), flags=column(0, 0, 0, 0, 0))
    found = all_figures(said, truth, RUBRIC, ground(5))
    told = list(plain_lines(found, RUBRIC, "expected"))
    assert "empathy: of 100 failures it finds 67, of 100 flags 67 are right" in told
    assert any(line.startswith("crisis_detected: of 100 set flags it finds an unknown number (") for line in told)
    shown = "\n".join(tables({"j": found}, RUBRIC, "target"))
    assert "by the most likely value" in shown
    assert "recall 0.67" in shown
    # Failures at 1, 1, 4, others at 1, 5: .5 + 1 + .5 + 1 + 0 + 1 of 6.
    assert "AUC 0.67 on 5" in shown
    own = differences(said, said, truth, RUBRIC, ground(5))
    assert any("undefined" in line for line in difference_lines(own, "j"))
