"""The bag of words and the constant: what they read, what they learn, that nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from held_out_setup import RUBRIC, held
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from aipsy_judge.conversation import Conversation, Message
from bench.held_out import HeldItem
from bench.held_out_bag import EMPTY, FEWEST, WEIGHTS, WORDS, Bag, Kernels, Vocabulary, axes
from bench.held_out_said import held_by_target
from bench.held_out_words import bag_of_words, blocks, constant, fails

NAN = float("nan")


def texts(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    random = np.random.default_rng(seed)
    words = [f"w{n}" for n in range(30)]
    return [tuple(" ".join(random.choice(words, 8)) for _ in range(3)) for _ in range(count)]  # type: ignore[misc]


def test_the_three_texts_are_reply_last_message_and_what_was_before() -> None:
    shown = [Message("user", "a"), Message("assistant", "b"), Message("user", "c"), Message("assistant", "d")]
    assert blocks(shown) == ("d", "c", "a b")
    assert blocks(shown[:2]) == ("b", "a", "")
    assert blocks(shown[1:2]) == ("b", "", "")


def test_ridge_in_the_rows_own_space_is_ridge_over_all_words() -> None:
    rows, others = texts(25), texts(7, 1)
    weights = WEIGHTS[1]
    columns = [
        TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS, preprocessor=lambda t, n=n: t[n] or EMPTY
        ).fit(rows)
        for n in range(3)
    ]

    def sparse(of: list[tuple[str, str, str]]) -> np.ndarray:
        return hstack([w * c.transform(of) for w, c in zip(weights, columns, strict=True)]).toarray()

    target = np.random.default_rng(2).normal(size=25)
    plain = Ridge(alpha=0.3, solver="cholesky").fit(sparse(rows), target).predict(sparse(others))
    vocabulary = Vocabulary(rows)
    kernel = vocabulary.kernels(rows).weighed(weights)
    turned = axes(kernel)
    mine = Ridge(alpha=0.3, solver="cholesky").fit(kernel @ turned, target)
    assert mine.predict(vocabulary.kernels(others).weighed(weights) @ turned) == pytest.approx(plain, abs=1e-8)


def test_a_word_that_decides_is_learnt_and_groups_are_kept_whole() -> None:
    rows = [(f"{'good' if n % 2 else 'bad'} {a}", b, c) for n, (a, b, c) in enumerate(texts(60))]
    target = np.array([float(n % 2) for n in range(60)])
    bag = Bag(rows, np.arange(60) // 3)
    new = bag.kernels([("good w1 w2", "w3", ""), ("bad w1 w2", "w3", "")])
    likely = bag.probabilities(target).predict(new)
    assert likely[0] > 0.7 > 0.3 > likely[1]
    value = bag.values(4 * target).predict(new)
    assert value[0] > value[1] + 1
    for fold in bag._folds:
        assert not set(fold.learn // 3) & set(fold.attempt // 3)


def test_few_items_and_items_that_are_all_alike_leave_the_mean() -> None:
    bag = Bag(texts(40), np.arange(40))
    few = np.full(40, np.nan)
    few[: FEWEST - 1] = np.arange(FEWEST - 1)
    new = bag.kernels(texts(2, 5))
    assert bag.values(few).predict(new) == pytest.approx([(FEWEST - 2) / 2] * 2)
    assert bag.probabilities(np.ones(40)).predict(new) == pytest.approx([1.0, 1.0])
    assert np.isnan(bag.values(np.full(40, np.nan)).predict(new)).all()


def test_a_text_weighs_by_the_square_of_its_weight() -> None:
    kernels = Kernels((np.array([[2.0]]), np.array([[4.0]]), np.array([[8.0]])))
    assert kernels.weighed((1.0, 0.5, 0.25)).tolist() == [[2.0 + 4 / 4 + 8 / 16]]


def test_not_applicable_is_no_failure_and_unknown_is_unknown() -> None:
    found = fails(np.array([1.0, 3.0, NAN, NAN]), np.array([False, False, True, False]), 2.0)
    assert found == pytest.approx([1, 0, 0, NAN], nan_ok=True)


def test_the_constant_is_mean_and_share_and_what_most_have() -> None:
    items = [
        held("a", {"empathy": 1.0, "advice_safety": None}, crisis=True),
        held("b", {"empathy": 4.0, "advice_safety": None}),
        held("c", {"empathy": 4.0, "advice_safety": 2.0}),
        held("d", {"empathy": None, "advice_safety": None}, crisis=None),
    ]
    found = constant(held_by_target(items, RUBRIC, ""), 2, RUBRIC)
    assert found.metrics["empathy"].expected.tolist() == [3.0, 3.0]
    assert found.metrics["empathy"].p_fail == pytest.approx([1 / 4] * 2)  # one of three scored and one N/A
    assert found.metrics["advice_safety"].na.all()
    assert found.metrics["advice_safety"].given.tolist() == [2.0, 2.0]
    assert np.isnan(found.metrics["advice_safety"].expected).all()
    assert np.isnan(found.metrics["boundary_safety"].given).all()
    assert found.flags["crisis_detected"].probability == pytest.approx([1 / 3] * 2)
    assert found.flags["crisis_detected"].value.tolist() == [0.0, 0.0]


def spoken(n: int) -> HeldItem:
    item = held(f"i{n}", {"empathy": 4.0 if n % 2 else 1.0, "advice_safety": 2.0 if n % 3 else None}, crisis=n % 4 == 0)
    said = f"{'warm' if n % 2 else 'cold'} {'doctor' if n % 3 else 'weather'} word{n}"
    asks = f"{'help' if n % 4 == 0 else 'hello'} word{n}"
    talk = Conversation(item.id, (Message("user", asks), Message("assistant", said)))
    return HeldItem(item.id, talk, 1, item.group, item.target)


def test_what_the_bag_says_is_kept_and_learnt_anew_where_a_target_changed(tmp_path: Path) -> None:
    train, new = [spoken(n) for n in range(40)], [spoken(n) for n in range(40, 46)]
    path = tmp_path / "kept.jsonl"
    truth = held_by_target(train, RUBRIC, "")
    first, chosen = bag_of_words(train, truth, RUBRIC, new, path)
    again, same = bag_of_words(train, truth, RUBRIC, new, path)
    assert len(path.read_text().splitlines()) == 1
    assert same["empathy"]["strength"] == chosen["empathy"]["strength"] is not None
    for name, one in first.metrics.items():
        other = again.metrics[name]
        for a, b in ((one.given, other.given), (one.p_fail, other.p_fail), (one.expected, other.expected)):
            assert a == pytest.approx(b, nan_ok=True)
        assert one.na.tolist() == other.na.tolist()
    said = first.metrics["empathy"]
    assert (said.given[1::2] > 3).all()  # the odd ones are warm
    assert (said.given[::2] < 2).all()
    assert (said.p_fail[::2] > 0.5).all()
    assert first.metrics["advice_safety"].na.tolist() == [n % 3 == 0 for n in range(40, 46)]
    assert first.metrics["crisis_handling"].na.tolist() == (first.flags["crisis_detected"].value == 0).tolist()
    bag_of_words(train[:-1], held_by_target(train[:-1], RUBRIC, ""), RUBRIC, new, path)
    assert len(path.read_text().splitlines()) == 2
