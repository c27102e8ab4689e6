"""Where a figure cannot be had there is a reason, never a number; and what guards the figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statistics_table import STATISTICS, scores

from aipsy_judge.agreement import (
    Bootstrap,
    Estimate,
    Interval,
    bias,
    cohen_kappa,
    failure_auc,
    failure_precision,
    failure_recall,
    flag_recall,
    icc,
    krippendorff_alpha,
    make_pairs,
    spearman,
)
from aipsy_judge.agreement import pair_statistic as pair_module
from aipsy_judge.errors import AipsyJudgeError

NAN = float("nan")


def test_flags_that_are_never_set_have_no_kappa_and_no_sensitivity() -> None:
    pairs = make_pairs([0] * 20, [0] * 20)
    kappa = cohen_kappa(pairs, labels=[0, 1])
    assert (kappa.value, kappa.reason) == (None, "one class: both raters say 0 throughout")
    assert kappa.beside["agreement"] == 1.0
    assert kappa.beside["positive"] == 0
    recall = flag_recall(pairs)
    assert recall.reason == "the reference has no set flag: sensitivity cannot be estimated"


def test_a_mean_of_several_people_is_no_label() -> None:
    found = cohen_kappa(make_pairs([3, 4], [3.5, 4]), labels=range(6))
    assert found.reason == "1 score is no step of the scale (such as 3.5)"


def test_one_constant_rater_has_a_kappa_of_0_but_no_rank_correlation() -> None:
    pairs = make_pairs([4, 4, 4], [1, 4, 5])
    assert cohen_kappa(pairs, labels=range(6)).value == 0
    assert spearman(pairs).reason == "the rater's scores do not vary: all are 4"


def test_no_failure_on_one_side_leaves_the_other_figures_standing() -> None:
    pairs = make_pairs([1, 4, 5], [3, 4, 5])
    assert failure_recall(pairs, critical=2).value is None
    assert failure_precision(pairs, critical=2).value == 0
    assert failure_auc(pairs, critical=2).reason == "the reference has no failure"
    assert failure_auc(pairs, critical=9).reason == "the reference has nothing but failures"


def test_icc_of_items_that_do_not_differ_is_undefined() -> None:
    assert icc([[3, 4], [3, 4], [3, 4]]).reason == "no rater's scores vary"
    # Two raters who mirror each other: the items' means are all 2, the variance of a mean would be below 0.
    assert icc([[1, 3], [2, 2], [3, 1]], form="A,k").reason == "the items do not differ"


def test_icc_needs_two_raters_and_three_items() -> None:
    assert icc([[1], [2], [3]]).reason == "fewer than 2 raters"
    assert icc([[1, 2], [2, 3]]).reason == "fewer than 3 items"


def test_alpha_of_single_ratings_is_undefined() -> None:
    assert krippendorff_alpha([[1, NAN], [NAN, 2]]).reason == "no item has two ratings"


def test_few_conversations_have_a_figure_but_no_interval() -> None:
    found = bias(make_pairs([1, 2, 3, 4], [1, 1, 1, 1], groups=[0, 0, 1, 1]))
    assert found.value == 1.5
    assert found.interval.reason == "2 conversations: too few to resample"


def test_a_figure_that_every_resample_repeats_has_no_interval() -> None:
    found = bias(make_pairs(np.arange(10.0) + 1, np.arange(10.0)))
    assert found.value == 1
    assert "every resample gives the same" in found.interval.reason


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_estimate_cannot_hold_what_is_no_figure(value: float) -> None:
    with pytest.raises(ValueError, match="no figure"):
        Estimate("x", "x", value, 1)


def test_an_estimate_has_a_value_or_a_reason_and_an_interval_two_ends_or_a_reason() -> None:
    with pytest.raises(ValueError, match="either a value or a reason"):
        Estimate("x", "x", None, 1)
    with pytest.raises(ValueError, match="two finite ends"):
        Interval(0.0, None, 0.95, "m", 5)


def test_a_library_that_changes_its_meaning_stops_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    import krippendorff

    monkeypatch.setattr(krippendorff, "alpha", lambda **_: 0.5)
    with pytest.raises(AipsyJudgeError, match=r"krippendorff gives 0\.5 where its closed form gives"):
        krippendorff_alpha([[1, 2], [2, 2], [3, 1]])


@pytest.mark.parametrize("name", [n for n in STATISTICS if n.split()[0] not in ("icc", "alpha")])
def test_scores_with_decimals_take_another_way_to_the_same_interval(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, group = scores(items=80, groups=16)
    bootstrap = Bootstrap(resamples=100)
    usual = STATISTICS[name](x, y, group, bootstrap)
    monkeypatch.setattr(pair_module, "DENSE_LIMIT", 0)
    other = STATISTICS[name](x, y, group, bootstrap)
    assert (other.low, other.high) == pytest.approx((usual.low, usual.high))


def test_inclusion_weights_undo_an_oversampled_tail() -> None:
    # Ten failures drawn with certainty, 30 of 300 others with probability .1; the rater misses half the failures.
    y = np.array([1.0] * 10 + [4.0] * 30)
    x = np.where(np.arange(40) < 5, 1, 4).astype(float)
    weights = np.where(y < 2, 1.0, 10.0)
    plain, weighted = (bias(make_pairs(x, y, weights=w)) for w in (None, weights))
    assert plain.value == pytest.approx(15 / 40)
    assert weighted.value == pytest.approx(15 / 310)
    assert weighted.form.endswith("weighted by inclusion")
    assert cohen_kappa(make_pairs(x, y, weights=weights), labels=range(6)).beside["mean_reference"] == pytest.approx(
        (10 * 1 + 300 * 4) / 310
    )


def test_weights_must_be_positive_and_lengths_alike() -> None:
    with pytest.raises(ValueError, match="not positive"):
        make_pairs([1, 2], [1, 2], weights=[1, 0])
    with pytest.raises(ValueError, match="unlike lengths"):
        make_pairs([1, 2], [1])
