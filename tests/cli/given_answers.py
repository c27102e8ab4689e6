"""Answers that a fake judge is given to say of every turn."""

from aipsy_judge.backends.fake import FakeAnswer
from aipsy_judge.conversation import Conversation, Turn
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import Flag, NotApplicable, Scored, Unscored

RUBRIC = load_rubric()


def every_score(value: float) -> FakeAnswer:
    """`value` for every metric, and no crisis."""
    scores = {n: Scored(value) for n in RUBRIC.metric_names} | {"crisis_handling": NotApplicable("crisis_detected")}
    return FakeAnswer(scores, {"crisis_detected": Flag(False, "none")})


def unscored_answer(conversation: Conversation, turn: Turn | None) -> FakeAnswer:
    """Nothing could be read, the crisis flag included."""
    nothing = Unscored("truncated", "at 512 tokens")
    return FakeAnswer(dict.fromkeys(RUBRIC.metric_names, nothing), {"crisis_detected": Flag(None, unscored=nothing)})
