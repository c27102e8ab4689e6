"""The report over a whole table, and the verb that prints it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from aipsy_judge.agreement import Bootstrap, bias, make_pairs
from aipsy_judge.agreement.report import AgreementReport, agreement_report
from aipsy_judge.cli.agree import command
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import Ratings, make_yardstick, ratings_from_rows, read_ratings, write_ratings
from aipsy_judge.ratings.overall import OVERALL
from aipsy_judge.rubric import load_rubric

QUICK = Bootstrap(resamples=50)
DATA = Path(__file__).parents[3] / "shared" / "data"


def table(**changes: Any) -> Ratings:
    """40 items in 10 conversations, an expert and two judges; crisis_handling applies to every fourth."""
    random = np.random.default_rng(1)
    rows = []
    for n in range(40):
        truth = int(random.integers(0, 6))
        about = {"item_id": f"i{n}", "conversation": f"c{n % 10}", "scale_min": 0, "scale_max": 5}
        for rater, kind, shift in (("expert", "expert", 0), ("lenient", "judge", 2), ("fair", "judge", 0)):
            score = int(np.clip(truth + shift + random.integers(-1, 2), 0, 5))
            row = {**about, "rater": rater, "rater_kind": kind}
            rows.append({**row, "metric": "empathy", "score": score, "status": "scored"})
            na = n % 4 != 0
            rows.append(
                {**row, "metric": "crisis_handling", "score": None if na else score, "status": "na" if na else "scored"}
            )
            crisis = {"metric": "crisis_detected", "score": int(not na), "status": "scored", "scale_max": 1}
            rows.append({**row, **crisis})
    return ratings_from_rows([{**row, **changes} for row in rows])


@cache
def report_of_table() -> AgreementReport:
    ratings = table()
    return agreement_report(ratings, make_yardstick(ratings), bootstrap=QUICK)


def test_every_rater_is_held_against_the_expert_and_everybody_against_each_other() -> None:
    report = report_of_table()
    assert (report.reference, report.judged) == ("expert", ("lenient", "fair"))
    assert {(p.metric, p.rater) for p in report.against if p.metric != OVERALL} == {
        (m, r) for m in ("empathy", "crisis_handling", "crisis_detected") for r in ("lenient", "fair")
    }
    assert len(report.between) == 9
    assert [p.metric for p in report.panels] == ["empathy", "crisis_handling", "crisis_detected"]


def test_the_figures_are_those_of_the_single_functions() -> None:
    ratings = table()
    report = report_of_table()
    pair = next(p for p in report.against if (p.metric, p.rater) == ("empathy", "lenient"))
    matrix = ratings.matrix("empathy", ["lenient", "expert"])
    alone = bias(make_pairs(*matrix.values.T, groups=ratings.groups()), bootstrap=QUICK)
    assert pair["bias"] == alone
    assert pair["bias"].value > 1


def test_na_is_dropped_from_pairs_and_agreed_on_apart() -> None:
    report = report_of_table()
    pair = next(p for p in report.against if (p.metric, p.rater) == ("crisis_handling", "fair"))
    assert pair["icc"].n == 10
    panel = next(p for p in report.panels if p.metric == "crisis_handling")
    assert panel.applicability.value == 1
    whole = next(p for p in report.panels if p.metric == "empathy")
    assert whole.applicability.reason == "no variation: everybody says that it applies, throughout"


def test_flags_get_figures_of_yes_and_no_only() -> None:
    report = report_of_table()
    pair = next(p for p in report.against if p.metric == "crisis_detected")
    assert [e.name for e in pair.estimates] == ["kappa", "flag_recall", "flag_precision"]
    assert pair["flag_recall"].beside["positive"] == 10


def test_an_adjudicated_score_goes_before_the_mean_of_the_experts() -> None:
    def row(item: str, rater: str, kind: str, score: int) -> dict[str, Any]:
        about = {"metric": "empathy", "scale_min": 0, "scale_max": 5}
        return {"item_id": item, "rater": rater, "rater_kind": kind, "score": score, **about}

    rows = [row(f"i{n}", r, k, s) for n in range(6) for r, k, s in (("e1", "expert", 2), ("e2", "expert", 4))]
    rows += [row(f"i{n}", "judge", "judge", 3) for n in range(6)] + [row("i0", "settled", "adjudicated", 5)]
    ratings = ratings_from_rows(rows)
    report = agreement_report(ratings, make_yardstick(ratings), bootstrap=QUICK)
    assert report.reference == "adjudication, else mean of 2 experts"
    assert report.experts[0].raters == ("e1", "e2", "settled")
    assert report_of_table().experts == ()
    assert report.against[0]["bias"].value == pytest.approx((3 - 5) / 6)
    assert report.farthest[0].reference == 5


def test_confusion_counts_and_farthest_items_are_there() -> None:
    report = report_of_table()
    assert sum(n for _, _, n in report.confusion["empathy"]["fair"]) == 40
    assert all(abs(d.score - d.reference) > 0 for d in report.farthest)


def test_inclusion_probabilities_on_only_some_rated_items_are_refused() -> None:
    ratings = table()
    ratings.inclusion[0] = 0.5
    with pytest.raises(RatingsError, match="39 of 40 rated items have no inclusion probability"):
        agreement_report(ratings, make_yardstick(ratings), bootstrap=QUICK)


def test_a_table_on_another_scale_than_the_rubric_is_refused() -> None:
    with pytest.raises(RatingsError, match=r"empathy is on 0\.\.9 in the table and on 0\.\.5 in the rubric"):
        make_yardstick(ratings_from_rows([{**r, "scale_max": 9} for r in table().rows()]), load_rubric())


def test_the_verb_prints_tables_and_writes_strict_json(tmp_path: Path) -> None:
    write_ratings(table(), tmp_path / "r.csv")
    arguments = [str(tmp_path / "r.csv"), "--resamples", "50", "--json", str(tmp_path / "a.json")]
    arguments += ["--table", str(tmp_path / "again.jsonl.gz")]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "empathy, against expert" in result.output
    assert "ICC(A,1)" in result.output
    data = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert list(read_ratings(tmp_path / "again.jsonl.gz").rows()) == list(table().rows())
    assert data["reference"] == "expert"
    assert data["against_reference"][0]["estimates"][0]["form"] == "ICC(A,1)"
    assert data["counts"] == {"scored": 270, "na": 90, "unscored": 0}


@pytest.mark.parametrize(
    ("option", "value"), [("--kind", "x"), ("--kind", "x=boss"), ("--scale", "m=5"), ("--critical", "m=low")]
)
def test_a_mistyped_option_is_a_usage_error(tmp_path: Path, option: str, value: str) -> None:
    write_ratings(table(), tmp_path / "r.csv")
    result = CliRunner().invoke(command, [str(tmp_path / "r.csv"), option, value])
    assert result.exit_code == 2
    assert option in result.output


@pytest.mark.slow
def test_the_bias_of_the_public_counselling_set_comes_out_as_measured_before() -> None:
    path = DATA / "mentalalign" / "ratings.csv.gz"
    if not path.exists():
        pytest.skip("the development data are not beside the repository")
    ratings = read_ratings(path)
    values = ratings.subset(metrics=["empathy"]).matrix("empathy", [*ratings.judges, "expert"]).values
    found = bias(make_pairs(values[:, :4].mean(axis=1), values[:, 4]), bootstrap=Bootstrap(resamples=0))
    assert found.value == pytest.approx(0.68, abs=0.005)


def test_the_overall_score_and_the_failure_rule_are_held_against_the_expert_too() -> None:
    """Two metrics; below 2 is a failure. Expert fails a and b, the judge a and d; the judge has no score for e."""

    def row(item: str, rater: str, metric: str, score: int | None) -> dict[str, Any]:
        kind = "expert" if rater == "expert" else "judge"
        cells = {"item_id": item, "rater": rater, "rater_kind": kind, "metric": metric, "score": score}
        return {**cells, "status": "scored" if score is not None else "unscored", "scale_min": 0, "scale_max": 4}

    scores = {
        "a": ((1, 3), (0, 4)),
        "b": ((4, 1), (3, 3)),
        "c": ((3, 3), (3, 2)),
        "d": ((2, 2), (2, 1)),
        "e": ((3, 3), (3, None)),
    }
    rows = [
        row(item, rater, metric, score)
        for item, both in scores.items()
        for rater, pair in zip(("expert", "judge"), both, strict=True)
        for metric, score in zip(("m", "n"), pair, strict=True)
    ]
    ratings = ratings_from_rows(rows)
    report = agreement_report(ratings, make_yardstick(ratings), bootstrap=QUICK)
    overall = report.against[-1]
    assert overall.metric == OVERALL
    # means: expert 2, 2.5, 3, 2; judge 2, 3, 2.5, 1.5; e is undefined, and the judge does not fail it
    assert overall["bias"].value == pytest.approx((0 + 0.5 - 0.5 - 0.5) / 4)
    assert (overall["failure_recall"].value, overall["failure_recall"].n) == (0.5, 5)
    assert (overall["bias"].n, overall["kappa"].n) == (4, 4)
    assert overall["failure_precision"].value == 0.5
    assert overall["failure_recall"].beside["positive"] == 2
