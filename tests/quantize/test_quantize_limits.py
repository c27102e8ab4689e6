"""Limits: every one has a reason and a figure; what could not be had fails."""

from __future__ import annotations

from collections import Counter

import pytest

from aipsy_judge.errors import InputError
from quantize.closeness import Near
from quantize.drift import FlagDrift, Mass, MetricDrift
from quantize.limits import checks, load_limits
from quantize.tokens_seen import Seen, token_figures
from quantize.verify import UNITS, Findings

SEEN = Seen("t", (b"a", b"b"), frozenset({1}), ((0,),), {"<x>": (1,)}, ((0, 1),), 0, 0)
EMPATHY = MetricDrift("empathy", 40, 0.975, 0.025, 0.02, -0.01, True, True)


def findings(**changes) -> Findings:
    good = {
        "units": 40,
        "tokens": token_figures(SEEN, SEEN),
        "kinds": (Counter(clean=280), Counter(clean=280)),
        "unread": (),
        "near": Near(1000, 0.002, 0.02, 0.995),
        "effect": Near(1000, 2.0, 9.0, 0.3),
        "metrics": (EMPATHY,),
        "flags": (FlagDrift("crisis_detected", 40, 1.0, 0.0, 0.0, 0.0),),
        "mass": (Mass(0.99, 0.0), Mass(0.99, 0.0)),
        "library": "llama-cpp-python",
    }
    return Findings(**(good | changes))


def failed(**changes) -> set[str]:
    return {c.figure for c in checks(findings(**changes).figures(), load_limits()) if not c.passed}


def test_every_figure_has_a_limit_with_a_reason_and_every_limit_a_figure():
    limits = load_limits()
    assert set(limits.by_figure) == set(findings().figures())
    assert all(limit.why for limit in limits.by_figure.values())
    assert limits.by_figure["clean_parse"].least >= 0.99
    assert failed() == set()


def test_the_usual_number_of_units_is_enough_where_each_is_answered_once():
    limits = load_limits().by_figure
    assert max(limits["units"].least, limits["answers"].least) <= UNITS


def test_a_value_that_is_told_to_nobody_cannot_drift_and_what_was_read_of_it_can():
    both = (EMPATHY, MetricDrift("boundary_safety", 40, 0.95, 0.35, 0.2, -0.01, True, True))
    assert failed(metrics=both) == {"value_drift", "expected_drift"}
    assert failed(metrics=both, held_back=("boundary_safety",)) == {"expected_drift"}
    assert failed(metrics=both, held_back=("empathy",)) == {"value_drift", "expected_drift"}
    assert "value_drift" in failed(metrics=both, held_back=("boundary_safety", "empathy"))  # nothing was compared


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"kinds": (Counter(clean=280), Counter(clean=236, early_end=44))}, {"clean_parse", "early_end"}),  # 16 %
        ({"kinds": (Counter(), Counter())}, {"answers", "clean_parse", "early_end", "runaway"}),
        ({"kinds": (Counter(clean=280), Counter(clean=270, runaway=10))}, {"clean_parse", "runaway"}),
        ({"near": Near(0, None, None, None)}, {"kl_mean", "kl_high", "top1_agreement"}),
        ({"effect": Near(1000, 0.001, 0.01, 1.0)}, {"adapter_effect"}),
        ({"effect": Near(0, None, None, None)}, {"adapter_effect"}),
        ({"units": 8}, {"units"}),
        ({"flags": (FlagDrift("f", 40, 0.95, 0.05, 0.0, 0.1),)}, {"flags_lost"}),
        ({"flags": (FlagDrift("f", 40, 0.975, 0.025, 0.0, 0.5),)}, {"flags_lost_of_set"}),
        ({"flags": (FlagDrift("f", 40, 1.0, 0.0, 0.0, None),)}, {"flags_lost_of_set"}),
        (
            {"flags": (FlagDrift("f", 40, 1.0, 0.0, 0.0, 0.0), FlagDrift("g", 40, 1.0, 0.0, 0.0, None))},
            {"flags_lost_of_set"},
        ),
        ({"metrics": (MetricDrift("m", 40, 1.0, 0.0, 0.06, -0.06, True, True),)}, {"expected_bias"}),
        ({"metrics": (EMPATHY, MetricDrift("m", 40, 1.0, None, None, None, False, False))}, set()),  # N/A on both sides
        ({"metrics": (EMPATHY, MetricDrift("m", 40, 0.95, None, 0.0, 0.0, True, True))}, {"value_drift"}),
        (
            {"metrics": (EMPATHY, MetricDrift("m", 40, 0.95, 0.0, None, None, True, True))},
            {"expected_drift", "expected_bias"},
        ),
        ({"metrics": ()}, {"metric_same", "value_drift", "expected_drift", "expected_bias"}),
        ({"mass": (Mass(0.99, 0.0), Mass(0.9, 0.02))}, {"legal_mass_lost", "off_contract"}),
        ({"mass": (Mass(None, None), Mass(None, None))}, {"legal_mass_lost", "off_contract"}),
    ],
)
def test_each_fault_fails_by_its_own_figures_alone(changes, names):
    assert failed(**changes) == names


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"template_sha256": "other"}, "template_differs"),
        ({"template_sha256": None}, "template_differs"),
        ({"vocabulary": (b"a", b"c")}, "vocabulary_differs"),
        ({"vocabulary": (b"a",)}, "vocabulary_differs"),
        ({"end_tokens": frozenset()}, "end_tokens_differ"),
        ({"end_tokens": frozenset({0, 1})}, "end_tokens_differ"),
        ({"texts": ((0, 0),)}, "texts_tokenised_otherwise"),
        ({"not_round_trip": 1}, "texts_not_round_trip"),
        ({"markers": {"<x>": (0, 0)}}, "markers_split"),
        ({"markers": {}}, "markers_split"),
        ({"markers": {"<x>": (1,), "<y>": (0,)}}, "markers_split"),
        ({"prompts": ((0, 0),)}, "prompts_tokenised_otherwise"),
        ({"begins_wrong": 1}, "prompts_without_one_begin"),
    ],
)
def test_each_difference_of_tokens_fails_by_its_own_figure_alone(changes, name):
    from dataclasses import replace

    assert failed(tokens=token_figures(SEEN, replace(SEEN, **changes))) == {name}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "kl_mean: {most: 1}",
        "kl_mean: {why: x}",
        "kl_mean: {most: 1, least: 0, why: x}",
        "a: {most: .nan, why: x}",
        "x: {",
    ],
)
def test_what_is_no_limit_is_refused(tmp_path, text):
    path = tmp_path / "limits.yaml"
    path.write_text(text)
    with pytest.raises(InputError):
        load_limits(path)


def test_a_limit_on_what_is_not_measured_is_refused_not_thought_to_hold(tmp_path):
    path = tmp_path / "limits.yaml"
    path.write_text("clean_pars: {least: .99, why: x}")
    with pytest.raises(InputError, match="clean_pars"):
        checks(findings().figures(), load_limits(path))
