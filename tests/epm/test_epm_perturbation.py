"""Paired statistics: figures worked by hand, undefined ones, and a simulation on the released turns."""

from __future__ import annotations

import json
from math import comb, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from epm_runs import RUNS, needs_runs

from aipsy_judge.cli.epm import command
from aipsy_judge.epm.forms_file import read_forms
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.perturbation import differences, paired_statistics, turn_metrics
from aipsy_judge.epm.vectors import deficits

SPACE = load_pack().space


def test_the_four_metrics_of_a_turn() -> None:
    # P_0 = (-3, -4, 0), levels C +1, A +2 and -1: v = (1, 3 - 2, 0)
    found = turn_metrics(SPACE, np.array([[-3.0, -4.0, 0.0]]), np.array([[1, 0, 2, -1, 0, 0]]))
    assert {k: v[0] for k, v in found.items()} == pytest.approx(
        {
            "dE": (3 + 4) / 5,
            "alignment": 7 / 5 / sqrt(2),
            "rubric_only": (1 / 2 + (2 - 1) / 2 + 0) / 3,
            "magnitude": sqrt(2),
        }
    )


def test_rubric_only_runs_from_minus_one_to_one() -> None:
    levels = np.array([[2, 0] * 3, [0, -2] * 3, [2, -2] * 3])
    assert turn_metrics(SPACE, -np.ones((3, 3)), levels)["rubric_only"].tolist() == [1, -1, 0]


def test_without_a_deficit_energy_and_alignment_are_undefined_and_left_out() -> None:
    start = np.array([[0.0, 0, 0], [-1, -1, -1], [-1, -2, -3]])
    before = turn_metrics(SPACE, start, np.array([[1, 0] * 3] * 3))
    after = turn_metrics(SPACE, start, np.array([[0, -1] * 3] * 3))
    found = {s.metric: s for s in paired_statistics(before, after, "aab", resamples=100)}
    assert [found[m].undefined for m in ("dE", "alignment", "rubric_only", "magnitude")] == [1, 1, 0, 0]
    assert found["dE"].pairs.n == 2
    assert found["rubric_only"].pairs.n == 3


def test_statistics_worked_by_hand() -> None:
    # Four decreases, one tie, one increase. Sign test: P(X >= 4 | 5, 1/2) = (5 + 1) / 32. Ranks of |d|: 1, 2, 3, 4, 5
    # with the increase at rank 2, so W+ = 2: one of the 3 subsets of ranks (none, {1}, {2}) with a sum of at most 2.
    found = differences(np.array([-1.0, 2.0, -3.0, -4.0, -5.0, -1e-12]), resamples=200)
    assert (found.n, found.decreased, found.ties, found.increased) == (6, 4, 1, 1)
    assert found.share_decreased == pytest.approx(4 / 6)
    assert (found.mean, found.median) == (pytest.approx(-11 / 6), pytest.approx(-2.0))
    assert found.sign_p == pytest.approx((comb(5, 4) + 1) / 2**5)
    assert found.wilcoxon_p == pytest.approx(3 / 2**5)


def test_all_ties_have_no_p_value() -> None:
    found = differences(np.zeros(5), resamples=100)
    assert (found.sign_p, found.wilcoxon_p, found.ties, found.mean) == (None, None, 5, 0)


def test_no_pair_has_no_figure() -> None:
    found = differences(np.array([]))
    assert (found.n, found.mean, found.median, found.share_decreased, found.interval) == (0, None, None, None, None)


def test_one_pair_has_no_interval() -> None:
    assert differences(np.array([-1.0])).interval is None


def test_a_case_with_many_pairs_counts_once_among_cases() -> None:
    original = {"dE": np.zeros(101)}
    perturbed = {"dE": np.array([1.0] * 100 + [-3.0])}
    (found,) = paired_statistics(original, perturbed, ["a"] * 100 + ["b"], resamples=100)
    assert found.pairs.mean == pytest.approx(97 / 101)
    assert (found.cases.n, found.cases.mean) == (2, -1)


@needs_runs
def test_turning_the_direction_alone_lowers_most_gains_and_leaves_no_ties() -> None:
    """The persona's first need set to level 1, every step as it was: about seven in ten gains fall, by little."""
    needs = [SPACE.indicator_ids.index(f"{a}.3") for a in SPACE.axis_ids]
    before, after, levels, cases = [], [], [], []
    for forms in read_forms(RUNS, SPACE):
        start = np.array(forms.start_levels, dtype=int)
        turned = start.copy()
        turned[max(needs, key=lambda i: start[i])] = 1
        for row in forms.turn_levels:
            before.append(start), after.append(turned), levels.append(row), cases.append(forms.case)
    original, perturbed = (
        turn_metrics(SPACE, deficits(SPACE, np.array(s)), np.array(levels, dtype=int)) for s in (before, after)
    )
    gained = original["dE"] > 0
    (dE,) = paired_statistics(
        {"dE": original["dE"][gained]},
        {"dE": perturbed["dE"][gained]},
        [c for c, g in zip(cases, gained, strict=True) if g],
        resamples=100,
    )
    assert dE.pairs.share_decreased == pytest.approx(0.70, abs=0.015)
    assert dE.pairs.ties == 0
    assert dE.pairs.median == pytest.approx(-0.02, abs=0.005)


START, ONE_AXIS = {"P_0": [-10, -20, -5]}, {"P_0": [-3, 0, 0]}
GOOD, FAIR, BAD, DEEP = [1, 0, 2, 0, 1, 0], [1, 0, 1, 0, 1, 0], [0, -1, 0, -1, 0, -1], [2, 0, 0, 0, 0, 0]
PAIRS: list[dict[str, Any]] = [
    {"case": "a", "original": START | {"levels": GOOD}, "perturbed": {"levels": BAD}},
    {"case": "a", "original": START | {"levels": FAIR}, "perturbed": {"levels": FAIR}},
    {"case": "b", "original": ONE_AXIS | {"levels": [DEEP]}, "perturbed": {"P_0": [0, -3, 0], "levels": DEEP}},
    {"case": "b", "original": ONE_AXIS | {"levels": DEEP}, "perturbed": {"levels": [None, 0, 0, 0, 0, 0]}},
]


def perturb(path: Path, pairs: list[dict[str, Any]], *options: str) -> Any:
    path.write_text("".join(json.dumps(p) + "\n" for p in pairs), encoding="utf-8")
    return CliRunner().invoke(command, ["perturb", str(path), "--resamples", "100", *options])


def test_the_command_reports_pairs_and_cases(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    shown = perturb(tmp_path / "pairs.jsonl", PAIRS, "--json", str(out))
    assert shown.exit_code == 0, shown.output
    assert "Left out: 1 pair with unreadable levels" in shown.output
    data = json.loads(out.read_text("utf-8"))
    assert data["unread"] == 1
    energy = data["statistics"]["dE"]["pairs"]
    # (1, 3, 1) and (-2, -2, -2) along (10, 20, 5); no change; (3, 0, 0) along C, then along A
    assert energy["mean"] == pytest.approx(((-70 - 75) / sqrt(525) + 0 - 3) / 3)
    assert (energy["n"], energy["decreased"], energy["ties"]) == (3, 2, 1)
    assert data["statistics"]["rubric_only"]["pairs"]["ties"] == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"perturbed": {"levels": [0, 0, 3, 0, 0, 0]}}, "pairs.jsonl:1, perturbed, turn 1: level 3 of A.prog"),
        ({"original": {"levels": [0] * 6}}, "pairs.jsonl:1, original: neither iedr nor P_0"),
        (
            {"perturbed": {"levels": [[0] * 6, [0] * 6]}},
            "pairs.jsonl:1, perturbed: 2 ratings, a half of a pair has one",
        ),
        ({"extra": 1}, "pairs.jsonl:1: not a pair"),
    ],
)
def test_a_pair_that_cannot_be_used_names_line_and_half(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    shown = perturb(tmp_path / "pairs.jsonl", [PAIRS[0] | change, PAIRS[1]])
    assert words in str(shown.exception)
