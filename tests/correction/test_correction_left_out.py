"""What judges left N/A or unscored stands in the corrected table as that."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from correction_panels import judged, table, truth

from aipsy_judge.cli.correct import command
from aipsy_judge.errors import EXIT_NOTHING_SCORED
from aipsy_judge.ratings import ratings_from_rows, read_ratings, write_ratings

RUBRIC = "aipsy-judge-v1"
JUDGES = ("judge0", "judge1")
METRIC = "advice_safety"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(w) for w in words])


@pytest.fixture(scope="module")
def correction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    expert, folder = truth(60, 61), tmp_path_factory.mktemp("left_out")
    write_ratings(table(judged(expert, [0.6, 0.2], 0.6, 61), expert, np.arange(30), metric=METRIC), folder / "r.csv")
    ran = run("fit", folder / "r.csv", "--rubric", RUBRIC, "--resamples", "0", "--out", folder / "c.json")
    assert ran.exit_code == 0
    return folder / "c.json"


def rows_of(**answers: tuple[Any, Any]) -> Iterator[dict[str, Any]]:
    """item -> what each judge said: a score, "na" or "unscored"."""
    for item, said in answers.items():
        for judge, one in zip(JUDGES, said, strict=True):
            told = {"score": None, "status": one} if isinstance(one, str) else {"score": one, "status": "scored"}
            yield {"item_id": item, "rater": judge, "rater_kind": "judge", "metric": METRIC, "scale_min": 0,
                   "scale_max": 5, **told}  # fmt: skip


def given(path: Path, **answers: tuple[Any, Any]) -> Path:
    write_ratings(ratings_from_rows(list(rows_of(**answers))), path)
    return path


MIXED = {
    "lost": ("unscored", "unscored"),
    "both": (4, 3),
    "none": ("na", "na"),
    "half": ("unscored", 2),
    "split": ("na", "unscored"),
}
STATUS = {"lost": "unscored", "both": "scored", "none": "na", "half": "scored", "split": "na"}


def test_items_left_na_or_unscored_by_the_judges_stand_in_the_corrected_table(correction: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    ran = run("apply", given(tmp_path / "r.csv", **MIXED), "--correction", correction, "--out", out)
    assert ran.exit_code == 0
    assert "5 rows" in ran.output
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(r["item_id"], r["status"]) for r in rows] == list(STATUS.items())
    for row in rows:
        numbers = [row[name] for name in ("score", "raw", "p_fail", "fails")]
        assert all(numbers) if row["status"] == "scored" else not any(numbers)
    assert {r["item_id"]: r["reason"] for r in rows if r["reason"]} == {
        "lost": "no judge gave a score",
        "none": "not applicable",
        "split": "not applicable",
    }
    assert read_ratings(out).counts() == {"scored": 2, "na": 2, "unscored": 1}


def test_items_left_na_or_unscored_by_the_judges_stand_in_the_targets(correction: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    run("apply", given(tmp_path / "r.csv", **MIXED), "--correction", correction, "--out", out, "--rubric", RUBRIC)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {r["item_id"]: r["scores"][METRIC]["status"] for r in rows} == STATUS


@pytest.mark.parametrize("more", [(), ("--rubric", RUBRIC)])
def test_a_table_of_which_nothing_is_corrected_ends_with_4_and_keeps_its_rows(
    correction: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    out = tmp_path / "t.jsonl"
    nothing = given(tmp_path / "r.csv", a=("na", "na"), b=("unscored", "unscored"))
    ran = run("apply", nothing, "--correction", correction, "--out", out, *more)
    assert ran.exit_code == EXIT_NOTHING_SCORED
    assert "Nothing was corrected" in ran.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(r["scores"][METRIC] if more else r)["status"] for r in rows] == ["na", "unscored"]


def test_plain_means_of_a_metric_with_too_few_anchors_are_no_correction(tmp_path: Path) -> None:
    expert, ratings, file, out = truth(60, 62), tmp_path / "r.csv", tmp_path / "c.json", tmp_path / "t.csv"
    write_ratings(table(judged(expert, [0.6, 0.2], 0.6, 62), expert, np.arange(3), metric=METRIC), ratings)
    assert run("fit", ratings, "--resamples", "0", "--out", file).exit_code == 0
    ran = run("apply", ratings, "--correction", file, "--out", out)
    assert ran.exit_code == EXIT_NOTHING_SCORED
    assert "3 anchors" in ran.output
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 60
    assert all(r["score"] == r["raw"] for r in rows)


def test_an_item_that_only_a_judge_outside_the_metrics_record_rated_is_unscored(
    correction: Path, tmp_path: Path
) -> None:
    data = json.loads(correction.read_text())
    data["judges"].append("judge2")
    file, out, ratings = tmp_path / "c.json", tmp_path / "t.jsonl", tmp_path / "r.csv"
    file.write_text(json.dumps(data))
    alone = [{**r, "rater": "judge2"} for r in rows_of(a=(4, "na")) if r["rater"] == "judge0"]
    write_ratings(ratings_from_rows(alone), ratings)
    assert run("apply", ratings, "--correction", file, "--out", out).exit_code == EXIT_NOTHING_SCORED
    assert json.loads(out.read_text())["status"] == "unscored"
