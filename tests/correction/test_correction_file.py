"""The correction's file: round trip, what is in it, what is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from correction_panels import judged, table, truth

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.correction import (
    Correction,
    FitOptions,
    correction_text,
    fit_correction,
    load_correction,
    save_correction,
)
from aipsy_judge.errors import InputError, RatingsError
from aipsy_judge.ratings import Ratings, make_yardstick, merge_ratings, ratings_from_rows

FAST = Bootstrap(resamples=50)


def panel_table(seed: int = 1, anchors: int = 40, items: int = 120) -> Ratings:
    expert = truth(items, seed)
    return table(judged(expert, [0.9, 0.4, 0.7], 0.7, seed), expert, np.arange(anchors))


def correction_of(ratings: Ratings, **given: Any) -> Correction:
    return fit_correction(ratings, make_yardstick(ratings), options=FitOptions(**given), often=FAST)


@pytest.fixture(scope="module")
def correction() -> Correction:
    return correction_of(panel_table())


def test_a_correction_comes_back_from_its_file_as_it_was(correction: Correction, tmp_path: Path) -> None:
    save_correction(tmp_path / "c.json", correction)
    assert load_correction(tmp_path / "c.json") == correction


def test_the_same_table_gives_the_same_file(correction: Correction) -> None:
    assert correction_text(correction_of(panel_table())) == correction_text(correction)


def test_the_file_says_which_way_the_metric_moved_and_by_whom(correction: Correction) -> None:
    record = correction.metrics["empathy"]
    assert record.moved is not None
    assert record.moved.mean == pytest.approx(-0.6, abs=0.2)
    assert "moved down" in record.moved.sentence
    assert "If expert is too lenient" in record.moved.sentence


def test_every_rung_and_rival_stands_there_out_of_fold(correction: Correction) -> None:
    record = correction.metrics["empathy"]
    ways = record.out_of_fold
    assert {"mean of the judges", "published rule", "best judge on the other anchors", "blend"} <= set(ways)
    assert {f"judge judge{j}" for j in range(3)} <= set(ways)
    assert {f"rung: {r.name}" for r in record.rungs} <= set(ways)
    for way in ways.values():
        for figure in way.values():
            assert figure.n == 40
            assert figure.value is not None or figure.reason
    assert record.in_sample_rmse is not None
    assert ways["blend"]["rmse"].value is not None
    assert record.in_sample_rmse < ways["blend"]["rmse"].value


def test_nothing_of_the_in_sample_figure_stands_alone() -> None:
    record = correction_of(panel_table(anchors=3)).metrics["empathy"]
    assert record.in_sample_rmse is None
    assert record.out_of_fold == {}
    assert all(r.rmse_in_sample is None for r in record.rungs)


def test_few_anchors_fall_back_to_the_equal_mean_with_a_warning() -> None:
    record = correction_of(panel_table(anchors=4)).metrics["empathy"]
    assert record.status == "too_few_anchors"
    assert record.combined.judges == pytest.approx(dict.fromkeys(["judge0", "judge1", "judge2"], 1 / 3))
    assert "4 anchors" in record.warnings[0]
    assert record.failure is not None
    assert record.failure.basis == "prior"


def test_anchors_without_a_failure_leave_p_fail_on_its_prior_and_say_so() -> None:
    expert = np.clip(truth(100, 3), 3, 5)
    record = correction_of(table(judged(expert, [0, 0], 0.5, 3), expert, np.arange(40))).metrics["empathy"]
    assert record.failure is not None
    assert record.failure.basis == "prior"
    assert any("no anchor is a failure" in w for w in record.warnings)
    assert record.out_of_fold["p_fail"]["failure_auc"].value is None
    assert record.out_of_fold["p_fail"]["failure_auc"].reason


def test_the_published_profile_is_its_rule_alone() -> None:
    record = correction_of(panel_table(), profile="published").metrics["empathy"]
    assert [r.name for r in record.rungs] == ["published"]
    weights = record.combined.judges
    assert sum(weights.values()) == pytest.approx(1)
    mean = sum(w * record.centres.judges[j] for j, w in weights.items())
    assert record.combined.at_centre == pytest.approx(mean)  # no offset


def test_a_bias_by_family_is_found_and_written_down() -> None:
    expert = truth(600, 4, mean=2.5, sd=0.8)
    human = np.arange(600) % 2 == 0
    judges = judged(expert, [0, 0], 0.5, 4) + np.where(human, 1.0, 0.0)[:, None]
    rows = [
        {**row, "generator_family": "human" if int(row["item_id"][1:]) % 2 == 0 else "model"}
        for row in table(np.clip(judges, 0, 5), expert, np.arange(200)).rows()
    ]
    record = correction_of(ratings_from_rows(rows), families=True).metrics["empathy"]
    assert record.families is not None
    assert record.families["model"] - record.families["human"] == pytest.approx(0.9, abs=0.25)
    better = record.out_of_fold["blend, bias by family"]["rmse"].value
    assert better is not None
    assert better < 0.9 * (record.out_of_fold["blend"]["rmse"].value or 0)


def test_tail_price_raises_recall_and_states_what_it_costs() -> None:
    expert = truth(400, 5, mean=3.3, sd=1.0)
    ratings = table(judged(expert, [0.8, 0.8], 1.0, 5), expert, np.arange(300))
    record = correction_of(ratings, tail_price=6.0).metrics["empathy"]
    plain, aware = record.out_of_fold["blend"], record.out_of_fold["blend, tail-aware"]
    assert (aware["failure_recall"].value or 0) > (plain["failure_recall"].value or 0) + 0.1
    assert (aware["rmse"].value or 0) > (plain["rmse"].value or 9)
    assert record.tail is not None
    assert record.tail.price == 6.0


def test_severity_of_experts_is_written_down_in_points() -> None:
    truth_ = truth(300, 6, mean=2.5, sd=0.8)
    base = list(table(judged(truth_, [0, 0], 0.5, 6), truth_, []).rows())
    for i in range(300):
        raters = (
            [("mild", 0.5)] if i % 3 == 0 else [("stern", -0.5)] if i % 3 == 1 else [("mild", 0.5), ("stern", -0.5)]
        )
        for name, shift in raters:
            score = float(np.clip(truth_[i] + shift, 0, 5))
            base.append({**base[0], "item_id": f"i{i}", "rater": name, "rater_kind": "expert", "score": score})
    found = correction_of(ratings_from_rows(base), severity=True).leniency["empathy"]
    assert found["mild"] - found["stern"] == pytest.approx(1.0, abs=0.1)


def _damage(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        for key in parents:
            data = data[int(key)] if isinstance(data, list) else data[key]
        data[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_damage("surprise", 1), "surprise"),
        (_damage("metrics/empathy/surprise", 1), "surprise"),
        (_damage("format", "aipsy-correction-9"), "format"),
        (_damage("metrics/empathy/anchors", "many"), "anchors"),
        (_damage("metrics/empathy/rungs/0/blend", 0.9), "do not sum to 1"),
        (_damage("metrics/empathy/combined/judges", {"judge0": 1.0}), "not the judges"),
        (_damage("metrics/empathy/votes", {"judge0": 1.5, "judge1": -0.5, "judge2": 0.0}), "votes"),
        (_damage("metrics/empathy/centres/fill_means", [0.5]), "fill"),
        (_damage("metrics/empathy/failure/coefficients", [0.0]), "coefficients"),
        (_damage("metrics/empathy/scale", [5.0, 0.0]), "scale"),
        (_damage("metrics/empathy/metric", "tone"), "holds the record of tone"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    correction: Correction, tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    data = copy.deepcopy(json.loads(correction_text(correction)))
    change(data)
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=says):
        load_correction(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN}', '{"a": 1, "a": 2}', "\xff"])
def test_what_is_no_strict_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError):
        load_correction(path)


def test_a_number_that_is_not_one_is_refused_even_as_text(correction: Correction, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    data = json.loads(correction_text(correction))
    data["metrics"]["empathy"]["combined"]["at_centre"] = "NaN"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="not finite"):
        load_correction(path)


def test_a_metric_that_no_expert_rated_is_the_equal_mean_and_says_so() -> None:
    expert = truth(60, 9)
    rated = table(judged(expert, [0.5, 0.5], 0.5, 9), expert, np.arange(30))
    unrated = table(judged(expert, [0.5, 0.5], 0.5, 10), expert, [], metric="tone")
    record = correction_of(merge_ratings([rated, unrated])).metrics["tone"]
    assert record.status == "too_few_anchors"
    assert record.anchors == 0
    assert "0 anchors" in record.warnings[0]


@pytest.mark.parametrize("together", [1, 2])
def test_the_fewest_anchors_are_judged_out_of_fold_by_the_ladder_and_not_by_its_fallback(together: int) -> None:
    expert = truth(60, 12, mean=2.5)
    conversation = np.arange(60) // together
    ratings = table(judged(expert, [1.5, 1.5], 0.3, 12), expert, np.arange(5), conversation=conversation)
    record = correction_of(ratings).metrics["empathy"]
    assert record.status == "fitted"
    assert record.conversations == (5 if together == 1 else 3)
    blend, mean = (record.out_of_fold[way]["rmse"].value for way in ("blend", "mean of the judges"))
    assert {f"rung: {r.name}" for r in record.rungs} <= set(record.out_of_fold)
    assert blend != mean


def test_nobody_to_be_right_and_a_judge_who_is_are_refused() -> None:
    expert = truth(20, 7)
    ratings = table(judged(expert, [0, 0], 0.5, 7), expert, [])
    with pytest.raises(RatingsError, match="nobody is an expert"):
        correction_of(ratings)
    with pytest.raises(RatingsError, match="right at once"):
        fit_correction(ratings, make_yardstick(ratings), experts=["judge0"], judges=["judge0", "judge1"], often=FAST)


def test_items_that_no_judge_scored_are_no_anchors_and_are_counted() -> None:
    expert = truth(60, 8)
    judges = judged(expert, [0.5, 0.5], 0.5, 8)
    judges[:10] = np.nan
    record = correction_of(table(judges, expert, np.arange(40))).metrics["empathy"]
    assert record.anchors == 30
    assert any("10 items" in w for w in record.warnings)
