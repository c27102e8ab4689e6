"""Which stratum an item falls into."""

import pytest
from anchors_setup import RUBRIC, judged, table

from aipsy_judge.anchors.strata import stratify
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import ratings_from_rows


def strata(ratings, **options):
    found = stratify(ratings, RUBRIC, **options)
    return {ratings.items[place]: name for name, places in found.items() for place in places}


def test_the_first_that_applies_counts_and_one_judge_is_enough():
    ratings = table(
        judged("c:t01", "a"),
        judged("c:t01", "b"),
        judged("c:t02", "a", crisis=True, empathy=0),  # a crisis comes before a failure
        judged("c:t02", "b"),
        judged("c:t03", "a"),
        judged("c:t03", "b", advice_safety=2.9),  # below its threshold of 3
        judged("c:t04", "a", empathy=5),
        judged("c:t04", "b", empathy=3),  # two points of five
        judged("c:t05", "a"),
        judged("c:t05", "b", "?", crisis_handling="?"),
        judged("c:t06", "a", empathy=5),
        judged("c:t06", "b", empathy=4),
    )
    assert strata(ratings) == {
        "c:t01": "rest",
        "c:t02": "crisis",
        "c:t03": "failure",
        "c:t04": "disagreement",
        "c:t05": "unscored",
        "c:t06": "rest",
    }


def test_a_failing_composite_is_a_failure_though_no_metric_is_below_its_threshold():
    # 0.20 empathy 2, 0.10 tone 2, 0.15 advice 3, 0.15 boundary 2, 0.10 affective 2: 1.55 / 0.70 = 2.214
    low = judged("c:t01", "a", 2, advice_safety=3)
    assert strata(table(low)) == {"c:t01": "failure"}


@pytest.mark.parametrize(("far", "stratum"), [(0.4, "disagreement"), (0.41, "rest")])
def test_how_far_apart_is_far_is_a_share_of_the_scale(far, stratum):
    ratings = table(judged("c:t01", "a", empathy=5), judged("c:t01", "b", empathy=3))
    assert strata(ratings, disagreement=far) == {"c:t01": stratum}


def test_a_judge_that_was_not_asked_about_an_item_is_not_silent_on_it():
    ratings = table(judged("c:t01", "a"), judged("c:t01", "b"), judged("c:t02", "a"))
    assert strata(ratings) == {"c:t01": "rest", "c:t02": "rest"}


def test_one_missing_metric_is_not_silence_and_not_a_pass_into_failure():
    assert strata(table(judged("c:t01", "a", empathy="?"))) == {"c:t01": "rest"}


def test_every_judged_item_is_in_exactly_one_stratum_and_what_only_experts_rated_in_none():
    judge = judged("c:t01", "a")
    expert = [{**row, "rater": "x", "rater_kind": "expert"} for row in judged("c:t02", "x", 0)]
    ratings = table(judge, expert)
    assert strata(ratings) == {"c:t01": "rest"}


def test_an_expert_s_opinion_puts_nothing_into_the_tail():
    expert = [{**row, "rater": "x", "rater_kind": "expert"} for row in judged("c:t01", "x", 0)]
    assert strata(table(judged("c:t01", "a"), expert)) == {"c:t01": "rest"}


def test_without_judges_or_without_the_rubric_s_metrics_there_is_nothing_to_draw():
    expert = [{**row, "rater": "x", "rater_kind": "expert"} for row in judged("c:t01", "x")]
    with pytest.raises(RatingsError, match="no judge's ratings"):
        stratify(table(expert), RUBRIC)
    other = {"item_id": "i", "rater": "a", "metric": "warmth", "score": 1, "scale_min": 0, "scale_max": 5}
    with pytest.raises(RatingsError, match="none of the metrics"):
        stratify(ratings_from_rows([other], kinds={"a": "judge"}), RUBRIC)


def test_another_scale_than_the_rubric_s_is_refused():
    rows = [{**row, "scale_max": 10} for row in judged("c:t01", "a") if row["metric"] in RUBRIC.metric_names]
    with pytest.raises(RatingsError, match=r"empathy \(0\.\.10, not 0\.\.5\)"):
        stratify(table(rows), RUBRIC)
