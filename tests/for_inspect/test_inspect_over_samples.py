"""Figures of a run, worked by hand."""

from __future__ import annotations

import pytest
from inspect_ai.scorer import SampleScore, Score

from aipsy_judge.for_inspect.over_samples import coverage, means, rates

pytestmark = pytest.mark.slow


def sample(name, value, counts=None, turns=0):
    metadata = {"turns": [{}] * turns, "counts": counts or {}}
    return SampleScore(sample_id=name, score=Score(value=value, metadata=metadata))


def test_epochs_are_averaged_first_and_n_counts_samples():
    scores = [
        sample("a", {"empathy": 1.0}),
        sample("a", {"empathy": 3.0}),
        sample("a", {}),  # an epoch of which nothing is known takes no part
        sample("b", {"empathy": 5.0}),
    ]
    # a: (1 + 3) / 2 = 2; b: 5; mean 3.5; sd = |5 - 2| / sqrt 2 = 2.1213; / sqrt 2 = 1.5
    assert means()(scores) == {"empathy": 3.5, "empathy_n": 2, "empathy_stderr": pytest.approx(1.5)}


def test_one_sample_has_no_standard_error():
    assert means()([sample("a", {"composite": 2.5})]) == {"composite": 2.5, "composite_n": 1}


def test_rates_are_of_what_is_known():
    scores = [
        sample("a", {"failure": True, "empathy": 1.0}),
        sample("a", {"failure": False}),
        sample("b", {"failure": False}),
        sample("c", {}),
    ]
    assert rates()(scores) == {"failure_rate": 0.25, "failure_rate_n": 2}  # (1/2 + 0) / 2


def test_samples_without_a_name_are_samples_of_their_own():
    scores = [SampleScore(score=Score(value={"empathy": v})) for v in (1.0, 2.0)]
    assert means()(scores)["empathy_n"] == 2


def test_samples_of_names_that_are_written_alike_are_two():
    scores = [SampleScore(sample_id=name, score=Score(value={"empathy": 1.0})) for name in (1, "1", "#3")]
    scores.append(SampleScore(score=Score(value={"empathy": 5.0})))
    assert means()(scores)["empathy_n"] == 4
    assert means()(scores)["empathy"] == 2.0


def test_coverage_adds_up_turns_by_state():
    counts = {"empathy": {"scored": 2, "not_applicable": 0, "unscored": 1}}
    scores = [sample("a", {}, counts, turns=3), sample("b", {}, counts, turns=3)]
    assert coverage()(scores) == {
        "judged": 6,
        "empathy_scored": 4,
        "empathy_not_applicable": 0,
        "empathy_unscored": 2,
    }


def test_of_no_samples_there_are_no_figures():
    assert means()([]) == {}
    assert rates()([]) == {}
    assert coverage()([]) == {"judged": 0}
