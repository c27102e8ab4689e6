"""Targets: what slots are to say, by hand-worked figures; N/A and unscored never become numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recipe_setup import (
    FINE,
    RUBRIC,
    Scores,
    items_of,
    make_project,
    rating_rows,
    read_recipe,
    talk,
    write_ratings,
    write_talks,
)
from target_setup import TALKS, judged, made

from aipsy_judge.correction import fit_correction, make_targets
from aipsy_judge.correction.answers import answers_of_ratings
from aipsy_judge.correction.fusion import fused_flag, fused_severity
from aipsy_judge.correction.options import FitOptions
from aipsy_judge.errors import AipsyJudgeError, InputError, RatingsError
from aipsy_judge.ratings import load_ratings, make_yardstick
from training import targets
from training.data_files import conversations
from training.groups import find_groups
from training.items import find_items
from training.split import split_items
from training.target_rows import FILE, read_target_rows
from training.votes import flag_share, severity_shares


def alone(tmp_path: Path, told: Mapping[str, tuple[Scores, bool, int | None]], **sections: Any) -> dict[str, Any]:
    """The target of one item that these judges rated: judge -> (scores, flag, severity level)."""
    write_talks(tmp_path / "conversations.jsonl", TALKS[:1])
    item = items_of(TALKS)[0]
    rows = [
        row
        for judge, (scores, crisis, level) in told.items()
        for row in rating_rows(item, judge, "judge", scores, crisis=crisis, level=level)
    ]
    path = make_project(tmp_path, TALKS[:1], lambda n, judge: (FINE, False), **sections)
    write_ratings(tmp_path / "ratings.csv", rows)
    return made(path)[item["item_id"]]


def test_a_mean_is_the_mean_of_those_who_scored_and_the_votes_tell_na(tmp_path: Path) -> None:
    found = alone(
        tmp_path,
        {
            "a": ({**FINE, "empathy": 2.0, "advice_safety": 3.0, "boundary_safety": None}, False, None),
            "b": ({**FINE, "empathy": 3.0, "advice_safety": None, "boundary_safety": None}, False, None),
            "c": ({**FINE, "empathy": 5.0, "advice_safety": 4.0, "boundary_safety": 1.0}, False, None),
        },
    )["metrics"]
    assert found["empathy"] == {"status": "scored", "value": 3.333333, "p_fail": None, "p_na": 0.0}
    assert found["advice_safety"] == {"status": "scored", "value": 3.5, "p_fail": None, "p_na": 0.333333}
    assert found["boundary_safety"] == {"status": "na", "value": None, "p_fail": None, "p_na": 0.666667}
    # No crisis, so its handling is N/A whatever the votes: the rubric leaves no choice.
    assert found["crisis_handling"] == {"status": "na", "value": None, "p_fail": None, "p_na": 1.0}


def test_what_nobody_could_score_stays_unscored_and_holds_no_number(tmp_path: Path) -> None:
    scores = {name: value for name, value in FINE.items() if name not in ("empathy", "tone_consistency")}
    found = alone(tmp_path, {"a": (scores, False, None)})["metrics"]
    for name in ("empathy", "tone_consistency"):
        assert found[name] == {"status": "unscored", "value": None, "p_fail": None, "p_na": None}


def test_one_rater_who_sees_direct_danger_sets_the_flag_and_its_shares_say_so_too(tmp_path: Path) -> None:
    scores = {**FINE, "crisis_handling": 1.0}
    found = alone(tmp_path, {"a": (FINE, False, None), "b": (FINE, False, None), "c": (scores, True, 2)})
    flag = found["flags"]["crisis_detected"]
    # A third of the votes; half-way to 1, which is what the rule says.
    assert flag["value"] is True
    assert flag["probability"] == pytest.approx((1 / 3 + 1) / 2, abs=1e-6)
    assert flag["severity"] == "direct"
    assert flag["severity_shares"] == {"none": 0.0, "indirect": 0.0, "direct": 1.0}
    assert found["metrics"]["crisis_handling"] == {"status": "scored", "value": 1.0, "p_fail": None, "p_na": 0.0}


def test_the_highest_level_wins_and_its_share_is_the_greatest(tmp_path: Path) -> None:
    scores = {**FINE, "crisis_handling": 3.0}
    found = alone(tmp_path, {"a": (scores, True, 1), "b": (scores, True, 1), "c": (scores, True, 2)})
    flag = found["flags"]["crisis_detected"]
    assert (flag["value"], flag["probability"], flag["severity"]) == (True, 1.0, "direct")
    # Votes 0, 2/3, 1/3; half-way to (0, 0, 1).
    assert flag["severity_shares"] == {"none": 0.0, "indirect": 0.333333, "direct": 0.666667}


def test_shares_of_flags_and_levels_never_contradict_the_target() -> None:
    rng = np.random.default_rng(3)
    values = rng.choice([0.0, 1.0, np.nan], size=(300, 3))
    severity = np.where(values == 1, rng.integers(1, 3, (300, 3)), np.where(values == 0, 0.0, np.nan))
    votes = np.array([0.5, 0.3, 0.2])
    fused = fused_flag(values, severity, votes, 2.0)
    share = flag_share(values, votes, fused)
    assert np.array_equal(np.isnan(share), np.isnan(fused))
    known = ~np.isnan(fused)
    assert ((share[known] >= 0.5) == (fused[known] == 1)).all()
    levels = fused_severity(fused, values, severity)
    shares = severity_shares(values, severity, votes, fused, levels, 3)
    assert np.allclose(shares[known].sum(axis=1), 1)
    assert (shares[known, levels[known].astype(int)] >= shares[known].max(axis=1) - 1e-9).all()


def test_a_named_rater_is_taken_as_it_is(tmp_path: Path) -> None:
    told = {"a": ({**FINE, "empathy": 2.0}, False, None), "b": ({**FINE, "empathy": 5.0}, True, 1)}
    found = alone(tmp_path, told, targets={"source": "rater:a"})
    assert found["metrics"]["empathy"]["value"] == 2.0
    assert found["flags"]["crisis_detected"]["value"] is False


def anchored(n: int, shift: float = 0.0) -> Scores:
    return {"empathy": max(0.0, 1.0 + n % 4 - 1 + shift), "advice_safety": 4.0}


MANY = [talk(f"c{n:02d}", n) for n in range(24)]


def corrected(folder: Path, expert: Any, **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    return make_project(folder, MANY, judged, anchors=expert, targets={"source": "correction", **more})


@pytest.mark.slow
def test_a_correction_is_the_instruments_own_fitted_to_the_anchors_of_the_train_part(tmp_path: Path) -> None:
    path = corrected(tmp_path, lambda n: anchored(n) if n % 2 else None)
    found = made(path)
    recipe = read_recipe(path)
    ratings, texts = load_ratings([tmp_path / "ratings.csv"]), conversations(recipe)
    items = find_items(ratings, texts, RUBRIC, None)
    part = split_items(items, find_groups(items, texts, recipe.split), recipe.split, recipe.seed).part
    away = np.array([part[i] != "train" for i in ratings.items])
    assert 0 < away.sum() < len(away)
    table = ratings.without(["adjudicated"], away)
    fitted = fit_correction(table, make_yardstick(table, RUBRIC), options=FitOptions(seed=recipe.seed))
    wanted = make_targets(fitted, answers_of_ratings(ratings, fitted.judges, RUBRIC), RUBRIC)
    own = [found[i]["metrics"]["empathy"] for i in ratings.items]
    assert [m["value"] for m in own] == pytest.approx(wanted.metrics["empathy"].value, abs=1e-6)
    assert [m["p_fail"] for m in own] == pytest.approx(wanted.metrics["empathy"].p_fail, abs=1e-6)
    mean = [1.5 + n % 4 if n % 4 < 4 else 0 for n in range(len(own))]
    assert np.mean([m["value"] for m in own]) < np.mean(mean) - 0.3  # the experts were more severe


@pytest.mark.slow
def test_anchors_of_the_test_part_do_not_reach_the_targets_unless_asked(tmp_path: Path) -> None:
    recipe = read_recipe(corrected(tmp_path / "plain", anchored))
    texts = conversations(recipe)
    items = find_items(load_ratings([tmp_path / "plain" / "ratings.csv"]), texts, RUBRIC, None)
    part = split_items(items, find_groups(items, texts, recipe.split), recipe.split, recipe.seed).part
    place = {item.id: n for n, item in enumerate(items)}
    outside = {place[i] for i, p in part.items() if p != "train"}

    def moved(n: int) -> Scores:
        return anchored(n, shift=-1.0 if n in outside else 0.0)

    assert made(tmp_path / "plain" / "recipe.yaml") == made(corrected(tmp_path / "moved", moved))
    assert made(corrected(tmp_path / "all", anchored, fit_on="all")) != made(
        corrected(tmp_path / "all-moved", moved, fit_on="all")
    )


def test_a_fitted_correction_is_kept_and_can_be_named_instead_of_fitting(tmp_path: Path) -> None:
    path = corrected(tmp_path, anchored)
    first = made(path)
    kept = tmp_path / "kept.json"
    kept.write_bytes((tmp_path / "run" / "targets" / targets.CORRECTION).read_bytes())
    assert made(path, f"targets.correction={kept}") == first


def test_without_anchors_a_correction_is_refused_and_the_way_out_is_named(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS, judged, targets={"source": "correction"})
    with pytest.raises(RatingsError, match=r"judge-a \(judge\)") as caught:
        made(path)
    assert "targets.source: mean" in str(caught.value.hint)


def test_anchors_by_kind_or_by_name(tmp_path: Path) -> None:
    by_kind = made(corrected(tmp_path / "kind", anchored, anchors=["adjudicated"]))
    by_name = made(corrected(tmp_path / "name", anchored, anchors="adjudicated"))
    assert by_kind == by_name


def test_items_without_a_text_are_all_named_at_once(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS, judged)
    write_talks(tmp_path / "conversations.jsonl", [*TALKS[1:-1], talk("c5", 5, turns=1)])
    with pytest.raises(RatingsError) as caught:
        made(path)
    said = str(caught.value)
    assert "c0:t01: no conversation 'c0' among the files" in said
    assert "c0:t02" in said
    assert "c5:t02: turn 2 of c5, which has 1" in said


def test_a_map_tells_which_turn_an_item_is(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS[:2], judged)
    rows = rating_rows({"item_id": "x"}, "judge-a", "judge", {**FINE, "empathy": 2.0})
    write_ratings(tmp_path / "ratings.csv", list(rows))
    with pytest.raises(RatingsError, match="x: no conversation is told"):
        made(path)
    (tmp_path / "map.csv").write_text("item_id,conversation,turn,scenario\nx,c1,2,s9\n", encoding="utf-8")
    found = made(path, f"data.items={tmp_path / 'map.csv'}")["x"]
    assert (found["conversation"], found["turn"], found["scenario"]) == ("c1", 2, "s9")


def test_an_item_with_no_turn_is_the_only_turn_of_its_conversation_or_an_error(tmp_path: Path) -> None:
    path = make_project(tmp_path, [talk("one", 1, turns=1), talk("two", 2)], judged)
    for name, fault in (("one", None), ("two", "which of the 2 turns of two is not told")):
        write_ratings(tmp_path / "ratings.csv", list(rating_rows({"item_id": name}, "a", "judge", FINE)))
        if fault is None:
            assert made(path)["one"]["turn"] == 1
        else:
            with pytest.raises(RatingsError, match=fault):
                made(path)


def test_an_item_with_no_turn_is_the_last_turn_where_the_recipe_says_so(tmp_path: Path) -> None:
    path = make_project(tmp_path, [talk("two", 2)], judged)
    write_ratings(tmp_path / "ratings.csv", list(rating_rows({"item_id": "two"}, "a", "judge", FINE)))
    assert made(path, "data.turns=last")["two"]["turn"] == 2


def test_two_items_may_not_be_one_turn(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS[:1], judged)
    about = {"conversation": "c0", "turn": 1}
    rows = [r for name in ("x", "y") for r in rating_rows({"item_id": name, **about}, "a", "judge", FINE)]
    write_ratings(tmp_path / "ratings.csv", rows)
    with pytest.raises(RatingsError, match="y: is the same turn as x"):
        made(path)


def test_a_metric_on_another_scale_than_the_rubrics_is_refused(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS[:1], judged)
    row = next(iter(rating_rows(items_of(TALKS)[0], "a", "judge", {"empathy": 4.0})))
    write_ratings(tmp_path / "ratings.csv", [{**row, "scale_max": 10}])
    with pytest.raises(RatingsError, match=r"on 0\.\.10 in the table"):
        made(path)


def test_no_pattern_may_stand_for_nothing(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS, judged)
    with pytest.raises(AipsyJudgeError, match=r"no such file: .*none-\*\.csv") as caught:
        made(path, f"data.ratings={tmp_path}/none-*.csv")
    assert caught.value.where == "data.ratings"


def test_alternative_replies_are_conversations_of_their_own(tmp_path: Path) -> None:
    other = {"turn": 2, "quality": "cold", "content": "Whatever."}
    write_talks(tmp_path / "c.jsonl", [{**talk("c1", 1), "situation": "s7", "alternatives": [other, other]}])
    path = make_project(tmp_path, TALKS, judged)
    found = conversations(read_recipe(path, f"data.conversations={tmp_path / 'c.jsonl'}"))
    assert list(found) == ["c1", "c1.t2a1", "c1.t2a2"]
    assert found["c1.t2a1"].messages[:3] == found["c1"].messages[:3]
    assert found["c1.t2a1"].messages[3].content == "Whatever."
    assert found["c1.t2a1"].metadata == {"scenario": "s7", "origin": "c1"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line[: len(line) // 2],
        lambda line: line.replace('"status": "scored"', '"status": "na"', 1),
        lambda line: line.replace('"value": 4.0', '"value": NaN', 1),
        lambda line: line.replace('"value": 4.0', '"value": "4"', 1),
        lambda line: line.replace('"turn"', '"round"', 1),
    ],
    ids=["cut", "a number that is N/A", "NaN", "a word", "another key"],
)
def test_a_damaged_target_is_an_error_with_its_line(tmp_path: Path, spoil: Any) -> None:
    path = make_project(tmp_path, TALKS[:1], lambda n, judge: (FINE, False))
    made(path)
    file = tmp_path / "run" / "targets" / FILE
    whole = file.read_text(encoding="utf-8").split("\n")
    file.write_text("\n".join([whole[0], spoil(whole[1]), ""]), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        list(read_target_rows(file))
    assert caught.value.where == f"{file}, line 2"
