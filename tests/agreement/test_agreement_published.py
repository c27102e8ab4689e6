"""Values printed in the papers that define the statistics, and values worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from aipsy_judge.agreement import (
    Bootstrap,
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

POINT = Bootstrap(resamples=0)
NAN = float("nan")

# Shrout and Fleiss 1979, table 2: six targets, four judges.
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]

# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C: four observers, twelve units, gaps.
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T


def expand(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """Two raters' labels from a contingency table (rows: first rater)."""
    cells = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in cells], [j for _, j in cells]


@pytest.mark.parametrize(("form", "printed"), [("A,1", 0.29), ("C,1", 0.71), ("A,k", 0.62)])
def test_icc_gives_the_values_of_shrout_and_fleiss(form: str, printed: float) -> None:
    assert icc(SHROUT_FLEISS, form=form, bootstrap=POINT).value == pytest.approx(printed, abs=0.005)  # type: ignore[arg-type]


def test_icc_from_the_printed_mean_squares_after_mcgraw_and_wong() -> None:
    # Shrout and Fleiss print BMS 11.24, JMS 32.49, EMS 1.02 (n 6, k 4); McGraw and Wong 1996, table 4, case 2A:
    # (11.24 - 1.02) / (11.24 + 3 * 1.02 + 4 * (32.49 - 1.02) / 6) = 10.22 / 35.28
    assert icc(SHROUT_FLEISS, bootstrap=POINT).value == pytest.approx(10.22 / 35.28, abs=0.001)


def test_kappa_gives_the_value_of_artstein_and_poesio_on_two_labels() -> None:
    x, y = expand([[20, 20], [10, 50]])  # 2008, table 1; A_o .7, A_e .4 * .3 + .6 * .7 = .54
    assert cohen_kappa(make_pairs(x, y), labels=[0, 1], bootstrap=POINT).value == pytest.approx(0.348, abs=0.0005)


def test_weighted_kappa_gives_the_values_of_artstein_and_poesio_on_three_labels() -> None:
    # 2008, table 5, in the order Stat, Chck, IReq: their distances .5, .5, 1 are then linear.
    x, y = expand([[46, 0, 6], [0, 10, 6], [0, 0, 32]])
    pairs = make_pairs(x, y)
    assert cohen_kappa(pairs, labels=[0, 1, 2], bootstrap=POINT).value == pytest.approx(0.8013, abs=0.00005)
    weighted = cohen_kappa(pairs, labels=[0, 1, 2], weighting="linear", bootstrap=POINT)
    assert weighted.value == pytest.approx(0.8163, abs=0.00005)


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_gives_the_values_of_krippendorff_with_missing_ratings(level: str, printed: float) -> None:
    found = krippendorff_alpha(KRIPPENDORFF, level=level, bootstrap=POINT)  # type: ignore[arg-type]
    assert found.value == pytest.approx(printed, abs=0.0005)
    assert (found.n, found.dropped) == (11, 1)  # the last unit has one rating


def test_alpha_gives_the_value_of_krippendorff_on_two_observers_and_two_labels() -> None:
    # 2011, section A: .095
    first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    found = krippendorff_alpha(np.stack([first, second], axis=1), level="nominal", bootstrap=POINT)
    assert found.value == pytest.approx(0.095, abs=0.0005)


def test_one_disagreement_among_equal_scores_gives_alpha_0_with_raw_agreement_beside_it() -> None:
    found = krippendorff_alpha([[5, 5]] * 11 + [[5, 4]], bootstrap=POINT)
    assert found.value == pytest.approx(0)
    assert found.beside["agreement"] == pytest.approx(11 / 12)
    assert found.beside["modal_share"] == pytest.approx(23 / 24)


def test_negative_alpha_is_not_cut_off_at_0() -> None:
    found = krippendorff_alpha([[0, 5], [5, 0], [1, 4], [4, 1]], level="interval", bootstrap=POINT)
    assert found.value == pytest.approx(-0.75)


def test_a_constant_shift_costs_absolute_agreement_only() -> None:
    shifted = [[v + 1, v] for v in range(5)]
    assert icc(shifted, form="A,1", bootstrap=POINT).value == pytest.approx(5 / 6)
    assert icc(shifted, form="C,1", bootstrap=POINT).value == pytest.approx(1)
    assert spearman(make_pairs(*zip(*shifted, strict=True)), bootstrap=POINT).value == pytest.approx(1)


def test_high_accuracy_without_skill_shows_as_kappa_0_and_sensitivity_0_with_an_interval() -> None:
    expert, judge = [0] * 18 + [1] * 2, [0] * 20
    pairs = make_pairs(judge, expert)
    kappa = cohen_kappa(pairs, labels=[0, 1])
    assert kappa.value == 0
    assert kappa.beside == {"agreement": 0.9, "prevalence": 0.1, "positive": 2, "positive_rater": 0}
    recall = flag_recall(pairs)
    assert (recall.value, recall.low) == (0, 0)
    # Wilson 1927 for 0 of 2: z^2 / (2 + z^2), z 1.96
    assert recall.high == pytest.approx(3.8415 / 5.8415, abs=0.0001)


def test_recall_precision_and_auc_by_hand() -> None:
    # reference below 2: the first three. rater: 1 3 3 | 1 3 5
    pairs = make_pairs([1, 3, 3, 1, 3, 5], [0, 1, 1, 2, 4, 5])
    assert failure_recall(pairs, critical=2, bootstrap=POINT).value == pytest.approx(1 / 3)
    assert failure_precision(pairs, critical=2, bootstrap=POINT).value == pytest.approx(1 / 2)
    # pairs (failure, other) with the failure lower, ties half: 1: .5 1 1 · 3: 0 .5 1 · 3: 0 .5 1 -> 5.5 of 9
    assert failure_auc(pairs, critical=2, bootstrap=POINT).value == pytest.approx(5.5 / 9)


def test_a_score_on_the_threshold_is_no_failure() -> None:
    pairs = make_pairs([2, 2, 1], [2, 1, 1])
    assert failure_recall(pairs, critical=2, bootstrap=POINT).value == pytest.approx(1 / 2)


def test_items_with_a_gap_leave_icc_whole_and_are_counted() -> None:
    table = np.array(SHROUT_FLEISS, dtype=float)
    table[0, 1] = table[4, 2] = NAN
    found = icc(table, bootstrap=POINT)
    assert (found.n, found.dropped) == (4, 2)
    assert found.value == pytest.approx(icc(table[[1, 2, 3, 5]], bootstrap=POINT).value)
