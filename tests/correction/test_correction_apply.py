"""A correction on new scores: tables, missing judges, one judge's verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from correction_panels import judged, table, truth

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.correction import (
    Correction,
    FitOptions,
    apply_to_ratings,
    apply_to_verdict,
    check_lane,
    correct_scores,
    fit_correction,
)
from aipsy_judge.errors import LaneError
from aipsy_judge.ratings import Ratings, make_yardstick, ratings_from_rows
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import NotApplicable, Scored, Unscored, Verdict

RUBRIC = load_rubric()
NO_INTERVALS = Bootstrap(resamples=0)
JUDGE = "local-1"


def correction_of(ratings: Ratings, **given: Any) -> Correction:
    yardstick = make_yardstick(ratings, RUBRIC)
    return fit_correction(ratings, yardstick, options=FitOptions(**given), often=NO_INTERVALS)


@pytest.fixture(scope="module")
def panel() -> tuple[Ratings, Correction]:
    expert = truth(300, 21)
    ratings = table(judged(expert, [0.9, 0.2, 0.7], 0.6, 21), expert, np.arange(100))
    return ratings, correction_of(ratings)


@pytest.fixture(scope="module")
def single() -> Correction:
    expert = truth(300, 22)
    return correction_of(table(judged(expert, [0.9], 0.6, 22), expert, np.arange(100), names=[JUDGE]))


def verdict(score: Any, **provenance: Any) -> Verdict:
    told = {"judge": JUDGE, "rubric": RUBRIC.hash, "contract": "full", **provenance}
    scores = {m: NotApplicable() for m in RUBRIC.metric_names} | {"empathy": score}
    return Verdict("c1", 1, "hash", scores, provenance=told)


def test_values_by_the_written_rule_are_the_values_applied(panel: tuple[Ratings, Correction]) -> None:
    ratings, correction = panel
    record = correction.metrics["empathy"]
    index, found = apply_to_ratings(correction, ratings)["empathy"]
    scores = ratings.matrix("empathy", record.judges).values[index[:20]]
    for n, row in enumerate(scores):
        value = record.combined.at_centre
        for judge, score in zip(record.judges, row, strict=True):
            value += record.combined.judges[judge] * (score - record.centres.judges[judge])
            for at, share, step in zip(
                record.centres.thresholds,
                record.centres.shares[judge],
                record.combined.steps[judge],
                strict=True,
            ):
                value += step * ((score >= at) - share)
        assert found.value[n] == pytest.approx(np.clip(value, 0, 5), abs=1e-9)


def test_a_missing_judge_is_filled_in_and_the_value_stays_near(panel: tuple[Ratings, Correction]) -> None:
    ratings, correction = panel
    record = correction.metrics["empathy"]
    scores = ratings.matrix("empathy", record.judges).values
    whole = correct_scores(record, scores, np.empty((300, 0)))
    gone = scores.copy()
    gone[:, 0] = np.nan
    part = correct_scores(record, gone, np.empty((300, 0)))
    assert part.filled.all()
    assert not whole.filled.any()
    # The lenient judge is the one that is gone: renormalised weights would lower every value by about .3.
    assert abs((part.value - whole.value).mean()) < 0.05
    assert np.abs(part.value - whole.value).mean() < 0.35


def test_filling_in_equals_refitting_without_the_judge(panel: tuple[Ratings, Correction]) -> None:
    ratings, correction = panel
    record = correction.metrics["empathy"]
    scores = ratings.matrix("empathy", record.judges).values
    scores[:, 2] = np.nan
    filled = correct_scores(record, scores, np.empty((300, 0))).value
    two = correction_of(ratings.subset(raters=["judge0", "judge1", "expert"]))
    refitted = apply_to_ratings(two, ratings)["empathy"][1].value
    assert np.corrcoef(filled, refitted)[0, 1] > 0.98
    assert np.abs(filled - refitted).mean() < 0.15


def test_an_item_that_nobody_scored_has_no_value(panel: tuple[Ratings, Correction]) -> None:
    record = panel[1].metrics["empathy"]
    found = correct_scores(record, np.array([[np.nan] * 3, [4.0, 4.0, 4.0]]), np.empty((2, 0)))
    assert np.isnan(found.value[0])
    assert np.isnan(found.raw[0])
    assert found.p_fail is not None
    assert np.isnan(found.p_fail[0])
    assert found.fails is not None
    assert not found.fails[0]
    assert found.raw[1] == 4.0


def test_a_table_without_the_corrections_judges_is_refused(panel: tuple[Ratings, Correction]) -> None:
    expert = truth(30, 23)
    other = table(judged(expert, [0, 0], 0.5, 23), expert, [], names=["x", "y"])
    with pytest.raises(LaneError, match="judge0"):
        apply_to_ratings(panel[1], other)


def test_another_scale_is_refused(panel: tuple[Ratings, Correction]) -> None:
    expert = truth(30, 24)
    other = table(judged(expert, [0, 0, 0], 0.5, 24), expert, [], high=10.0)
    with pytest.raises(LaneError, match="is on"):
        apply_to_ratings(panel[1], other)


def test_a_verdict_gets_raw_and_corrected_side_by_side(single: Correction) -> None:
    found = apply_to_verdict(single, verdict(Scored(4)))["empathy"]
    assert found.raw == 4
    assert found.value is not None
    assert 2.5 < found.value < 3.7  # the judge is lenient by .9
    assert found.p_fail is not None
    assert found.fails is False
    low = apply_to_verdict(single, verdict(Scored(1)))["empathy"]
    assert low.p_fail is not None
    assert low.p_fail > found.p_fail
    assert low.fails is True


def test_na_and_unscored_stay_what_they_are(single: Correction) -> None:
    found = apply_to_verdict(single, verdict(Unscored("truncated")))
    assert found["empathy"].value is None
    assert found["empathy"].raw is None
    assert found["empathy"].reason == "unscored: truncated"
    assert found["tone_consistency"].reason == "not applicable"


def test_a_metric_without_correction_keeps_its_raw_score_and_says_so(single: Correction) -> None:
    judged_ = verdict(Scored(4))
    scores = dict(judged_.scores) | {"advice_safety": Scored(5)}
    found = apply_to_verdict(single, Verdict("c", 1, "h", scores, provenance=judged_.provenance))["advice_safety"]
    assert (found.raw, found.value) == (5, None)
    assert found.reason is not None
    assert "no such metric" in found.reason


def test_too_few_anchors_correct_nothing_in_a_verdict() -> None:
    expert = truth(50, 25)
    correction = correction_of(table(judged(expert, [0.9], 0.6, 25), expert, np.arange(3), names=[JUDGE]))
    found = apply_to_verdict(correction, verdict(Scored(4)))["empathy"]
    assert found.value is None
    assert found.p_fail is None
    assert found.reason is not None
    assert "3 anchors" in found.reason


@pytest.mark.parametrize("told", [{"judge": "another"}, {"rubric": "f" * 64}, {"judge": None}])
def test_a_verdict_of_another_lane_is_refused(single: Correction, told: dict[str, Any]) -> None:
    with pytest.raises(LaneError):
        apply_to_verdict(single, verdict(Scored(4), **told))


def test_a_panels_correction_is_not_for_one_judge(panel: tuple[Ratings, Correction]) -> None:
    with pytest.raises(LaneError, match="not to judge0 alone"):
        check_lane(panel[1], "judge0", RUBRIC.hash)


def test_a_correction_bound_to_no_rubric_corrects_no_verdict() -> None:
    expert = truth(50, 26)
    ratings = table(judged(expert, [0.9], 0.6, 26), expert, np.arange(20), names=[JUDGE])
    unbound = fit_correction(ratings, make_yardstick(ratings), often=NO_INTERVALS)
    with pytest.raises(LaneError, match="no rubric"):
        apply_to_verdict(unbound, verdict(Scored(4)))


def test_families_told_in_the_table_are_used_and_unknown_ones_are_not() -> None:
    expert = truth(400, 27, mean=2.5, sd=0.8)
    shift = np.where(np.arange(400) % 2 == 0, 1.0, 0.0)[:, None]
    plain = table(np.clip(judged(expert, [0, 0], 0.5, 27) + shift, 0, 5), expert, np.arange(200))
    rows = [{**r, "generator": "human" if int(r["item_id"][1:]) % 2 == 0 else "model"} for r in plain.rows()]
    record = correction_of(ratings_from_rows(rows), families=True).metrics["empathy"]
    score = np.array([[3.0, 3.0]] * 3)
    found = correct_scores(record, score, np.empty((3, 0)), ["human", "model", "somebody"]).value
    assert found[0] < found[2] < found[1]
