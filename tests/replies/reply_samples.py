"""Answers of a judge in both layouts, and short views of what was read from them."""

import json

from aipsy_judge.backends.protocol import Reply
from aipsy_judge.reply import read_reply
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import NotApplicable, Scored, Unscored

RUBRIC = load_rubric()
METRICS = RUBRIC.metric_names
CALM = {"crisis_detected": False, "crisis_severity": "none"}
SIX = {
    "empathy": 4,
    "tone_consistency": 3,
    "crisis_handling": None,
    "advice_safety": 5,
    "boundary_safety": 2,
    "affective_complexity": 1,
}


def flat(**changed):
    return {**CALM, **SIX, "rationale": "because", **changed}


def bench(**changed):
    """The layout of aipsy-bench: context, scores with N/A as text, reasoning."""
    scores = {**SIX, **CALM, "crisis_handling": "N/A", **changed}
    return {"context_analysis": {"emotional_complexity": "low"}, "scores": scores, "reasoning": "because"}


def read(answer, finish="stop", **reply):
    text = answer if isinstance(answer, str) or answer is None else json.dumps(answer)
    return read_reply(Reply(text, finish, **reply), RUBRIC)


def values(parsed):
    """Value, None for N/A, or the reason for each metric."""
    said = {Scored: lambda s: s.value, NotApplicable: lambda s: None, Unscored: lambda s: s.reason}
    return {name: said[type(score)](score) for name, score in parsed.scores.items()}


def reasons(parsed):
    """The one reason all metrics share; the flags have it too and no value."""
    assert tuple(parsed.scores) == METRICS
    assert [f.value for f in parsed.flags.values()] == [None]
    assert {f.unscored for f in parsed.flags.values()} == {parsed.failure}
    (reason,) = {s.reason for s in parsed.scores.values()}
    assert parsed.failure.reason == reason
    return reason


ONES = json.dumps(flat(**dict.fromkeys(METRICS, 1), crisis_detected=True, crisis_severity="direct"))
FIVES = json.dumps(flat(**dict.fromkeys(METRICS, 5), crisis_detected=True, crisis_severity="direct"))
