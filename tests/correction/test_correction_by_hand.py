"""Parts of the correction against values worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aipsy_judge.correction.blend import blend_weights
from aipsy_judge.correction.design import learn_design, thresholds
from aipsy_judge.correction.families import bias_of
from aipsy_judge.correction.fill import TOWARDS_INDEPENDENT, learn_fill
from aipsy_judge.correction.folds import fold_of
from aipsy_judge.correction.gaussian import NOISE, NOISE_PRIOR, Spread, posterior_mean, sums_without
from aipsy_judge.correction.logistic import fit_logistic
from aipsy_judge.correction.published import FLOOR, published_weights
from aipsy_judge.correction.severity import adjusted, severities
from aipsy_judge.correction.tail import failing_level, tail_aware


def test_published_weights_follow_their_formula() -> None:
    # Two anchors, two judges; judge 1 is exact: mse 0; judge 2 is off by .25: mse 1/16. Floor (.5/4)^2 = 1/64.
    # q = 64 and 1 / (5/64) = 12.8, normalised 5/6 and 1/6; w = (2 q + 10) / 22: 35/66 and 31/66.
    judges = np.array([[0.5, 0.75], [1.0, 0.75]])
    nothing = np.zeros(2, dtype=bool)
    found = published_weights(judges, np.array([0.5, 1.0]), nothing, 0.4)
    assert FLOOR == 1 / 64
    assert found == pytest.approx([35 / 66, 31 / 66])


def test_published_weights_count_recall_of_failures_at_least_a_tenth() -> None:
    # The same, and the first anchor is a failure (below .6): judge 1 sees it, judge 2 (.75) does not: times .1.
    judges = np.array([[0.5, 0.75], [1.0, 0.75]])
    found = published_weights(judges, np.array([0.5, 1.0]), np.array([True, False]), 0.6)
    assert found == pytest.approx([35 / (35 + 3.1), 3.1 / (35 + 3.1)])


def test_published_weights_are_equal_without_anchors() -> None:
    found = published_weights(np.empty((0, 4)), np.empty(0), np.empty(0, dtype=bool), 0.4)
    assert found.tolist() == [0.25] * 4


def test_shrinkage_of_an_offset_is_the_average_over_its_closed_form() -> None:
    # Four anchors, all .2 above the mean of the judges. Given noise s and spread t the posterior mean of the offset is
    # .2 n t^2 / (n t^2 + s^2), its evidence N(y; 0, s^2 I + t^2 11'): worked with the full covariance here.
    n, t, y = 4, 0.12, np.full(4, 0.2)
    log_evidence = []
    for s, prior in zip(NOISE, NOISE_PRIOR, strict=True):
        cov = s * s * np.eye(n) + t * t * np.ones((n, n))
        log_evidence.append(prior - 0.5 * np.linalg.slogdet(cov)[1] - 0.5 * y @ np.linalg.solve(cov, y))
    weight = np.exp(np.array(log_evidence) - max(log_evidence))
    expected = float((weight / weight.sum()) @ (0.2 * n * t * t / (n * t * t + NOISE**2)))
    found = posterior_mean(sums_without(np.ones((n, 1)), y, np.zeros((1, n))), [Spread(np.full((1, 1), t))])
    assert found[0, 0] == pytest.approx(expected)
    assert 0.1 < expected < 0.2


def test_sums_leave_out_what_they_are_told_to() -> None:
    x, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 1.0, 2.0])
    found = sums_without(x, y, np.array([[0, 1, 0], [0, 0, 0]], dtype=float))
    assert found.xx[:, 0, 0].tolist() == [10.0, 14.0]
    assert found.xy[:, 0].tolist() == [7.0, 9.0]
    assert found.yy.tolist() == [5.0, 6.0]
    assert found.n.tolist() == [2.0, 3.0]


def test_logistic_finds_the_mode_where_gradient_is_zero() -> None:
    # One coefficient, prior N(0, 1), 3 of 4 ones at x = 1: 3 - 4 p = b with p = 1 / (1 + e^-b).
    b = fit_logistic(np.ones((4, 1)), np.array([1.0, 1, 1, 0]), np.zeros(1), np.ones(1))[0]
    assert 3 - 4 / (1 + math.exp(-b)) == pytest.approx(b, abs=1e-6)


def test_logistic_without_anchors_is_its_prior() -> None:
    found = fit_logistic(np.empty((0, 2)), np.empty(0), np.array([0.5, -8.0]), np.array([1.5, 3.0]))
    assert found == pytest.approx([0.5, -8.0])


def test_logistic_stays_finite_where_the_classes_are_separated() -> None:
    x = np.column_stack([np.ones(40), np.linspace(-1, 1, 40)])
    found = fit_logistic(x, (x[:, 1] > 0).astype(float), np.zeros(2), np.full(2, 3.0))
    assert np.isfinite(found).all()
    assert found[1] > 5


def test_tail_aware_value_minimises_the_stated_loss() -> None:
    value, p, failing, price = 0.7, 0.3, 0.2, 4.0
    ok = (value - p * failing) / (1 - p)
    grid = np.linspace(0, 1, 100_001)
    loss = (1 - p) * (grid - ok) ** 2 + price * p * (grid - failing) ** 2
    found = tail_aware(np.array([value]), np.array([p]), failing, price)[0]
    assert found == pytest.approx(grid[loss.argmin()], abs=1e-5)


def test_tail_price_of_one_changes_nothing_and_less_is_refused() -> None:
    values = np.array([0.1, 0.5, 0.9])
    assert tail_aware(values, np.array([0.9, 0.5, 0.1]), 0.2, 1.0) == pytest.approx(values)
    with pytest.raises(ValueError, match="below 1"):
        tail_aware(values, values, 0.2, 0.5)


def test_failing_level_starts_half_way_to_the_cut() -> None:
    assert failing_level(np.array([0.9]), np.array([False]), 0.4) == pytest.approx(0.2)
    assert failing_level(np.array([0.3, 0.1, 0.9]), np.array([True, True, False]), 0.4) == pytest.approx(0.2)


def test_a_missing_judge_is_filled_in_by_regression() -> None:
    # Judge 2 = judge 1 + .1 exactly. Slope after shrinking the covariance towards independence: 1 - .02.
    one = np.linspace(0.1, 0.8, 50)
    fill = learn_fill(np.column_stack([one, one + 0.1]))
    found = fill(np.array([[0.6, np.nan]]))[0, 1]
    assert found == pytest.approx(0.55 + (1 - TOWARDS_INDEPENDENT) * 0.15, abs=1e-4)
    assert fill(np.array([[np.nan, np.nan]]))[0].tolist() == pytest.approx([0.45, 0.55])


def test_filling_leaves_what_is_there() -> None:
    table = np.array([[0.1, np.nan, 0.3], [0.2, 0.5, np.nan], [0.9, 0.8, 0.7], [0.4, 0.4, 0.6]])
    found = learn_fill(table)(table)
    known = ~np.isnan(table)
    assert (found[known] == table[known]).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 5, [0.1, 0.3, 0.5, 0.7, 0.9]), (1, 5, [0.125, 0.375, 0.625, 0.875]), (0, 1, [0.5]), (0, 100, 5)],
)
def test_steps_lie_between_whole_numbers_or_are_five(low: float, high: float, expected: list[float] | int) -> None:
    found = thresholds(low, high)
    if isinstance(expected, int):
        assert len(found) == expected
        assert np.diff(found) == pytest.approx(1 / expected)
    else:
        assert found == pytest.approx(expected)


def test_design_centres_on_all_items() -> None:
    judges, others = np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([[0.2], [0.4]])
    design = learn_design(judges, others, (0.5,))
    assert design.columns(judges, others) == pytest.approx(
        np.array([[1, -0.5, 0, -0.5, 0, -0.1], [1, 0.5, 0, 0.5, 0, 0.1]])
    )
    assert design.loadings == pytest.approx([1.0])
    assert design.centre == pytest.approx(0.5)


def test_loading_is_zero_where_something_does_not_vary() -> None:
    design = learn_design(np.full((3, 2), 0.5), np.array([[0.1], [0.2], [0.3]]), (0.5,))
    assert design.loadings.tolist() == [0.0]


def test_blend_prefers_the_rung_with_less_error_and_keeps_priors_without_difference() -> None:
    n = 50
    errors = np.column_stack([np.full(n, 0.3), np.full(n, 0.1), np.full(n, 0.3)])
    found = blend_weights(errors, np.array([1.0, 1.0, 3.0]), np.arange(n), np.ones(n), 14)
    # kappa n / 2 = 6.25; mse (50 e^2 + 2 * .04) / 52
    mse = (n * np.array([0.09, 0.01, 0.09]) + 0.08) / (n + 2)
    expected = np.array([1, 1, 3]) * mse**-6.25
    assert found == pytest.approx(expected / expected.sum())
    assert found[2] == pytest.approx(3 * found[0])


def test_severity_of_crossed_experts_is_their_shrunken_difference() -> None:
    # Expert 2 is .2 above expert 1 on every item, without noise but the floor of .02: lambda = (.02 / .1)^2 = .04.
    # Within items each deviates by -+.1; gram = I/2 [[1, -1], [-1, 1]], so b2 - b1 = .2 I / (I + .04).
    items = 10
    one = np.linspace(0.2, 0.7, items)
    found = severities(np.column_stack([one, one + 0.2]))
    assert found[1] - found[0] == pytest.approx(0.2 * items / (items + 0.04))
    assert found.sum() == pytest.approx(0)


def test_an_expert_without_shared_items_has_no_severity() -> None:
    scores = np.array([[0.2, 0.4, np.nan], [0.3, 0.5, np.nan], [np.nan, np.nan, 0.9]])
    found = severities(scores)
    assert found[2] == 0
    assert adjusted(scores, found)[2] == pytest.approx(0.9)
    assert np.isnan(adjusted(np.full((1, 3), np.nan), found)[0])


def test_a_family_that_nobody_knows_has_no_bias() -> None:
    assert bias_of(np.array([0, 1, -1]), np.array([0.1, -0.2])).tolist() == [0.1, -0.2, 0.0]


def test_folds_keep_conversations_whole_and_are_of_like_size() -> None:
    groups = np.repeat(np.arange(12), [8, 1, 1, 3, 3, 2, 2, 4, 4, 1, 1, 6])
    fold = fold_of(groups, 4, 3)
    assert all(len(set(fold[groups == g])) == 1 for g in range(12))
    size = np.bincount(fold)
    assert len(size) == 4
    assert size.max() - size.min() <= 2


def test_there_are_no_more_folds_than_conversations() -> None:
    assert set(fold_of(np.array([7, 7, 7, 9, 9]), 10, 1)) == {0, 1}
