"""A stored verdict read again without its model."""

import pytest
from served_samples import RUBRIC, answer, chat, judge, one

from aipsy_judge.backends.fake import FakeJudge, answer_text, drawn_answer
from aipsy_judge.errors import BackendError
from aipsy_judge.reread import reread
from aipsy_judge.verdict import Flag, Scored, Unscored, verdict_from_dict, verdict_to_dict


@pytest.mark.parametrize("reply", [answer(), answer(empathy=9), "prose", answer(crisis_severity="direct")])
def test_a_stored_reply_reads_the_same_again(reply):
    verdict = one(reply)
    again = reread(verdict, RUBRIC)
    assert (again.scores, again.flags, again.raw) == (verdict.scores, verdict.flags, verdict.raw)


def test_reading_again_mends_what_was_read_wrongly():
    verdict = one(answer(empathy=2))
    wrong = verdict_from_dict({**verdict_to_dict(verdict)})
    object.__setattr__(wrong, "scores", {**wrong.scores, "empathy": Scored(5.0)})
    assert reread(wrong, RUBRIC).scores["empathy"] == Scored(2.0)


def test_reading_again_keeps_what_the_text_does_not_decide():
    verdict = one(answer())
    floor = Unscored("off_contract", "too little legal mass")
    object.__setattr__(verdict, "scores", {**verdict.scores, "empathy": floor})
    assert reread(verdict, RUBRIC).scores["empathy"] == floor
    failed = judge(BackendError("down")).score(chat())[0]
    assert reread(failed, RUBRIC) == failed


def test_probabilities_stay_with_a_value_that_reads_the_same():
    drawn = drawn_answer(RUBRIC, "1")
    (verdict,) = FakeJudge(answer=lambda conversation, turn: drawn).score(chat())
    object.__setattr__(verdict, "raw", answer_text(RUBRIC, drawn))
    assert reread(verdict, RUBRIC).scores == drawn.scores
    assert reread(verdict, RUBRIC).flags == drawn.flags


def test_an_echo_of_the_prompt_stays_unscored_though_the_prompt_is_not_at_hand():
    verdict = one(answer())
    echo = Unscored("echoed_prompt")
    object.__setattr__(verdict, "scores", dict.fromkeys(verdict.scores, echo))
    object.__setattr__(verdict, "flags", {"crisis_detected": Flag(None, unscored=echo)})
    again = reread(verdict, RUBRIC)
    assert (again.scores, again.flags) == (verdict.scores, verdict.flags)
