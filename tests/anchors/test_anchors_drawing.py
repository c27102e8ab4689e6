"""The probabilities are those of the design, exactly, and so the weighted mean is unbiased."""

import json
import math
import random
from statistics import fmean, stdev

import numpy as np
import pytest
from anchors_setup import JUDGES, RUBRIC, judged, small_draw, table
from hypothesis import given
from hypothesis import strategies as st

from aipsy_judge.anchors import draw_anchors, horvitz_thompson_mean, read_draw, weighted_mean, write_draw
from aipsy_judge.anchors.allocation import allocate
from aipsy_judge.anchors.drawing import by_conversation, systematic
from aipsy_judge.errors import InputError


class Start:
    """A random source that gives one start."""

    def __init__(self, start):
        self.start = start

    def randrange(self, size):
        assert 0 <= self.start < size
        return self.start


@given(st.integers(1, 60), st.data())
def test_over_all_starts_every_item_is_drawn_equally_often(size, data):
    n = data.draw(st.integers(1, size))
    counts = np.zeros(size, dtype=int)
    for start in range(size):
        drawn = systematic(range(size), n, Start(start))
        assert len(set(drawn)) == n
        counts[drawn] += 1
    assert set(counts) == {n}  # n of `size` equally likely starts: probability n / size


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(1, 300))
def test_an_allocation_fits_and_leaves_no_stratum_without_a_chance(sizes, n):
    named = {str(k): size for k, size in enumerate(sizes)}
    filled = sum(size > 0 for size in sizes)
    if n < filled:
        with pytest.raises(InputError, match="too small"):
            allocate(named, dict.fromkeys(named, 1.0), n)
        return
    taken = allocate(named, {name: 1 + int(name) for name in named}, n)
    assert sum(taken.values()) == min(n, sum(sizes))
    assert all(taken[k] <= size and (taken[k] > 0) == (size > 0) for k, size in named.items())


def test_shares_are_met_and_what_a_small_stratum_cannot_fill_goes_to_the_others_by_theirs():
    sizes = {"crisis": 4, "failure": 500, "rest": 500}
    assert allocate(sizes, {"crisis": 0.5, "failure": 0.3, "rest": 0.2}, 54) == {"crisis": 4, "failure": 30, "rest": 20}


@pytest.mark.parametrize("share", [0.0, -1.0, math.nan, math.inf])
def test_a_stratum_cannot_be_left_out(share):
    with pytest.raises(InputError, match="no share of the sample for rest"):
        allocate({"crisis": 5, "rest": 5}, {"crisis": 1.0, "rest": share}, 5)


def population(seed=3):
    """300 items of 60 conversations: crises and failures are rare, and worse than what is drawn of the rest."""
    rng = random.Random(seed)
    rows, truth = [], {}
    for n in range(300):
        item = f"chat-{n // 5}:t{n % 5 + 1:02d}"
        kind = rng.choices(("crisis", "failure", "rest"), (4, 10, 86))[0]
        truth[item] = {"crisis": 1.0, "failure": 2.0, "rest": 4.0}[kind] + rng.gauss(0, 0.5)
        rows.append(judged(item, "a", crisis=kind == "crisis", **({"empathy": 1} if kind == "failure" else {})))
    return table(*rows), truth


def test_over_many_draws_the_weighted_mean_is_the_mean_of_all_items_and_the_plain_mean_is_not():
    ratings, truth = population()
    wanted = fmean(truth.values())
    estimates, plain = [], []
    for seed in range(80):
        draw = draw_anchors(ratings, RUBRIC, n=60, seed=seed)
        values, chances = [truth[i.item_id] for i in draw.items], [i.inclusion for i in draw.items]
        estimates.append(horvitz_thompson_mean(values, chances, draw.population))
        plain.append(fmean(values))
    error = stdev(estimates) / math.sqrt(len(estimates))
    assert abs(fmean(estimates) - wanted) < 4 * error
    assert error < 0.03
    assert wanted - fmean(plain) > 25 * error


def test_over_all_starts_of_every_stratum_the_expectation_is_exact():
    sizes, taken = {"crisis": 7, "rest": 40}, {"crisis": 5, "rest": 11}
    values = {name: np.random.default_rng(1).normal(size=size) for name, size in sizes.items()}
    expected = 0.0
    for name, size in sizes.items():
        drawn = [systematic(range(size), taken[name], Start(start)) for start in range(size)]
        chance = np.full(taken[name], taken[name] / size)
        expected += fmean(horvitz_thompson_mean(values[name][d], chance, sum(sizes.values())) for d in drawn)
    assert expected == pytest.approx(np.concatenate(list(values.values())).mean(), abs=1e-12)


def test_the_weighted_mean_by_hand():
    # Two items that stand for 1 and 4: (2 * 1 + 5 * 4) / 5
    assert weighted_mean([2, 5], [1.0, 0.25]) == pytest.approx(4.4)
    assert horvitz_thompson_mean([2, 5], [1.0, 0.25], 5) == pytest.approx(4.4)
    assert weighted_mean([], []) is None


def test_the_probabilities_stated_are_those_with_which_items_are_drawn():
    ratings, _ = population()
    counts, chances = dict.fromkeys(ratings.items, 0), {}
    draws = 100
    for seed in range(draws):
        for item in draw_anchors(ratings, RUBRIC, n=60, seed=1000 + seed).items:
            counts[item.item_id] += 1
            chances[item.item_id] = item.inclusion
    assert chances.keys() == set(ratings.items)
    off = [abs(counts[i] / draws - p) / math.sqrt(max(p * (1 - p), 1e-12) / draws) for i, p in chances.items() if p < 1]
    assert max(off) < 4.5
    assert all(counts[i] == draws for i, p in chances.items() if p == 1)


def test_a_draw_reaches_as_many_conversations_as_it_can():
    rows = [judged(f"chat-{n // 10}:t{n % 10 + 1:02d}", "a") for n in range(100)]
    for seed in range(20):
        draw = draw_anchors(table(*rows), RUBRIC, n=10, seed=seed)
        assert len({i.conversation for i in draw.items}) == 10


def test_any_two_conversations_can_be_drawn_together():
    ratings = table(*[judged(f"chat-{n}:t01", "a") for n in range(4)])
    drawn = {tuple(sorted(i.item_id for i in draw_anchors(ratings, RUBRIC, n=2, seed=s).items)) for s in range(60)}
    assert len(drawn) == 6


def test_a_frame_keeps_conversations_together():
    ratings = table(*[judged(f"chat-{n % 3}:t{n // 3 + 1:02d}", "a") for n in range(9)])
    order = [ratings.conversation[p] for p in by_conversation(ratings, np.arange(9), random.Random(1))]
    assert [order[n] for n in (0, 3, 6)] == list(dict.fromkeys(order))
    assert len(set(order[:3])) == 1


def test_the_same_seed_draws_the_same_and_another_seed_another():
    ratings, _ = population()
    drawn = [draw_anchors(ratings, RUBRIC, n=40, seed=seed) for seed in (5, 5, 6)]
    assert drawn[0] == drawn[1]
    assert drawn[0].items != drawn[2].items


def test_codes_and_their_order_tell_nothing_of_the_stratum():
    ratings, _ = population()
    draw = draw_anchors(ratings, RUBRIC, n=100, seed=1)
    order = [i.stratum for i in draw.items]
    assert order != sorted(order)
    assert len({i.code[:5] for i in draw.items}) == 1
    assert [int(i.code[5:]) for i in draw.items] == list(range(1, 101))
    assert not any(char in "aeiou0123456789" for char in draw.items[0].code[:4])


def test_where_fewer_items_are_there_than_wanted_all_are_drawn_with_certainty():
    draw, _ = small_draw()
    assert len(draw.items) == draw.population == 6
    assert {i.inclusion for i in draw.items} == {1.0}
    assert draw.judges == JUDGES


def test_a_draw_comes_back_from_its_file(tmp_path):
    draw, _ = small_draw(hashes={"chat-0:t01": "f" * 64})
    write_draw(draw, tmp_path / "draw.json")
    assert read_draw(tmp_path / "draw.json") == draw
    with pytest.raises(InputError, match="exists already"):
        write_draw(draw, tmp_path / "draw.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["items"][0].update(inclusion=0.5),
        lambda data: data["items"][0].update(item_id="chat-9:t01"),
        lambda data: data["items"].reverse(),
        lambda data: data["items"][0].update(code="bbbb-009"),
        lambda data: data["strata"][4].update(items=99),
        lambda data: data["rubric"]["metrics"][0].update(question="Another question?"),
        lambda data: data["items"][0].update(inclusion=0),
        lambda data: data.update(format="something else"),
        lambda data: data["items"][0].pop("turn"),
    ],
)
def test_a_draw_that_was_changed_is_refused(tmp_path, change):
    draw, _ = small_draw()
    write_draw(draw, tmp_path / "draw.json")
    data = json.loads((tmp_path / "draw.json").read_text())
    change(data)
    (tmp_path / "changed.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"changed after it was made|not a draw"):
        read_draw(tmp_path / "changed.json")
