"""A metric that no expert rated tells nothing of what an expert would fail."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from correction_panels import judged, table, truth

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.cli.correct import command
from aipsy_judge.correction import Correction, apply_to_ratings, apply_to_verdict, fit_correction, make_targets
from aipsy_judge.correction.answers import answers_of_ratings
from aipsy_judge.correction.applied import Applied
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import Ratings, make_yardstick, merge_ratings, ratings_from_rows, write_ratings
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import NotApplicable, Scored, Verdict

RUBRIC = load_rubric()
ITEMS = 60
BARE = "advice_safety"


def rated(anchors: int, *, bare: int = 0, mean: float = 3.0, low: float = 0.0) -> Ratings:
    """One judge on two metrics; the expert rated `anchors` items on empathy and `bare` on the other."""
    tables = []
    for metric, count, seed in [("empathy", anchors, 51), (BARE, bare, 52)]:
        expert = np.maximum(truth(ITEMS, seed, mean=mean), low)
        tables.append(table(judged(expert, [0.5], 0.6, seed), expert, np.arange(count), metric=metric))
    return merge_ratings(tables)


def correction_of(ratings: Ratings) -> Correction:
    return fit_correction(ratings, make_yardstick(ratings, RUBRIC), often=Bootstrap(resamples=0))


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(command, [str(w) for w in words])


@pytest.mark.parametrize("bare", [0, 3])
def test_p_fail_of_its_prior_alone_is_undefined_wherever_a_correction_is_applied(bare: int) -> None:
    ratings = rated(30, bare=bare)
    correction = correction_of(ratings)
    found = apply_to_ratings(correction, ratings)
    assert found["empathy"][1].p_fail is not None
    assert found[BARE][1].p_fail is None
    assert found[BARE][1].fails is None
    target = next(make_targets(correction, answers_of_ratings(ratings, ["judge0"], RUBRIC), RUBRIC).rows())["scores"]
    assert (target[BARE]["p_fail"], target[BARE]["fails"]) == (None, None)
    assert "prior alone" in target[BARE]["reason"]
    assert target["empathy"]["p_fail"] is not None
    assert target["empathy"]["reason"] is None
    told = {"judge": "judge0", "rubric": RUBRIC.hash}
    scores = {m: NotApplicable() for m in RUBRIC.metric_names} | {BARE: Scored(1)}
    one = apply_to_verdict(correction, Verdict("c", 1, "h", scores, provenance=told))[BARE]
    assert (one.raw, one.p_fail, one.fails) == (1, None, None)
    assert one.reason is not None
    assert "prior alone" in one.reason
    assert Applied("c.json", correction).to_dict()["metrics"][BARE]["fails_from"] is None


def test_rows_of_a_metric_without_anchors_have_no_p_fail_and_say_why(tmp_path: Path) -> None:
    given, file, out = tmp_path / "r.csv", tmp_path / "c.json", tmp_path / "t.csv"
    write_ratings(rated(30), given)
    fitted = run("fit", given, "--rubric", RUBRIC.name, "--resamples", "0", "--out", file)
    assert "p_fail is undefined: no anchor" in " ".join(fitted.output.split())
    said = run("apply", given, "--correction", file, "--out", out).output
    assert f"{BARE}: 0 anchors" in said
    rows = list(csv.DictReader(out.read_text().splitlines()))
    bare = [r for r in rows if r["metric"] == BARE]
    assert len(bare) == ITEMS
    assert {(r["p_fail"], r["fails"], r["reason"]) for r in bare} == {("", "", "no anchor: p_fail would be its prior alone")}  # fmt: skip # noqa: E501
    assert all(r["p_fail"] and r["fails"] and not r["reason"] for r in rows if r["metric"] == "empathy")


@pytest.mark.parametrize("expert", ["all N/A", "on other items"])
def test_a_fit_without_any_anchor_is_refused_and_writes_nothing(expert: str, tmp_path: Path) -> None:
    rows = [dict(r) for r in rated(0).rows()]
    about = {"rater": "expert", "rater_kind": "expert", "metric": "empathy", "scale_min": 0, "scale_max": 5}
    if expert == "all N/A":
        rows += [{**about, "item_id": f"i{i}", "score": None, "status": "na"} for i in range(20)]
    else:
        rows += [{**about, "item_id": f"elsewhere{i}", "score": 2.0} for i in range(20)]
    given, file = tmp_path / "r.csv", tmp_path / "c.json"
    write_ratings(ratings_from_rows(rows), given)
    ran = run("fit", given, "--rubric", RUBRIC.name, "--resamples", "0", "--out", file)
    assert isinstance(ran.exception, RatingsError)
    assert ran.exception.exit_code == 2
    assert "no anchor" in str(ran.exception)
    assert not file.exists()


def test_anchors_without_a_failure_keep_p_fail_with_its_warning(tmp_path: Path) -> None:
    given, file, out = tmp_path / "r.csv", tmp_path / "c.json", tmp_path / "t.jsonl"
    write_ratings(rated(30, low=3.0), given)
    run("fit", given, "--metric", "empathy", "--rubric", RUBRIC.name, "--resamples", "0", "--out", file)
    for more in [(), ("--rubric", RUBRIC.name)]:
        said = run("apply", given, "--correction", file, "--out", out, *more).output
        assert "empathy: no anchor is a failure: p_fail rests on its prior" in said
        first = json.loads(out.read_text().splitlines()[0])
        found = first["scores"]["empathy"] if more else first
        assert 0 < found["p_fail"] < 1
        assert found["fails"] in (True, False)
