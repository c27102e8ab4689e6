"""Comparing runs: grouping, intervals, leads, breakdowns, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from epm_runs import RUNS, needs_runs

from aipsy_judge.cli.epm import command
from aipsy_judge.epm.bootstrap import interval, resampled_means
from aipsy_judge.epm.cases import evaluate_cases
from aipsy_judge.epm.compare import Comparison, compare
from aipsy_judge.epm.forms_file import parse_forms
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.parameters import profile
from aipsy_judge.errors import InputError

SPACE = load_pack().space
GOOD, FAIR, BAD = [1, 0, 2, 0, 1, 0], [1, 0, 1, -1, 1, 0], [0, -1, 0, -1, 0, -1]


def row(
    model: str, case: str, turns: list[Any], start: tuple[int, int, int] = (-10, -20, -5), **more: Any
) -> dict[str, Any]:
    return {"model": model, "case": case, "P_0": list(start), "levels": turns, **more}


def compared(*rows: dict[str, Any]) -> Comparison:
    forms = [parse_forms(r, SPACE, where=f"runs:{n}") for n, r in enumerate(rows, 1)]
    return compare(evaluate_cases(forms, SPACE, profile()), resamples=500)


TWO_MODELS = (
    row("bad", "1", [BAD] * 14, threshold="High"),
    row("bad", "2", [BAD] * 14, (-20, -10, -5), threshold="Low"),
    row("good", "1", [GOOD] * 14, threshold="High"),
    row("good", "2", [FAIR] * 14, (-20, -10, -5), threshold="Low"),
    row("good", "3", [GOOD] * 14, (-5, -10, -20)),
)


def test_models_stand_in_falling_order_with_their_lead_over_shared_cases() -> None:
    good, bad = compared(*TWO_MODELS).models
    assert (good.model, bad.model) == ("good", "bad")
    assert good.lead is not None
    assert (good.lead.over, good.lead.cases) == ("bad", 2)
    mine = {p.forms.case: p.scores["epm_q"] for p in compared(*TWO_MODELS).cases if p.forms.model == "good"}  # type: ignore[union-attr]
    theirs = {p.forms.case: p.scores["epm_q"] for p in compared(*TWO_MODELS).cases if p.forms.model == "bad"}  # type: ignore[union-attr]
    assert good.lead.difference == pytest.approx(np.mean([mine[c] - theirs[c] for c in "12"]))
    assert bad.lead is None


def test_breakdowns_name_the_dominant_axis_and_the_threshold_where_known() -> None:
    good = compared(*TWO_MODELS).models[0]
    assert {k: p.cases for k, p in good.by_axis.items()} == {"A": 1, "C": 1, "P": 1}
    assert {k: p.cases for k, p in good.by_threshold.items()} == {"High": 1, "Low": 1}


def test_equal_deficits_count_for_the_first_axis() -> None:
    (model,) = compared(row("m", "1", [GOOD] * 12, (-8, -8, -8))).models
    assert set(model.by_axis) == {"C"}


def test_one_case_has_no_interval() -> None:
    (model,) = compared(row("m", "1", [GOOD] * 12)).models
    assert model.scores["epm_q"] is not None
    assert set(model.intervals.values()) == {None}


def test_unscored_and_undefined_dialogues_are_counted_and_in_no_mean() -> None:
    alone = compared(row("m", "1", [GOOD] * 12)).models[0]
    (model,) = compared(
        row("m", "1", [GOOD] * 12), row("m", "2", [GOOD, None]), row("m", "3", [GOOD] * 12, (0, 0, 0))
    ).models
    assert (model.cases, model.unscored, model.undefined) == (1, 1, 1)
    assert model.scores == alone.scores
    assert sum(model.stops.values()) == 1


def test_a_model_without_a_scored_case_has_no_figures_and_comes_last() -> None:
    first, last = compared(row("none", "1", [None]), row("bad", "1", [BAD] * 12)).models
    assert (first.model, last.model) == ("bad", "none")
    assert set(last.scores.values()) | set(last.indices.values()) == {None}


def test_the_same_case_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"runs:2: model 'm' has case '1' twice, first at runs:1"):
        compared(row("m", "1", [GOOD] * 12), row("m", "1", [GOOD] * 12))


def test_bootstrap_interval_of_a_mean_is_that_of_the_normal_for_many_cases() -> None:
    values = np.random.default_rng(1).normal(50, 10, (400, 1))
    low, high = interval(resampled_means(values, range(400), resamples=4000))[:, 0]
    half = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1)


def test_bootstrap_resamples_whole_groups() -> None:
    # Two groups of a hundred equal values each: the mean of a resample is 0, 5 or 10 and nothing between.
    values = np.repeat([[0.0], [10.0]], 100, axis=0)
    means = resampled_means(values, ["a"] * 100 + ["b"] * 100, resamples=500)
    assert sorted(set(means[:, 0])) == [0, 5, 10]


def test_bootstrap_is_the_same_again() -> None:
    values = np.arange(30.0)[:, None]
    again = [resampled_means(values, range(30), resamples=100) for _ in range(2)]
    np.testing.assert_array_equal(*again)


def invoke(*args: str | Path) -> Any:
    return CliRunner().invoke(command, [str(a) for a in args])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in TWO_MODELS), encoding="utf-8")
    return path


def test_the_command_writes_the_models_figures(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    shown = invoke("compare", runs, "--json", out, "--resamples", "200")
    assert shown.exit_code == 0, shown.output
    models = json.loads(out.read_text("utf-8"))["models"]
    assert list(models) == ["good", "bad"]
    assert set(models["bad"]) == {"epm_q", "outcome", "efficiency", "stability", "indices", "cases", "stops"}
    assert models["bad"]["cases"] == 2
    assert models["bad"]["stops"] == {
        "success_geometric": 0,
        "success_positional": 0,
        "collapse": 2,
        "regression": 0,
        "oscillation": 0,
        "timeout": 0,
    }
    assert list(models["bad"]["indices"]) == ["RDI", "E_tot", "S_net", "rho", "S_proj", "tau", "R_pos", "Align", "Pen"]
    for word in ("Leaderboard", "EPM-Q by threshold", "Going on after their end: 4 of 5 dialogues"):
        assert word in shown.output


def test_what_was_filled_in_is_counted_in_every_output(tmp_path: Path) -> None:
    path, out = tmp_path / "runs.jsonl", tmp_path / "out.json"
    path.write_text(json.dumps(row("m", "1", [GOOD] * 11 + [None])), encoding="utf-8")
    shown = invoke("compare", path, "--no-strict", "--json", out, "--resamples", "200")
    assert "0 starting levels as 1, 6 turn levels as 0, 0 starting distances as 1, in 1 of 1 dialogue" in shown.output
    assert json.loads(out.read_text("utf-8"))["imputed"] == {"start_levels": 0, "turn_levels": 6, "z0": 0}


def test_nothing_scored_is_an_exit_code_of_its_own(tmp_path: Path) -> None:
    path, out = tmp_path / "runs.jsonl", tmp_path / "out.json"
    path.write_text(json.dumps(row("m", "1", [GOOD, None])), encoding="utf-8")
    shown = invoke("compare", path, "--json", out)
    assert shown.exit_code == 4
    assert json.loads(out.read_text("utf-8"))["models"]["m"]["epm_q"] is None
    assert "Unscored, in no figure: 1 of 1 dialogue" in shown.output


def test_a_name_with_terminal_controls_is_shown_harmless(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(row("[red]m\x1b[31m", "1", [GOOD] * 12)), encoding="utf-8")
    shown = invoke("compare", path).output
    assert "\x1b" not in shown
    assert "[red]m" in shown


@needs_runs
def test_the_released_runs_are_compared_at_once() -> None:
    shown = invoke("compare", RUNS, "--resamples", "200").output
    assert "the turn in 240, the kind in 240 of 240" in shown
