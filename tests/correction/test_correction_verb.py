"""`aipsy-judge correct` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from correction_panels import judged, table, truth

from aipsy_judge.cli.correct import command
from aipsy_judge.errors import InputError, LaneError
from aipsy_judge.ratings import read_ratings, write_ratings


@pytest.fixture(scope="module")
def ratings_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    expert = truth(120, 41)
    path = tmp_path_factory.mktemp("verb") / "ratings.csv"
    write_ratings(table(judged(expert, [0.9, 0.4], 0.7, 41), expert, np.arange(50)), path)
    return path


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(w) for w in words], catch_exceptions=False)


def test_fit_report_and_apply_work_together(ratings_file: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "c.json", tmp_path / "target.csv"
    fitted = run("fit", ratings_file, "--expert", "expert", "--out", file, "--resamples", "50")
    assert fitted.exit_code == 0
    assert "RMSE out of fold" in fitted.output
    assert "moved down" in fitted.output
    assert run("report", file).output in fitted.output
    applied = run("apply", ratings_file, "--correction", file, "--out", out)
    assert "120 rows" in applied.output
    target = read_ratings(out)
    assert target.raters == ("target",)
    raw = read_ratings(ratings_file).matrix("empathy", ["judge0", "judge1"]).values.mean()
    assert target.score.mean() < raw - 0.3


def test_whole_targets_are_an_item_a_line(ratings_file: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "c.json", tmp_path / "target.jsonl"
    run("fit", ratings_file, "--out", file, "--resamples", "0", "--rubric", "aipsy-judge-v1")
    said = run("apply", ratings_file, "--correction", file, "--out", out, "--rubric", "aipsy-judge-v1").output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 120
    assert rows[0]["scores"]["empathy"]["status"] == "scored"
    assert "the targets lack them" in said


def test_the_correction_is_bound_to_the_rubric_it_was_fitted_with(ratings_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    run("fit", ratings_file, "--out", file, "--resamples", "0", "--rubric", "aipsy-judge-v1")
    data = json.loads(file.read_text())
    assert data["rubric"]["name"] == "aipsy-judge-v1"
    data["rubric"]["hash"] = "0" * 64
    file.write_text(json.dumps(data))
    with pytest.raises(LaneError):
        run("apply", ratings_file, "--correction", file, "--out", tmp_path / "t.jsonl", "--rubric", "aipsy-judge-v1")


def test_a_place_that_cannot_be_written_is_refused_before_fitting(ratings_file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder does not exist"):
        run("fit", ratings_file, "--out", tmp_path / "no" / "c.json")


def test_absent_judges_are_named(ratings_file: Path, tmp_path: Path) -> None:
    file, part = tmp_path / "c.json", tmp_path / "part.csv"
    run("fit", ratings_file, "--out", file, "--resamples", "0")
    write_ratings(read_ratings(ratings_file).subset(raters=["judge0"]), part)
    said = run("apply", part, "--correction", file, "--out", tmp_path / "t.csv").output
    assert "no ratings by judge1" in said
    assert "120 of 120 items" in said
