"""A panel without faults shows findings no more often than is said."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_panels import null_panel

from aipsy_judge.agreement import Bootstrap, bias, make_pairs
from aipsy_judge.agreement.sums import p_value
from aipsy_judge.competence import competence_map
from aipsy_judge.competence.findings import _SIDES, _holm, _tests
from aipsy_judge.ratings import make_yardstick


@pytest.mark.slow
def test_false_alarms_come_at_the_stated_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 maps of raters who all measure alike: clustered, crowded at the top, gaps at random.

    Any finding in at most 5 of 100 maps: of 60 maps, 9 or more would show one in 1 of 300 such tests. And the single
    tests at 5 % alarm in about 5 % of their 3,600 uses.
    """
    monkeypatch.setattr("aipsy_judge.competence.mapping.panels", lambda *_, **__: ())
    monkeypatch.setattr("aipsy_judge.competence.mapping.between_raters", lambda *_, **__: ())
    alarmed, alarms = 0, []
    for seed in range(60):
        ratings = null_panel(seed)
        found = competence_map(ratings, make_yardstick(ratings), bootstrap=Bootstrap(resamples=200))
        alarmed += bool(found.findings)
        tests = _tests(
            found.against, found.spread, found.self_preference, found.blindness, found.families, found.missing
        )
        values = [p_value(estimate, side=_SIDES[kind]) for kind, _, _, estimate in tests]
        alarms += [p <= 0.05 for p in values if p is not None]
    assert alarmed < 9
    assert 0.035 <= np.mean(alarms) <= 0.065


@pytest.mark.slow
def test_one_faultless_map_holds_no_finding_and_says_how_much_was_tested() -> None:
    ratings = null_panel(7)
    found = competence_map(ratings, make_yardstick(ratings), bootstrap=Bootstrap(resamples=200))
    assert found.findings == ()
    assert found.tested > 50


def test_holm_multiplies_the_smallest_by_all_and_never_falls() -> None:
    from aipsy_judge.competence.findings import Finding

    estimate = bias(make_pairs([1, 2], [1, 2]))
    tested = [Finding("bias", "j", "m", estimate, p, p) for p in (0.04, 0.01, 0.03)]
    assert [f.adjusted for f in _holm(tested)] == pytest.approx([0.03, 0.06, 0.06])


def test_the_p_value_agrees_with_its_interval() -> None:
    random = np.random.default_rng(0)
    estimate = bias(make_pairs(random.normal(0.3, 1, 40), np.zeros(40)), bootstrap=Bootstrap(resamples=2000))
    assert p_value(estimate) == pytest.approx(2 * p_value(estimate, side="above"))
    assert p_value(estimate, side="above") + p_value(estimate, side="below") == pytest.approx(1)
    assert (p_value(estimate) < 0.05) == (not estimate.interval.holds(0))


def test_a_shift_that_never_varies_is_tested_by_its_sign_in_every_group() -> None:
    always = bias(make_pairs(np.arange(10.0) + 1, np.arange(10.0)))
    assert p_value(always) == pytest.approx(2 * 0.5**10)
    assert p_value(bias(make_pairs(np.arange(10.0), np.arange(10.0)))) == 1
