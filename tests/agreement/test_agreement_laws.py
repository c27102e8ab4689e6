"""Laws that hold for all agreement statistics, or for all of a kind."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from statistics_table import NO_INTERVAL, OF_SHARES, STATISTICS, SYMMETRIC, scores

from aipsy_judge.agreement import Bootstrap, bias, icc, krippendorff_alpha, make_pairs
from aipsy_judge.agreement.resample import draws, in_blocks

every = pytest.mark.parametrize("name", STATISTICS)
SEEDS = range(2)


@every
def test_the_order_of_the_items_does_not_matter(name: str) -> None:
    x, y, group = scores()
    order = np.random.default_rng(1).permutation(len(x))
    given = STATISTICS[name](x, y, group)
    assert STATISTICS[name](x[order], y[order], group[order]).value == pytest.approx(given.value)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_swapping_the_raters_does_not_matter(name: str) -> None:
    x, y, _ = scores()
    assert STATISTICS[name](x, y).value == pytest.approx(STATISTICS[name](y, x).value)


def test_swapping_the_raters_turns_bias_round_and_swaps_recall_and_precision() -> None:
    x, y, _ = scores()
    value = {n: (s(x, y).value, s(y, x).value) for n, s in STATISTICS.items()}
    assert value["bias"][0] == pytest.approx(-value["bias"][1])
    for kind in ("failure", "flag"):
        assert value[f"{kind} recall"] == value[f"{kind} precision"][::-1]


@pytest.mark.parametrize("name", ["alpha nominal", "kappa unweighted"])
def test_unordered_statistics_do_not_care_what_the_labels_are_called(name: str) -> None:
    x, y, _ = scores()
    called = np.array([3, 0, 5, 1, 4, 2], dtype=float)
    renamed = STATISTICS[name](called[x.astype(int)], called[y.astype(int)])
    assert renamed.value == pytest.approx(STATISTICS[name](x, y).value)


@pytest.mark.parametrize("name", ["alpha ordinal", "spearman"])
def test_rank_statistics_survive_any_rising_change_of_scale(name: str) -> None:
    x, y, _ = scores()
    assert STATISTICS[name](x**3, y**3).value == pytest.approx(STATISTICS[name](x, y).value)


@pytest.mark.parametrize("name", ["icc A,1", "icc C,1", "icc A,k", "alpha interval", "spearman"])
def test_scale_free_statistics_survive_another_unit_and_zero(name: str) -> None:
    x, y, _ = scores()
    assert STATISTICS[name](3 * x - 7, 3 * y - 7).value == pytest.approx(STATISTICS[name](x, y).value)


@pytest.mark.parametrize("name", OF_SHARES)
def test_items_written_twice_in_their_conversation_change_neither_figure_nor_interval(name: str) -> None:
    x, y, group = scores(items=120, groups=20)
    once = STATISTICS[name](x, y, group, Bootstrap(resamples=200))
    twice = STATISTICS[name](np.tile(x, 2), np.tile(y, 2), np.tile(group, 2), Bootstrap(resamples=200))
    assert twice.value == pytest.approx(once.value)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    assert twice.n == 2 * once.n


@pytest.mark.parametrize("name", ["alpha nominal", "alpha ordinal", "alpha interval"])
def test_items_written_twice_move_alpha_as_its_formula_says(name: str) -> None:
    x, y, _ = scores()
    once, twice = STATISTICS[name](x, y).value, STATISTICS[name](np.tile(x, 2), np.tile(y, 2)).value
    ratings = 2 * len(x)  # 1 - alpha carries the factor n - 1 over n
    assert 1 - twice == pytest.approx((1 - once) * (2 * ratings - 1) / (2 * (ratings - 1)))


@every
def test_full_agreement_is_the_best_value_there_is(name: str) -> None:
    x, _, _ = scores()
    best = 0 if name in ("bias", "mae", "rmse") else 1
    assert STATISTICS[name](x, x).value == pytest.approx(best)


@every
def test_items_that_one_rater_left_open_are_dropped_and_counted(name: str) -> None:
    x, y, group = scores()
    gap = x.copy()
    gap[:7] = np.nan
    found = STATISTICS[name](gap, y, group)
    assert (found.n, found.dropped) == (53, 7)
    assert found.value == pytest.approx(STATISTICS[name](x[7:], y[7:], group[7:]).value)


@every
def test_no_common_item_is_no_figure_but_a_reason(name: str) -> None:
    nothing = STATISTICS[name](np.full(4, np.nan), np.arange(4.0))
    assert nothing.value is None
    assert nothing.reason
    assert nothing.n == 0


@pytest.mark.parametrize("name", [n for n in STATISTICS if n not in ("bias", "mae", "rmse")])
def test_scores_that_do_not_vary_give_a_reason_and_no_figure(name: str) -> None:
    same = np.full(12, 4.0)
    found = STATISTICS[name](same, same)
    assert found.value is None
    assert found.interval is None
    assert found.reason


def test_constant_scores_keep_their_raw_agreement_in_sight() -> None:
    found = krippendorff_alpha([[4, 4]] * 6)
    assert found.reason == "no variation: every score is 4"
    assert found.beside["agreement"] == 1.0


@every
@pytest.mark.parametrize("seed", SEEDS)
def test_the_interval_rests_on_the_same_figure_computed_on_the_items_drawn(name: str, seed: int) -> None:
    """Draw the conversations by hand, write out their items, and compute the figure anew with its library."""
    x, y, group = scores(seed, items=80, groups=16)  # at least 5 of them hold a case
    bootstrap = Bootstrap(resamples=12, level=0.5, seed=seed)
    found = STATISTICS[name](x, y, group, bootstrap)
    assert found.interval is not None
    by_hand = []
    for drawn in draws(16, 12, seed):
        items = np.repeat(np.arange(80), drawn[group])
        value = STATISTICS[name](x[items], y[items]).value
        by_hand += [value] if value is not None else []
    assert found.interval.se == pytest.approx(np.std(by_hand, ddof=1), rel=1e-9)


@every
def test_the_interval_holds_the_figure_and_is_the_same_when_made_again(name: str) -> None:
    x, y, group = scores(items=200, groups=40)
    first, second = (STATISTICS[name](x, y, group, Bootstrap(resamples=300)) for _ in range(2))
    assert first == second
    assert first.low < first.value < first.high


def test_scores_alike_within_conversations_widen_the_interval() -> None:
    random = np.random.default_rng(3)
    group = np.repeat(np.arange(30), 10)
    x = random.normal(0, 1, 30)[group] + random.normal(0, 0.2, 300)
    pairs = [make_pairs(x, np.zeros(300), groups=g) for g in (group, None)]
    by_conversation, by_item = (bias(p) for p in pairs)
    assert by_conversation.high - by_conversation.low > 2 * (by_item.high - by_item.low)


@pytest.mark.slow
def test_intervals_over_few_conversations_cover_as_often_as_they_say() -> None:
    """1,000 samples of 12 conversations; 95 % less three standard errors of the share itself (.7 %)."""
    random = np.random.default_rng(5)
    group = np.repeat(np.arange(12), 4)
    held = 0
    for seed in range(1000):
        x = random.normal(0, 1, 12)[group] + random.normal(0, 1, 48)
        found = bias(make_pairs(x, np.zeros(48), groups=group), bootstrap=Bootstrap(resamples=400, seed=seed))
        held += found.interval.holds(0.0)
    assert 0.93 <= held / 1000 <= 0.975


def test_several_raters_and_missing_ratings_have_the_same_interval_as_drawn_by_hand() -> None:
    random = np.random.default_rng(2)
    table = np.clip(np.rint(random.normal(3, 1, 40)[:, None] + random.normal(0, 1, (40, 4))), 0, 5)
    holes = np.where(random.random((40, 4)) < 0.2, np.nan, table)
    group = np.arange(40) % 10
    for function, scored in ((icc, table), (krippendorff_alpha, holes)):
        found = function(scored, groups=group, bootstrap=Bootstrap(resamples=20, level=0.5))
        again = [
            function(scored[np.repeat(np.arange(40), drawn[group])], bootstrap=NO_INTERVAL).value
            for drawn in draws(10, 20, 14)
        ]
        assert found.interval.se == pytest.approx(np.std(again, ddof=1), rel=1e-9)


@every
def test_large_tables_get_the_same_figure_without_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, _ = scores(items=500)
    usual = STATISTICS[name](x, y)
    for module in ("pair_statistic", "icc", "alpha"):
        # The package gives the function icc under the module's name, so the module is taken from where it was loaded.
        monkeypatch.setattr(sys.modules[f"aipsy_judge.agreement.{module}"], "LIBRARY_ITEMS", 0)
    assert STATISTICS[name](x, y).value == pytest.approx(usual.value, rel=1e-9)


def test_many_thousand_groups_are_drawn_in_blocks_without_changing_the_spread() -> None:
    random = np.random.default_rng(0)
    x = random.normal(0, 1, 25_000)
    groups, bootstrap = in_blocks(np.arange(25_000), Bootstrap(resamples=300))
    assert bootstrap.blocks == len(set(groups.tolist())) == 5000
    found = bias(make_pairs(x, np.zeros(25_000), groups=groups), bootstrap=bootstrap)
    assert found.interval.se == pytest.approx(x.std(ddof=1) / 25_000**0.5, rel=0.15)
    assert "in 5,000 random blocks" in found.interval.method
    few = np.arange(20_000)
    assert in_blocks(few, Bootstrap())[0] is few
