"""Distances between distributions: worked by hand, and the same whether an answer is followed or was written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from toy_model import ToyModel

from quantize.closeness import divergence, follow, keep, near, place
from quantize.free_answers import write_answers
from quantize.trunk import Trunk


def exact(p, q):
    return float((p * np.log(p / q)).sum())


def test_the_divergence_of_two_distributions_worked_by_hand():
    """.5 ln(.5/.25) + .25 ln(.25/.5) + .25 ln(.25/.25) = .25 ln 2 = .1733"""
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    found = divergence(keep(np.log(p).astype(np.float32), kept=3), np.log(q).astype(np.float32))
    assert found == pytest.approx(0.25 * np.log(2), abs=1e-6)


LOGITS = arrays(np.float32, 40, elements=st.floats(-20, 20, width=32))


@given(LOGITS, LOGITS, st.integers(1, 60))
def test_tokens_that_are_not_kept_make_it_a_lower_bound_and_all_of_them_exact(a, b, kept):
    p, q = (np.exp(x - x.max().astype(np.float64)) for x in (a.astype(np.float64), b.astype(np.float64)))
    truth = exact(p / p.sum(), q / q.sum())
    found = divergence(keep(a, kept), b)
    assert 0.0 <= found <= truth + 1e-6 * (1 + truth)
    if kept >= 40:
        assert found == pytest.approx(truth, rel=1e-6, abs=1e-9)


@given(LOGITS, st.integers(1, 60), st.floats(-50, 50))
def test_a_distribution_is_no_distance_from_itself_whatever_constant_is_added(a, kept, constant):
    assert divergence(keep(a, kept), a.astype(np.float64) + constant) == pytest.approx(0.0, abs=1e-6)


def test_figures_over_places_and_over_none():
    found = near([(0.0, True)] * 99 + [(1.0, False)])
    assert (found.tokens, found.mean, found.top1) == (100, 0.01, 0.99)
    assert 0.0 < found.high <= 1.0
    assert near([]).mean is None


def test_what_is_followed_is_what_was_written():
    """Before every token of an answer, its own writer's first choice is that token."""
    model = ToyModel(spread=3.0)
    trunk = Trunk(model, 2000)
    for unit, text in enumerate(("judge the talk", "judge the tone of it", "judge the talk")):
        prompt = model.tokenize(text, special=False)
        (answer,) = write_answers(model, trunk, unit, {"answer": prompt}, {"answer": []}, budget=12)
        rows = follow(trunk, prompt, answer.tokens)
        assert [int(r.argmax()) for r in rows] == list(answer.tokens)
        assert all(place(keep(r), r) == (0.0, True) for r in rows)
