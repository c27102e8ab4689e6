"""What a judge did not score is nothing that it said: rows of judges with gaps, and which judge may be the best."""

from __future__ import annotations

import numpy as np
import pytest
from human_setup import small_table

from aipsy_judge.correction.design import thresholds
from aipsy_judge.correction.metric_fit import learn_basis
from bench.human import tables
from bench.human_cells import run_cells
from bench.human_draws import draws
from bench.human_figures import figures
from bench.human_methods import Outcome, all_methods
from bench.human_report import cell_lines, to_dict


def test_a_judge_stands_under_its_own_name_with_its_own_scores_alone() -> None:
    data = tables(small_table(400, 1, "useless"), (), (), severity=False)[0]
    draw = next(draws(data.groups, 40, 1, "empathy", 14))
    found = all_methods(data, learn_basis(data.panel, thresholds(1, 5)), draw, by_family=False)
    value = dict(zip(found.names, found.values, strict=True))
    place = data.judges.index("useless")
    assert value["judge: useless"] == pytest.approx(data.panel.judges[draw.test, place], nan_ok=True)
    # Inside a mean of judges nobody stands for it, inside the blend it is filled in.
    assert value["mean"] == pytest.approx(np.nanmean(data.panel.judges[draw.test], axis=1))
    assert not np.isnan(value["blend"]).any()
    (cell,) = run_cells([data], [40], count=5, seed=14, by_family=False, workers=1)
    own = cell.mean("judge: useless", "spearman")
    assert own is not None
    assert abs(own) < 0.4
    assert cell.scored["judge: useless"] == pytest.approx(36, abs=8)
    assert cell.scored["judge: a"] == cell.scored["blend"] == 360
    assert cell.regret("judge: useless", "rmse") is None
    row = next(line for line in cell_lines(cell) if "judge: useless" in line)
    assert row.split()[2] == f"{cell.scored['judge: useless']:.0f}"
    assert to_dict([cell])[0]["scored"]["judge: useless"] == cell.scored["judge: useless"]


def test_a_judge_that_chose_its_items_is_not_the_best() -> None:
    data = tables(small_table(200, 1, "lucky"), (), (), severity=False)[0]
    draw = next(draws(data.groups, 60, 1, "empathy", 14))
    found = all_methods(data, learn_basis(data.panel, thresholds(1, 5)), draw, by_family=False)
    value = dict(zip(found.names, found.values, strict=True))
    assert value["best judge on the anchors"] == pytest.approx(value["judge: b"])
    (cell,) = run_cells([data], [60], count=4, seed=14, by_family=False, workers=1)
    assert cell.mean("judge: lucky", "rmse") == 0
    assert cell.best_rival("rmse") != "judge: lucky"


def test_where_no_judge_scored_nearly_all_none_is_picked() -> None:
    ratings = small_table(100, 1)
    first = np.array([int(i.removeprefix("i")) < 50 for i in ratings.items])
    data = tables(ratings.without(["a"], first).without(["b"], ~first), (), (), severity=False)[0]
    (cell,) = run_cells([data], [30], count=3, seed=14, by_family=False, workers=1)
    assert cell.mean("best judge on the anchors", "rmse") is None
    assert cell.scored["best judge on the anchors"] == 0
    assert cell.best_rival("rmse") in ("mean", "constant", "published rule")


def test_figures_of_a_row_with_gaps_are_those_of_its_items() -> None:
    values = np.array([[0.0, 0.5, np.nan, 1.0], [0.0, 0.5, 0.0, 1.0], [np.nan] * 4])
    outcome = Outcome(("gaps", "whole", "none"), values, np.vstack([-values, np.zeros(4)]))
    expert, fails = np.array([0.25, 0.5, 1.0, 0.75]), np.array([True, False, False, False])
    found = figures(outcome, expert, fails, 4.0)
    assert found["gaps"] == pytest.approx([np.sqrt(2 / 3), 2 / 3, 1, 1, 1])
    # All four: misses -1, 0, -4, 1; the failure ties with the third item: 2.5 of 3 pairs, half a flag.
    assert found["whole"][:2] == pytest.approx([np.sqrt(18 / 4), 6 / 4])
    assert found["whole"][3:] == pytest.approx([2.5 / 3, 0.5])
    assert np.isnan(found["none"]).all()
