"""Panels with planted faults, and panels without any."""

from __future__ import annotations

import numpy as np
import pytest
from correction_panels import CUT, SPAN, error, fitted, judged, truth
from scipy.stats import rankdata

from aipsy_judge.correction.metric_fit import FEWEST_ANCHORS


def auc(risk: np.ndarray, fails: np.ndarray) -> float:
    bad = int(fails.sum())
    return float((rankdata(risk)[fails].sum() - bad * (bad + 1) / 2) / (bad * (len(risk) - bad)))


def test_leniency_that_the_mean_keeps_is_removed() -> None:
    # One judge lenient by 1.89, one by .4, one strict by .3: the mean is .66 too high.
    expert = truth(3000, 11, mean=2.3, sd=0.7)
    judges = judged(expert, [1.89, 0.4, -0.3], 0.6, 11)
    anchors, rest = np.arange(60), np.arange(60, 3000)
    fit, panel = fitted(judges, expert, anchors)
    values = SPAN * fit.values(panel)
    assert judges[rest].mean() - expert[rest].mean() == pytest.approx(0.66, abs=0.06)
    assert abs(values[rest].mean() - expert[rest].mean()) < 0.15
    assert error(values[rest] / SPAN, expert[rest]) < 0.75 * error(judges[rest].mean(axis=1) / SPAN, expert[rest])


def test_a_judge_of_noise_loses_its_weight_with_many_anchors() -> None:
    expert = truth(2000, 12)
    judges = judged(expert, [0, 0, 0], 0.6, 12)
    judges[:, 2] = np.random.default_rng(3).integers(0, 6, 2000)
    fit, _ = fitted(judges, expert, np.arange(300))
    weights = fit.ladder.combined[fit.basis.design.blocks["judges"]]
    assert weights[2] < 0.25 * min(weights[0], weights[1])


def test_nothing_is_moved_where_nothing_is_wrong() -> None:
    # Unbiased judges: over 30 anchor sets the correction must not shift the mean, nor lose much to doing nothing.
    shifts, losses = [], []
    for seed in range(30):
        expert = truth(600, 100 + seed, mean=2.6, sd=0.9)
        judges = judged(expert, [0, 0, 0], 0.7, 100 + seed)
        fit, panel = fitted(judges, expert, np.arange(30), seed=seed)
        values, rest = fit.values(panel), slice(30, None)
        shifts.append(SPAN * values[rest].mean() - judges[rest].mean())
        losses.append(error(values[rest], expert[rest]) / error(judges[rest].mean(axis=1) / SPAN, expert[rest]))
    assert abs(np.mean(shifts)) < 2 * np.std(shifts) / np.sqrt(30) + 0.02
    assert np.mean(losses) < 1.06


def test_a_panel_of_noise_is_shrunk_to_the_anchors_mean() -> None:
    expert = truth(1000, 13)
    judges = np.random.default_rng(4).integers(0, 6, (1000, 3)).astype(float)
    fit, panel = fitted(judges, expert, np.arange(150))
    rest = slice(150, None)
    assert error(fit.values(panel)[rest], expert[rest]) < 1.05 * expert[rest].std()


def test_a_judge_exact_on_five_anchors_by_luck_does_not_take_over() -> None:
    expert = truth(200, 14)
    judges = judged(expert, [0.5, 0.5, 0.5], 1.0, 14)
    judges[:5, 1] = expert[:5]
    fit, _ = fitted(judges, expert, np.arange(5))
    weights = fit.ladder.combined[fit.basis.design.blocks["judges"]]
    assert np.isfinite(fit.ladder.combined).all()
    assert weights[1] / weights.sum() < 0.6


def test_all_judges_exact_on_all_anchors_is_no_division_by_zero() -> None:
    expert = np.full(40, 4.0)
    fit, panel = fitted(np.full((40, 3), 4.0), expert, np.arange(10))
    assert SPAN * fit.values(panel) == pytest.approx(np.full(40, 4.0), abs=0.05)
    assert (fit.probabilities(panel) < 0.2).all()


@pytest.mark.parametrize("count", range(FEWEST_ANCHORS))
def test_too_few_anchors_leave_the_equal_mean(count: int) -> None:
    expert = truth(100, 15)
    judges = judged(expert, [1.0, 0.5], 0.5, 15)
    fit, panel = fitted(judges, expert, np.arange(count))
    assert not fit.enough
    assert fit.values(panel) == pytest.approx(judges.mean(axis=1) / SPAN)


def test_anchors_of_one_conversation_are_not_enough() -> None:
    expert = truth(100, 16)
    fit, _ = fitted(judged(expert, [1.0, 0.5], 0.5, 16), expert, np.arange(30), groups=np.arange(100) // 50)
    assert not fit.enough


def test_p_fail_is_calibrated_and_finds_failures_that_the_cut_mean_misses() -> None:
    expert = truth(6000, 17, mean=3.6, sd=1.0)
    judges = judged(expert, [0.9, 0.6, 0.8], 0.9, 17)
    anchors, rest = np.arange(300), np.arange(300, 6000)
    fit, panel = fitted(judges, expert, anchors)
    p, fails = fit.probabilities(panel)[rest], (expert / SPAN < CUT)[rest]
    assert p.mean() == pytest.approx(fails.mean(), rel=0.25)
    high = p > 0.3
    assert fails[high].mean() == pytest.approx(p[high].mean(), abs=0.12)
    found = fails[p >= 0.2].sum() / fails.sum()
    by_cut = fails[judges[rest].mean(axis=1) / SPAN < CUT].sum() / fails.sum()
    assert found > by_cut + 0.2


def test_p_fail_ranks_as_well_as_the_mean_with_ten_anchors_of_which_none_fails() -> None:
    expert = truth(3000, 18, mean=3.6, sd=1.0)
    judges = judged(expert, [0.3, 0.6, 0.0], 0.9, 18)
    anchors = np.flatnonzero(expert >= 3)[:10]
    fit, panel = fitted(judges, expert, anchors)
    fails = expert / SPAN < CUT
    assert auc(fit.probabilities(panel), fails) > auc(-judges.mean(axis=1), fails) - 0.01


def test_other_metrics_help_where_the_expert_has_a_halo() -> None:
    random = np.random.default_rng(19)
    items = 2000
    general = random.normal(0, 1, items)
    expert = np.clip(np.rint(3 + general), 0, 5)
    own = np.clip(np.rint(3 + 0.3 * general[:, None] + random.normal(0, 1, (items, 3))), 0, 5)
    other = np.clip(3 + general[:, None] + random.normal(0, 0.5, (items, 1)), 0, 5)
    anchors, rest = np.arange(60), slice(60, None)
    alone, panel = fitted(own, expert, anchors)
    beside, wide = fitted(own, expert, anchors, others=other)
    assert error(beside.values(wide)[rest], expert[rest]) < 0.85 * error(alone.values(panel)[rest], expert[rest])
