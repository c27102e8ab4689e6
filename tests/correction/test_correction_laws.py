"""What must hold of every correction, whatever the scores."""

from __future__ import annotations

import numpy as np
import pytest
from correction_panels import CUT, SPAN, basis_of, error, fitted, judged, truth
from hypothesis import given, settings
from hypothesis import strategies as st

from aipsy_judge.correction.blend import blend_weights
from aipsy_judge.correction.metric_fit import Panel, fit_metric


@pytest.mark.parametrize("count", [10, 30, 100])
def test_perfect_judges_are_left_as_they_are(count: int) -> None:
    expert = truth(600, 1)
    judges = np.column_stack([expert] * 3)
    fit, panel = fitted(judges, expert, np.arange(count))
    # The more anchors, the less is taken off a slope that begins at .7.
    assert error(fit.values(panel), expert) < (0.12 if count == 10 else 0.06)


def test_a_constant_added_to_every_judge_is_undone() -> None:
    expert = truth(1000, 2, mean=2.6, sd=0.8)
    plain = judged(expert, [0, 0, 0], 0.5, 2)
    anchors = np.arange(150)
    before, panel = fitted(plain, expert, anchors)
    after, moved = fitted(plain + 0.7, expert, anchors)
    difference = after.values(moved) - before.values(panel)
    assert np.abs(SPAN * difference).mean() < 0.1


def test_an_offset_of_one_judge_does_not_matter_either() -> None:
    expert = truth(1000, 3, mean=2.6, sd=0.8)
    plain = judged(expert, [0, 0, 0], 0.5, 3)
    anchors = np.arange(150)
    before, panel = fitted(plain, expert, anchors)
    after, moved = fitted(plain + np.array([1.5, 0, 0]), expert, anchors)
    assert np.abs(SPAN * (after.values(moved) - before.values(panel))).mean() < 0.1


def test_permuting_the_judges_permutes_the_weights_and_keeps_the_values() -> None:
    expert = truth(400, 4)
    judges = judged(expert, [0.3, 0.8, -0.4], 0.8, 4)
    order = np.array([2, 0, 1])
    one, panel = fitted(judges, expert, np.arange(80))
    other, turned = fitted(judges[:, order], expert, np.arange(80))
    place = one.basis.design.blocks["judges"]
    assert other.ladder.combined[place] == pytest.approx(one.ladder.combined[place][order], abs=1e-9)
    assert other.values(turned) == pytest.approx(one.values(panel), abs=1e-9)
    assert other.probabilities(turned) == pytest.approx(one.probabilities(panel), abs=1e-9)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.integers(5, 40),
    st.sampled_from([0.0, 0.3, 1.5]),
    st.integers(1, 5),
)
def test_blend_and_values_are_legal_whatever_the_anchors(
    seed: int, judges: int, anchors: int, noise: float, together: int
) -> None:
    expert = truth(60, seed)
    scores = judged(expert, list(np.linspace(-1, 1, judges)), noise, seed)
    fit, panel = fitted(scores, expert, np.arange(anchors), groups=np.arange(60) // together, seed=seed)
    blend = fit.ladder.blend
    assert (blend >= 0).all()
    assert blend.sum() == pytest.approx(1)
    values, p_fail = fit.values(panel), fit.probabilities(panel)
    assert ((values >= 0) & (values <= 1)).all()
    assert ((p_fail >= 0) & (p_fail <= 1)).all()
    if fit.enough:
        weights = fit.ladder.coefficients[fit.ladder.names.index("weights")][fit.basis.design.blocks["judges"]]
        assert (weights >= 0).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 8), st.floats(0, 1))
def test_blend_weights_are_shares(seed: int, n: int, rungs: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    found = blend_weights(
        scale * random.normal(size=(n, rungs)), np.ones(rungs), random.integers(0, 3, n), np.ones(n), seed
    )
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)


def test_the_same_anchors_give_the_same_correction() -> None:
    expert = truth(200, 5)
    judges = judged(expert, [0.5, 0.0], 0.7, 5)
    one, _ = fitted(judges, expert, np.arange(50))
    other, _ = fitted(judges, expert, np.arange(50))
    assert (one.ladder.combined == other.ladder.combined).all()
    assert (one.failure == other.failure).all()


def test_an_anchor_that_is_not_a_number_is_refused() -> None:
    basis, panel = basis_of(judged(truth(20, 6), [0, 0], 0.5, 6))
    expert = truth(20, 6) / SPAN
    expert[3] = np.nan
    with pytest.raises(ValueError, match="not a number"):
        fit_metric(basis, Panel(panel.judges, panel.others), expert, expert < CUT, cut=CUT, groups=np.arange(20))


def test_no_rung_out_of_fold_has_seen_its_conversation() -> None:
    # The expert's scores are noise that is alike within a conversation, and so is a metric of the judges': only who has
    # seen the conversation could tell it. In sample the error must be smaller than noise, out of fold it must not.
    random = np.random.default_rng(7)
    groups = np.repeat(np.arange(12), 10)
    level = random.normal(0, 1, 12)[groups]
    expert = np.clip(np.rint(2.5 + level), 0, 5)
    judges = np.clip(np.rint(2.5 + random.normal(0, 1, (12, 3))[groups]), 0, 5)
    fit, _ = fitted(judges, expert, np.arange(120), groups=groups)
    place = fit.ladder.names.index("steps")
    x = fit.basis.design.columns(judges / SPAN, np.empty((120, 0)))
    inside = error(x @ fit.ladder.coefficients[place], expert)
    outside = error(fit.ladder.out_of_fold[:, place], expert)
    assert inside < 0.95 * expert.std()
    assert outside > expert.std()
