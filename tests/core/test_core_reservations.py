"""What a judge's manifest holds back: metrics that were not validated, readings too unsure to stand alone."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from run_builder import run, verdict
from toy_model import ToyModel

from aipsy_judge.contract import FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import ManifestError
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.report.html import render_html
from aipsy_judge.report.text import open_console, print_conversation
from aipsy_judge.reservations import Point, unsure, withhold
from aipsy_judge.rubric import load_rubric
from aipsy_judge.summary import summarise
from aipsy_judge.units import units
from aipsy_judge.verdict import Flag, NotApplicable, Reading, Scored, Unscored
from aipsy_judge.weights import Weights

RUBRIC = load_rubric()
TALK = Conversation(
    "c", (Message("user", "hello"), Message("assistant", "hi"), Message("user", "so"), Message("assistant", "ok"))
)


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "toy.gguf"
    path.write_bytes(b"toy")
    return Weights(name="toy", model=path)


def judged(weights, **changes):
    with LocalJudge(ToyModel(), replace(weights, **changes), RUBRIC, FULL) as judge:
        return judge.score(TALK, rationale="never"), judge.settings


def reading(distribution, confidence=None):
    return Reading(None, None, confidence, 0.9, distribution)


def test_a_metric_that_was_not_validated_is_unscored_with_its_reading_kept(weights):
    plain, _ = judged(weights)
    held, settings = judged(weights, not_validated={"empathy": "ICC .1 in 200 turns"})
    for before, after in zip(plain, held, strict=True):
        score = after.scores["empathy"]
        assert isinstance(score, Unscored)
        assert (score.reason, score.detail) == ("not_validated", "ICC .1 in 200 turns")
        assert score.reading == before.scores["empathy"].reading
        assert score.reading.distribution
        assert {k: v for k, v in after.scores.items() if k != "empathy"} == {
            k: v for k, v in before.scores.items() if k != "empathy"
        }
    assert settings["not_validated"] == ["empathy"]


def test_a_flag_that_was_not_validated_takes_the_metric_that_hangs_on_it_along(weights):
    (first, *_), _ = judged(weights, not_validated={"crisis_detected": "recall .4"})
    flag, score = first.flags["crisis_detected"], first.scores["crisis_handling"]
    assert flag.value is None
    assert flag.unscored == Unscored("not_validated", "recall .4")
    assert flag.distribution
    assert isinstance(score, Unscored)
    assert score.reason == "not_validated"


def test_not_applicable_by_the_flag_stays_so_and_what_was_unread_keeps_its_reason():
    scores = dict.fromkeys(RUBRIC.metric_names, Scored(3.0)) | {
        "crisis_handling": NotApplicable(forced_by="crisis_detected"),
        "advice_safety": Unscored("off_contract"),
        "boundary_safety": NotApplicable(reading=reading({"N/A": 1.0})),
    }
    reasons = dict.fromkeys(("crisis_handling", "advice_safety", "boundary_safety"), "why")
    _, kept = withhold(RUBRIC, {"crisis_detected": Flag(False)}, scores, reasons)
    assert kept["crisis_handling"] == NotApplicable(forced_by="crisis_detected")
    assert kept["advice_safety"].reason == "off_contract"
    assert kept["boundary_safety"].reason == "not_validated"
    assert kept["empathy"] == Scored(3.0)


@pytest.mark.parametrize(
    ("score", "point", "found"),
    [
        (Scored(4.0, reading({"4": 0.6, "1": 0.4}, 0.6)), Point(confidence=0.61), True),
        (Scored(4.0, reading({"4": 0.6, "1": 0.4}, 0.6)), Point(confidence=0.6), False),
        (Scored(4.0, reading({"4": 0.6, "1": 0.4}, 0.6)), Point(p_fail=0.4), True),
        (Scored(4.0, reading({"4": 0.6, "1": 0.39, "2": 0.01}, 0.6)), Point(p_fail=0.4), False),
        (Scored(1.0, reading({"4": 0.3, "1": 0.7}, 0.7)), Point(p_fail=0.4), False),  # it fails: nothing is hidden
        (NotApplicable(reading=reading({"N/A": 0.55, "0": 0.45}, 0.55)), Point(p_fail=0.4), True),
        (NotApplicable(reading=reading({"N/A": 0.55, "0": 0.45}, 0.55)), Point(confidence=0.6), True),
        (Scored(4.0), Point(confidence=0.9, p_fail=0.1), False),  # a judge without probabilities is not unsure by them
        (Unscored("off_contract", None, reading({"4": 1.0}, 0.1)), Point(confidence=0.9), False),
    ],
)
def test_the_operating_point_of_a_metric(score, point, found):
    """Empathy fails below 2: of {4: .6, 1: .4} the probability of failure is .4."""
    scores = dict.fromkeys(RUBRIC.metric_names, Scored(3.0)) | {"empathy": score}
    assert unsure(RUBRIC, {"crisis_detected": Flag(False)}, scores, {"empathy": point}) == (
        ("empathy",) if found else ()
    )


@pytest.mark.parametrize(
    ("flag", "point", "found"),
    [
        (Flag(False, probability=0.3), Point(p_fail=0.3), True),
        (Flag(False, probability=0.29), Point(p_fail=0.3), False),
        (Flag(True, probability=0.55), Point(p_fail=0.3), False),
        (Flag(True, probability=0.55), Point(confidence=0.6), True),
        (Flag(False, probability=0.55), Point(confidence=0.6), True),
        (Flag(None, unscored=Unscored("off_contract")), Point(confidence=0.6), False),
        (Flag(False), Point(confidence=0.6), False),
    ],
)
def test_the_operating_point_of_a_flag(flag, point, found):
    scores = dict.fromkeys(RUBRIC.metric_names, Scored(3.0))
    names = unsure(RUBRIC, {"crisis_detected": flag}, scores, {"crisis_detected": point})
    assert names == (("crisis_detected",) if found else ())


@pytest.mark.parametrize(
    "changes", [{"not_validated": {"empaty": "x"}}, {"operating_points": {"warmth": Point(confidence=0.5)}}]
)
def test_a_name_that_the_rubric_lacks_is_refused_not_ignored(weights, changes):
    with pytest.raises(ManifestError, match=r"empaty|warmth"):
        LocalJudge(ToyModel(), replace(weights, **changes), RUBRIC, FULL)


def test_what_is_unsure_stands_in_the_verdict(weights):
    points = {"empathy": Point(confidence=1.0), "crisis_detected": Point(confidence=1.0)}
    (first, *_), settings = judged(weights, operating_points=points)
    assert first.notes[:2] == ("unsure:crisis_detected", "unsure:empathy")
    assert settings["operating_points"]["empathy"] == {"confidence": 1.0, "p_fail": None}


def test_what_is_unsure_is_for_review_in_text_and_page():
    sure, doubtful = run([verdict("a", 1)]), run([verdict("a", 1, notes=("unsure:empathy", "unsure:crisis_detected"))])
    for view, times in ((sure, 0), (doubtful, 1)):
        out = io.StringIO()
        print_conversation(open_console(out, width=100), RUBRIC, summarise(RUBRIC, units(view))[0])
        assert out.getvalue().count("unsure: for review: Empathy, ") == times
        assert "unsure:empathy" not in out.getvalue()
        page = render_html(view)
        assert page.count("unsure: for review") == 2 * times  # beside the metric, and beside the flag
        assert "unsure:empathy" not in page


def test_a_judge_that_is_not_blessed_says_so_in_every_verdict(weights):
    verdicts, settings = judged(weights, blessed=False)
    assert all("unblessed" in v.notes for v in verdicts)
    assert settings["unblessed"] is True
    silent = Conversation("c", (Message("user", "hello"), Message("assistant", " ")))
    with LocalJudge(ToyModel(), replace(weights, blessed=False), RUBRIC, FULL) as judge:
        assert judge.score(silent)[0].notes == ("unblessed",)


def test_a_judge_trained_on_the_newest_messages_is_shown_no_others(weights):
    long = Conversation("c", tuple(Message(r, f"{r} {i}") for i in range(6) for r in ("user", "assistant")))
    with LocalJudge(ToyModel(), replace(weights, window=2), RUBRIC, FULL) as judge:
        whole = judge.score(long, rationale="never")
        alone = judge.score(Conversation("c", long.messages[-2:]), rationale="never")
    assert whole[-1].scores == alone[0].scores
    assert whole[-1].notes[0] == "newest_messages:2"
    assert "newest_messages:2" not in whole[0].notes


def test_a_judge_takes_no_longer_prompts_than_its_manifest_says(weights):
    verdicts, _ = judged(weights, context_tokens=500)
    assert {s.reason for s in verdicts[0].scores.values()} == {"context_overflow"}
