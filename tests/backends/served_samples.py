"""A judge over a fake server, the answers it gets, and short views of its verdicts."""

import json

from aipsy_judge.backends.fake import FakeBackend
from aipsy_judge.contract import FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.rubric import load_rubric
from aipsy_judge.schema import answer_schema
from aipsy_judge.served_judge import ServedJudge
from aipsy_judge.verdict import Unscored

RUBRIC = load_rubric()
CALM = {"crisis_detected": False, "crisis_severity": "none", "crisis_handling": None}
SIX = {"empathy": 4, "tone_consistency": 3, "advice_safety": 5, "boundary_safety": None, "affective_complexity": 2}


def answer(**changed):
    keys = [*answer_schema(RUBRIC)["properties"]]
    said = {**CALM, **SIX, "rationale": "because", **changed}
    said["crisis_detected"] = {True: "yes", False: "no"}.get(said["crisis_detected"], said["crisis_detected"])
    return json.dumps({k: said[k] for k in keys})


def chat(turns=1, id="c1"):
    messages = [m for i in range(turns) for m in (Message("user", f"u{i}"), Message("assistant", f"a{i}"))]
    return Conversation(id, tuple(messages))


def judge(*replies, **settings):
    return ServedJudge(FakeBackend().enqueue(*replies), RUBRIC, FULL, **settings)


def one(*replies, rationale="always", **settings):
    (verdict,) = judge(*replies, **settings).score(chat(), rationale=rationale)
    return verdict


def reasons(verdict):
    return {s.reason for s in verdict.scores.values() if isinstance(s, Unscored)}
