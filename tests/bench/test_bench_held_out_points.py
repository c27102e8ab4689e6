"""Operating points by hand on small tables, and that the instrument puts the same for review."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from held_out_setup import RUBRIC, held

from aipsy_judge import open_judge
from aipsy_judge.manifest import OperatingPoint
from aipsy_judge.reservations import Point, unsure
from aipsy_judge.verdict import Flag, NotApplicable, Reading, Scored, Unscored, Verdict
from bench.held_out_points import (
    LEAST_KEPT,
    Seen,
    operating_points,
    point_lines,
    proposals,
    propose,
    propose_set_from,
    seen_of_flag,
    seen_of_metric,
)

NAN = float("nan")
EMPATHY = RUBRIC.metric("empathy")


def seen(says: str, truth: str, confidence: Any = None, p_fail: Any = None) -> Seen:
    n = len(says)
    return Seen(
        np.array([c == "x" for c in says]),
        np.array([c == "x" for c in truth]),
        np.full(n, np.nan) if confidence is None else np.array(confidence, dtype=float),
        np.full(n, np.nan) if p_fail is None else np.array(p_fail, dtype=float),
    )


def test_the_least_confidence_that_leaves_a_tenth_wrong_is_taken() -> None:
    # Wrong at .2, .3 and .4: above .4 all 7 are right; at .4 one of 8 (12 %) is wrong; so from .5 on.
    confidence = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]
    found = propose(seen("xxx.......", "..........", confidence))
    assert found.confidence == 0.5
    assert found.wrong_before == pytest.approx(0.3)
    assert found.wrong == 0
    assert found.kept == pytest.approx(0.7)
    assert found.attained


def test_where_a_tenth_cannot_be_had_the_best_that_keeps_half_is_taken_and_said() -> None:
    # Right at .1 to .4, wrong at .5 and .8 among the upper six: the share is least from .6 on (1 of 5).
    confidence = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    found = propose(seen("xxx.x..x..", "..........", confidence))
    assert found.confidence == 0.6
    assert found.wrong == pytest.approx(1 / 5)
    assert found.kept == LEAST_KEPT
    assert not found.attained


def test_a_flag_is_set_from_the_least_probability_with_three_of_four_right() -> None:
    # Two of five cases are said. From .4 on six are set, of which five are cases; from .3 on five of seven; from .2 on
    # five of eight.
    found = propose_set_from(
        seen("xx........", "xxxx..x...", p_fail=[0.9, 0.8, 0.5, 0.45, 0.4, 0.3, 0.42, 0.2, 0.1, 0])
    )
    assert found is not None
    assert found.least == 0.4
    assert found.recall == 1
    assert found.precision == pytest.approx(5 / 6)
    assert (found.recall_before, found.precision_before) == (pytest.approx(2 / 5), 1)


def test_a_flag_that_finds_as_many_by_its_most_probable_answer_is_left_as_it_is() -> None:
    assert propose_set_from(seen("xxx.", "xxx.", p_fail=[0.9, 0.8, 0.7, 0.1])) is None
    assert propose_set_from(seen("....", "....", p_fail=[0.9, 0.8, 0.7, 0.1])) is None
    assert propose_set_from(seen("x...", "xx..")) is None


def test_no_confidence_is_asked_for_where_few_are_wrong() -> None:
    found = propose(seen("x.........", "..........", np.linspace(0.1, 1, 10)))
    assert found.confidence is None
    assert found.attained


def test_the_greatest_p_fail_that_finds_nine_in_ten_is_taken() -> None:
    # Ten failures, eight said; the other two pass at .4 and .3: one more makes nine of ten.
    says, truth = "x" * 8 + "." * 22, "x" * 10 + "." * 20
    found = propose(seen(says, truth, p_fail=[0.9] * 8 + [0.4, 0.3] + [0.1] * 20))
    assert found.p_fail == 0.4
    assert found.found_before == pytest.approx(0.8)
    assert found.found == pytest.approx(0.9)
    assert found.kept == pytest.approx(29 / 30)


def test_p_fail_stops_where_more_than_half_would_be_for_review() -> None:
    # The one failure that is missed has the least probability of all.
    found = propose(seen("x.....", "xx....", p_fail=[0.9, 0.1, 0.5, 0.5, 0.5, 0.5]))
    assert found.p_fail is None
    assert found.found == pytest.approx(0.5)
    assert not found.attained


def test_without_verdicts_there_is_no_point() -> None:
    found = propose(seen("", ""))
    assert found.n == 0
    assert operating_points({"empathy": found}) == {}


def reading(p_low: float, confidence: float) -> Reading:
    return Reading(0.0, 3.0, confidence, 0.9, {"1": p_low, "4": 1 - p_low})


def test_na_passes_and_unscored_says_nothing() -> None:
    items = [held(f"i{n}", {"empathy": v}) for n, v in enumerate((1.0, 4.0, None, 1.0))]
    scores = [Scored(1.0, reading(0.8, 0.8)), NotApplicable(), Scored(4.0, reading(0.3, 0.7)), Unscored("truncated")]
    verdicts = {
        i.id: Verdict(i.id, 1, "", {"empathy": s}, {"crisis_detected": Flag(True, probability=0.8)})
        for i, s in zip(items, scores, strict=True)
    }
    found = seen_of_metric(EMPATHY, verdicts, items)
    assert found.says.tolist() == [True, False, False]
    assert found.truth.tolist() == [True, False, False]
    assert found.p_fail == pytest.approx([0.8, NAN, 0.3], nan_ok=True)
    flag = seen_of_flag("crisis_detected", verdicts, items)
    assert flag.says.all()
    assert not flag.truth.any()
    assert flag.confidence == pytest.approx([0.8] * 4)


def test_points_stand_in_the_form_that_a_manifest_takes() -> None:
    items = [held(f"i{n}", {"empathy": 4.0 if n < 8 else 1.0}) for n in range(10)]
    verdicts = {}
    for n, item in enumerate(items):
        scores: dict[str, Any] = dict.fromkeys(RUBRIC.metric_names, NotApplicable())
        scores["empathy"] = Scored(4.0, reading(0.4 if n >= 8 else 0.1, 0.9))
        verdicts[item.id] = Verdict(item.id, 1, "", scores, {"crisis_detected": Flag(False, probability=0.1)})
    found = proposals(RUBRIC, verdicts, items)
    assert operating_points(found)["empathy"] == OperatingPoint(p_fail=0.4)
    assert set(operating_points(found)) == {"empathy"}
    shown = list(point_lines(found))
    assert shown[-3:] == ["operating_points:", "  empathy:", "    p_fail: 0.4"]


def test_the_points_put_for_review_what_the_instrument_will() -> None:
    random = np.random.default_rng(3)
    items = [
        held(f"i{n}", dict(zip(RUBRIC.metric_names, random.uniform(0, 5, 6), strict=True)), crisis=bool(n % 3 == 0))
        for n in range(60)
    ]
    with open_judge("fake", contract="full") as judge:
        verdicts = {i.id: judge.score(i.conversation, rationale="never")[0] for i in items}
    found = proposals(RUBRIC, verdicts, items)
    points = {name: Point(p.confidence, p.p_fail) for name, p in operating_points(found).items()}
    assert len(points) >= 4
    reviewed = [unsure(RUBRIC, v.flags, v.scores, points) for v in verdicts.values()]
    for name in points:
        share = sum(name in names for names in reviewed) / len(reviewed)
        assert found[name].n == 60
        assert found[name].kept == pytest.approx(1 - share)
