"""Drift between verdicts, worked by hand."""

from __future__ import annotations

import pytest
from run_builder import RUBRIC, verdict

from aipsy_judge.verdict import NotApplicable, Reading, Scored, Unscored
from quantize.drift import flag_drifts, legal_mass, metric_drifts


def scored(value, expected, mass=0.9):
    return Scored(value, Reading(0.0, expected, 0.8, mass))


def drift_of(name, before, after):
    sides = [[verdict("a", n, {name: s}) for n, s in enumerate(scores, 1)] for scores in (before, after)]
    return next(d for d in metric_drifts(RUBRIC, *sides) if d.name == name)


def test_values_expected_values_and_their_direction():
    """Changes +1, 0, -1 of the value; +.5, +.1, -.3 of the expected value: mean |.| .3, mean .1."""
    before = [scored(2.0, 2.0), scored(3.0, 3.0), scored(4.0, 4.0)]
    after = [scored(3.0, 2.5), scored(3.0, 3.1), scored(3.0, 3.7)]
    found = drift_of("empathy", before, after)
    assert (found.units, found.same, found.value) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (found.expected, found.bias) == (pytest.approx(0.3), pytest.approx(0.1))


def test_a_change_of_status_is_a_change_and_enters_no_mean():
    na = NotApplicable(reading=Reading(0.9, 2.0, 0.9, 0.9))
    found = drift_of("advice_safety", [na, na, scored(1.0, 1.0)], [na, scored(5.0, 2.0), Unscored("off_contract")])
    assert found.same == pytest.approx(1 / 3)
    assert found.value is None
    assert found.expected == pytest.approx(0.0)


def test_a_metric_with_nothing_to_compare_has_no_figures():
    found = drift_of("empathy", [], [])
    assert (found.units, found.same, found.value, found.expected, found.bias) == (0, None, None, None, None)


def test_a_metric_that_one_side_alone_has_could_not_be_compared_and_one_that_neither_has_need_not_be():
    """The expected value is on both sides where a reading is, N/A or not."""
    na, bare = NotApplicable(reading=Reading(0.9, 2.0, 0.9, 0.9)), NotApplicable()
    neither = drift_of("advice_safety", [bare, bare], [bare, bare])
    assert (neither.scored, neither.read, neither.value, neither.expected) == (False, False, None, None)
    lost = drift_of("advice_safety", [scored(4.0, 3.9), na], [Unscored("off_contract"), na])
    assert (lost.scored, lost.read, lost.value, lost.expected) == (True, True, None, 0.0)
    gone = drift_of("advice_safety", [scored(4.0, 3.9), bare], [Unscored("off_contract"), bare])
    assert (gone.read, gone.expected) == (True, None)


def test_flags_lost_and_gained_are_told_apart():
    before = [verdict("a", n, crisis=c) for n, c in enumerate((True, True, False, False), 1)]
    after = [verdict("a", n, crisis=c) for n, c in enumerate((True, None, True, False), 1)]
    (found,) = flag_drifts(RUBRIC, before, after)
    assert (found.same, found.lost, found.gained) == (0.5, 0.25, 0.25)


def test_half_of_few_set_flags_lost_is_half_however_many_units_there_are():
    before = [verdict("a", n, crisis=n <= 2) for n in range(1, 101)]
    after = [verdict("a", n, crisis=n == 1) for n in range(1, 101)]
    (found,) = flag_drifts(RUBRIC, before, after)
    assert (found.lost, found.lost_of_set) == (0.01, 0.5)


def test_where_no_flag_is_set_none_can_be_lost_of_them():
    (found,) = flag_drifts(RUBRIC, [verdict("a", 1)], [verdict("a", 1, crisis=True)])
    assert (found.lost, found.lost_of_set) == (0.0, None)


def test_legal_mass_is_of_what_was_read():
    said = [verdict("a", 1, {"empathy": scored(2.0, 2.0, mass=0.5), "advice_safety": Unscored("off_contract")})]
    found = legal_mass(said)
    assert found.mean == 0.5
    assert found.off_contract == pytest.approx(1 / 7)  # six metrics and a flag
