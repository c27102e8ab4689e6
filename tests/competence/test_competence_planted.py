"""Faults planted in a drawn panel are found, each within its interval; what was not planted is not."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from drawn_panels import ADVICE_OR_BOUNDARY, CRISIS, FAILURES, Drawn, draw_planted, table

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.competence import CompetenceMap, competence_map
from aipsy_judge.composite import composite
from aipsy_judge.ratings import make_yardstick
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import NotApplicable, Scored

RUBRIC = load_rubric()


def draw_map(drawn: Drawn, *, resamples: int = 200, by: str = "conversation", **options: object) -> CompetenceMap:
    """The map, without the agreement of the judges with each other, which takes the longest and is not asked for."""
    ratings = table(drawn, **options)  # type: ignore[arg-type]
    bootstrap = Bootstrap(resamples=resamples)
    nothing: Any = {"panels": lambda *_, **__: (), "between_raters": lambda *_, **__: ()}
    with patch.multiple("aipsy_judge.competence.mapping", **nothing):
        return competence_map(ratings, make_yardstick(ratings, RUBRIC), by=by, bootstrap=bootstrap)  # type: ignore[arg-type]


@cache
def planted() -> CompetenceMap:
    return draw_map(draw_planted(4, seed=3))


@cache
def hard() -> CompetenceMap:
    """Failures in clusters, the lenient judge refused on half of the crises, an expert on half of the talks."""
    return draw_map(draw_planted(6, seed=5, clustered=True), blocked=0.5, every=2)


both = pytest.mark.parametrize("drawn", [planted, hard])


def about(items: list, judge: str, **fields: object) -> object:
    return next(i for i in items if i.judge == judge and all(getattr(i, k) == v for k, v in fields.items()))


def test_the_drawn_panel_is_the_one_that_is_claimed() -> None:
    drawn = draw_planted(50, seed=1)
    low = drawn.truth < np.array([2, 2, 2.5, 3, 2, 2])
    failing, axis = low.any(axis=1), low[:, [3, 4]].any(axis=1)
    assert failing.mean() == pytest.approx(FAILURES, abs=0.005)
    assert axis[failing].mean() == pytest.approx(ADVICE_OR_BOUNDARY, abs=0.01)
    shift = drawn.judged[:, 2, CRISIS] - drawn.truth[:, CRISIS]
    assert np.nanmean(shift) == pytest.approx(1.89, abs=0.01)
    assert np.nanmin(drawn.judged) >= 0
    assert np.nanmax(drawn.judged) <= 5


@pytest.mark.slow
@both
def test_the_leniency_on_crises_is_found_within_its_interval(drawn: object) -> None:
    pair = next(p for p in drawn().against if (p.rater, p.metric) == ("lenient", "crisis_handling"))
    assert pair["bias"].interval.holds(1.89)
    assert any(f.kind == "bias" and f.judge == "lenient" and f.about == "crisis_handling" for f in drawn().findings)


@pytest.mark.slow
@both
def test_the_strictness_on_empathy_is_found_within_its_interval(drawn: object) -> None:
    pair = next(p for p in drawn().against if (p.rater, p.metric) == ("strict", "empathy"))
    assert pair["bias"].interval.holds(-0.48)  # half a point, and 3 in 100 failures lifted by two


@pytest.mark.slow
@both
def test_the_blind_judge_is_found_and_only_that_one(drawn: object) -> None:
    loose = about(drawn().blindness, "lenient", metric=None).loose
    assert loose.interval.holds(0.10)
    assert [f.judge for f in drawn().findings if f.kind == "blindness"] == ["lenient"]


@pytest.mark.slow
@both
def test_the_premium_on_own_replies_is_found_within_its_interval(drawn: object) -> None:
    own = about(drawn().self_preference, "lenient")
    assert own.premium.interval.holds(0.99)
    assert own.cleared.interval.holds(0.99)
    assert [f.judge for f in drawn().findings if f.kind == "self_preference"] == ["lenient"]


@pytest.mark.slow
@both
def test_a_judge_without_preference_is_not_charged_with_another_judges(drawn: object) -> None:
    """The plain difference in differences gives the honest judge a quarter of the lenient one's premium."""
    own = about(drawn().self_preference, "honest")
    assert own.premium.low > 0.1
    assert own.cleared.interval.holds(0.0)


@pytest.mark.slow
@both
def test_the_family_that_is_favoured_is_found_and_no_other(drawn: object) -> None:
    found = [(f.judge, f.about) for f in drawn().findings if f.kind == "family"]
    assert found == [("lenient", "lenient")]


def test_scores_missing_on_crises_are_found_within_their_interval() -> None:
    silent = about(hard().missing, "lenient", by="crisis")
    assert silent.inside.interval.holds(0.5)
    assert silent.outside.value == 0
    assert ("silence", "lenient", "crisis") in [(f.kind, f.judge, f.about) for f in hard().findings]
    assert not [f for f in planted().findings if f.kind == "silence"]


@pytest.mark.slow
def test_the_mean_hides_failures_that_two_judges_see() -> None:
    """Every failure is known here: those that a judge saw and the mean passes are counted by hand."""
    drawn = draw_planted(1, seed=4)
    found = draw_map(drawn, resamples=0).laundered
    seen = hidden = 0
    for i in range(len(drawn.turn)):
        judged = drawn.judged[i]
        fails = [bool(composite(RUBRIC, scores(row)).failure) for row in judged]
        mean = composite(RUBRIC, scores(judged.mean(axis=0)))  # here N/A is the same for all judges
        seen += any(fails)
        hidden += any(fails) and not mean.failure
    assert (found.share.n, found.total) == (seen, hidden)
    assert found.share.value == pytest.approx(hidden / seen)


def scores(row: np.ndarray) -> dict[str, Scored | NotApplicable]:
    return {
        m: NotApplicable() if np.isnan(v) else Scored(float(v)) for m, v in zip(RUBRIC.metric_names, row, strict=True)
    }


def test_findings_are_grouped_by_kind_the_surest_first() -> None:
    kinds = [f.kind for f in planted().findings]
    assert len(set(kinds)) == 1 + sum(a != b for a, b in pairwise(kinds))
    biases = [f.p for f in planted().findings if f.kind == "bias"]
    assert biases == sorted(biases)


@pytest.mark.slow
def test_planted_faults_are_covered_as_often_as_the_intervals_say() -> None:
    """24 panels, three faults each: 95 % of 72, less three standard errors (2.6 %)."""
    held = 0
    for seed in range(24):
        found = draw_map(draw_planted(2, seed=100 + seed, clustered=bool(seed % 2)))
        crisis = next(p for p in found.against if (p.rater, p.metric) == ("lenient", "crisis_handling"))
        held += crisis["bias"].interval.holds(1.89)
        held += about(found.blindness, "lenient", metric=None).loose.interval.holds(0.10)
        held += about(found.self_preference, "lenient").cleared.interval.holds(0.99)
    assert held / 72 >= 0.87
