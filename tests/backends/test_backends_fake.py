"""The fakes that ship for users' tests: legal, varied, repeatable, and never taken for a judge."""

import json

import pytest

from aipsy_judge.backends.fake import REMARK, FakeAnswer, FakeBackend, FakeJudge, answer_text, drawn_answer
from aipsy_judge.backends.protocol import Reply, ReplyBackend
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import BackendError
from aipsy_judge.judge import Judge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import NotApplicable, Scored, Unscored, verdict_from_dict, verdict_to_dict

RUBRIC = load_rubric()


def chat(*texts: str) -> Conversation:
    roles = ("user", "assistant")
    return Conversation("c1", tuple(Message(roles[i % 2], t) for i, t in enumerate(texts)))


def test_the_fakes_fit_the_protocols():
    judge: Judge = FakeJudge()
    backend: ReplyBackend = FakeBackend()
    assert not judge.is_remote
    assert not backend.is_remote
    assert judge.remarks == (REMARK,)


def test_drawn_answers_are_legal_and_take_every_option():
    answers = [drawn_answer(RUBRIC, str(i)) for i in range(400)]
    for answer in answers:
        crisis = answer.flags["crisis_detected"]
        assert isinstance(answer.scores["crisis_handling"], Scored) is crisis.value
        assert (crisis.severity == "none") is (not crisis.value)
        assert isinstance(answer.scores["empathy"], Scored)
    values = {a.scores["empathy"].value for a in answers}
    assert values == {0, 1, 2, 3, 4, 5}
    assert {a.flags["crisis_detected"].severity for a in answers} == {"none", "indirect", "direct"}
    assert any(isinstance(a.scores["advice_safety"], NotApplicable) for a in answers)


def test_a_reading_sums_to_one_and_agrees_with_the_value():
    for i in range(50):
        score = drawn_answer(RUBRIC, str(i)).scores["empathy"]
        assert sum(score.reading.distribution.values()) == pytest.approx(1)
        assert max(score.reading.distribution, key=score.reading.distribution.get) == f"{score.value:g}"
        assert 0 <= score.reading.expected <= 5


def test_the_same_text_gets_the_same_verdict_and_other_text_another():
    judge = FakeJudge()
    one = judge.score(chat("hello", "hi there"))
    assert judge.score(chat("hello", "hi there")) == one
    others = [judge.score(chat("hello", f"hi {i}"))[0].scores for i in range(5)]
    assert any(scores != one[0].scores for scores in others)


def test_one_verdict_a_turn_reported_as_it_comes():
    seen = []
    verdicts = FakeJudge().score(chat("a", "b", "c", "d"), on_verdict=seen.append)
    assert seen == verdicts
    assert [v.turn for v in verdicts] == [1, 2]
    assert [verdict_from_dict(verdict_to_dict(v)) for v in verdicts] == verdicts


def test_an_empty_turn_is_unscored():
    (verdict,) = FakeJudge().score(chat("a", "  "))
    assert set(verdict.scores.values()) == {Unscored("empty_turn")}
    assert verdict.flags["crisis_detected"].value is None


def test_an_answer_can_be_given():
    low = FakeAnswer({m: Scored(1.0) for m in RUBRIC.metric_names}, {})
    (verdict,) = FakeJudge(answer=lambda conversation, turn: low).score(chat("a", "b"))
    assert {s.value for s in verdict.scores.values()} == {1.0}


@pytest.mark.parametrize(("when", "given"), [("always", True), ("never", False)])
def test_rationale_is_given_as_asked(when, given):
    (verdict,) = FakeJudge().score(chat("a", "b"), rationale=when)
    assert (verdict.rationale is not None) is given


def test_the_queue_comes_first_then_drawn_answers():
    backend = FakeBackend().enqueue("one", Reply(None, None), BackendError("down", retryable=True))
    ask = {"schema": None, "max_tokens": 9}
    messages = [{"role": "user", "content": "x"}]
    assert backend.ask(messages, **ask) == Reply("one", "stop")
    assert backend.ask(messages, **ask) == Reply(None, None)
    with pytest.raises(BackendError, match="down"):
        backend.ask(messages, **ask)
    drawn = backend.ask(messages, **ask)
    assert drawn == backend.ask(messages, **ask)
    assert list(json.loads(drawn.text))[:3] == ["crisis_detected", "crisis_severity", "empathy"]
    assert backend.asked[0] == (messages, None, 9)


def test_an_unscored_answer_cannot_be_written():
    answer = FakeAnswer({m: Unscored("missing") for m in RUBRIC.metric_names}, drawn_answer(RUBRIC, "1").flags)
    with pytest.raises(ValueError, match="unscored"):
        answer_text(RUBRIC, answer)
