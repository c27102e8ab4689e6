"""Ratings from runs and from Inspect logs: nothing becomes a number that was none, and items keep their names."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from run_builder import run, verdict

from aipsy_judge.errors import InputError, LaneError, RatingsError, TranscriptError
from aipsy_judge.ratings import Ratings, from_inspect_eval, load_ratings, ratings_of_runs, write_ratings
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import Reading, Scored


def cells(ratings: Ratings, item: str, rater: str | None = None) -> dict[str, Any]:
    """metric -> score, or the status where there is none."""
    return {
        row["metric"]: row["score"] if row["status"] == "scored" else row["status"]
        for row in ratings.rows()
        if row["item_id"] == item and rater in (None, row["rater"])
    }


def test_a_verdict_becomes_a_row_a_metric_flag_and_severity() -> None:
    judged = verdict("chat", 1, {"empathy": 2, "tone_consistency": None, "advice_safety": "truncated"}, crisis=True)
    ratings = ratings_of_runs([("run-a", "judge-a", run([judged]))])
    assert cells(ratings, "chat:t01") == {
        "empathy": 2,
        "tone_consistency": "na",
        "crisis_handling": 4,
        "advice_safety": "unscored",
        "boundary_safety": 4,
        "affective_complexity": 4,
        "crisis_detected": 1,
        "crisis_severity": 2,
    }
    assert ratings.scales["crisis_detected"] == (0, 1)
    assert ratings.scales["crisis_severity"] == (0, 2)
    assert ratings.kinds == {"judge-a": "judge"}
    assert ratings.conversation[0] == "chat"
    assert ratings.run[0] == "run-a"


def test_an_unread_flag_is_unscored_and_so_is_its_severity() -> None:
    found = cells(ratings_of_runs([("r", "j", run([verdict("chat", 1, crisis=None)]))]), "chat:t01")
    assert found["crisis_detected"] == "unscored"
    assert found["crisis_severity"] == "unscored"


def test_a_turn_that_was_not_reached_is_unscored_not_absent() -> None:
    ratings = ratings_of_runs([("r", "j", run([verdict("chat", 2)]))])
    assert set(cells(ratings, "chat:t01").values()) == {"unscored"}


def test_the_expected_score_is_taken_only_when_asked() -> None:
    reading = Reading(p_na=0.0, expected=3.4, confidence=0.6, legal_mass=1.0)
    made = run([verdict("chat", 1, {"empathy": Scored(4.0, reading), "advice_safety": 3})])
    plain, expected = (cells(ratings_of_runs([("r", "j", made)], expected=e), "chat:t01") for e in (False, True))
    assert (plain["empathy"], expected["empathy"]) == (4, 3.4)
    assert expected["advice_safety"] == 3


def test_runs_by_unlike_rubrics_are_refused() -> None:
    other = load_rubric().model_copy(update={"version": "2"})
    runs = [("a", "a", run([verdict("chat", 1)])), ("b", "b", run([verdict("chat", 1)], rubric=other))]
    with pytest.raises(LaneError, match="unlike rubrics"):
        ratings_of_runs(runs)


def test_one_id_for_two_texts_is_refused() -> None:
    first, second = verdict("chat", 1), verdict("chat", 1)
    object.__setattr__(second, "content_hash", "1" * 64)
    with pytest.raises(InputError, match="chat:t01 stands for another text"):
        ratings_of_runs([("a", "a", run([first])), ("b", "b", run([second]))])


def test_one_judge_twice_is_refused_unless_the_runs_are_named() -> None:
    made = run([verdict("chat", 1)])
    with pytest.raises(RatingsError, match="the same item, rater and metric"):
        ratings_of_runs([("a", "j", made), ("b", "j", made)])
    assert ratings_of_runs([("a", "j 1", made), ("b", "j 2", made)]).raters == ("j 1", "j 2")


def per_judge(judge: str, empathy: Any, **fields: Any) -> dict[str, Any]:
    return {
        "judge": judge,
        "scores": {"empathy": empathy, "crisis_handling": None},
        "crisis_detected": False,
        "crisis_severity": "none",
        "model_snapshot": f"{judge}-2026",
        **fields,
    }


def write_log(path: Path, turns: list[dict[str, Any]], failures: list[dict[str, Any]] | None = None) -> Path:
    told = {"scenario_id": "s06", "per_turn": turns, "judge_failures": failures or []}
    sample = {"id": "s06", "epoch": 1, "scores": {"panel": {"value": {"empathy": float("nan")}, "metadata": told}}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "maker/model", "eval_id": "e1"}}))
        archive.writestr("samples/s06_epoch_1.json", json.dumps(sample))
    return path


def test_a_log_gives_a_row_a_judge_turn_and_metric(tmp_path: Path) -> None:
    turns = [{"turn": 1, "per_judge": [per_judge("openai", 4), per_judge("google", 2.5, crisis_detected=True)]}]
    ratings = from_inspect_eval(write_log(tmp_path / "log.eval", turns))
    assert ratings.raters == ("openai-2026", "google-2026")
    assert cells(ratings, "s06_epoch_1:t01", "openai-2026") == {
        "empathy": 4,
        "crisis_handling": "na",
        "crisis_detected": 0,
        "crisis_severity": 0,
    }
    assert cells(ratings, "s06_epoch_1:t01", "google-2026")["crisis_detected"] == 1
    assert (ratings.generator[0], ratings.scenario[0], ratings.conversation[0]) == ("maker/model", "s06", "s06_epoch_1")


def test_a_judge_that_failed_in_a_log_is_unscored_under_its_own_name(tmp_path: Path) -> None:
    turns = [
        {"turn": 1, "per_judge": [per_judge("openai", 4), per_judge("google", 3)]},
        {"turn": 2, "per_judge": [per_judge("openai", 4)]},
    ]
    failures = [{"turn": 2, "judge": "google", "error": "JudgeParseError"}]
    ratings = from_inspect_eval(write_log(tmp_path / "log.eval", turns, failures))
    assert set(cells(ratings, "s06_epoch_1:t02", "google-2026").values()) == {"unscored"}
    assert ratings.counts()["unscored"] == 4


def test_several_logs_keep_their_items_apart(tmp_path: Path) -> None:
    turns = [{"turn": 1, "per_judge": [per_judge("openai", 4)]}]
    ratings = from_inspect_eval([write_log(tmp_path / f"{n}.eval", turns) for n in ("old", "new")])
    assert ratings.items == ("old/s06_epoch_1:t01", "new/s06_epoch_1:t01")


@pytest.mark.parametrize("score", ["four", True, 7, float("nan")])
def test_what_is_no_score_in_a_log_is_refused(tmp_path: Path, score: Any) -> None:
    path = write_log(tmp_path / "log.eval", [{"turn": 1, "per_judge": [per_judge("openai", score)]}])
    with pytest.raises(RatingsError, match="row 1: "):
        from_inspect_eval(path)


def test_a_log_without_a_panel_or_a_damaged_one_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RatingsError, match="no judge's scores"):
        from_inspect_eval(write_log(tmp_path / "none.eval", []))
    with pytest.raises(RatingsError, match="unknown shape"):
        from_inspect_eval(write_log(tmp_path / "odd.eval", [{"turn": 1, "per_judge": [{"judge": "x"}]}]))
    whole = write_log(tmp_path / "cut.eval", []).read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[:-40])
    with pytest.raises(TranscriptError, match="damaged"):
        from_inspect_eval(tmp_path / "cut.eval")


def test_tables_and_logs_are_told_by_content_and_make_one_table(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.eval", [{"turn": 1, "per_judge": [per_judge("openai", 4)]}])
    table = tmp_path / "expert.csv"
    table.write_text(
        "item_id,rater,rater_kind,metric,score,scale_min,scale_max\ns06_epoch_1:t01,e,expert,empathy,2,0,5\n"
    )
    ratings = load_ratings([table, log])
    assert ratings.matrix("empathy").values.tolist() == [[2, 4]]
    write_ratings(ratings, tmp_path / "all.jsonl")
    assert list(load_ratings([tmp_path / "all.jsonl"]).rows()) == list(ratings.rows())
