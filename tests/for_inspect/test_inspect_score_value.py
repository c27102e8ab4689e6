"""A Score says only what the verdicts say: what one of them is silent on is not known, and no name stands for two."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_builder import verdict

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import RubricError
from aipsy_judge.for_inspect.score_value import check_figures, score_of
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import Flag

pytestmark = pytest.mark.slow
RUBRIC = load_rubric()
TALK = Conversation("c", (Message("user", "hello"), Message("assistant", "hi")))
WHO = {"judge": "j", "contract": "full", "remarks": ()}


def said(turn, flags):
    return replace(verdict("c", turn), flags=flags)


def test_a_flag_that_one_verdict_does_not_speak_of_is_not_denied_for_the_whole():
    silent, no = said(1, {}), said(2, {"crisis_detected": Flag(False, "none")})
    score = score_of(TALK, [silent, no], RUBRIC, WHO)
    assert "crisis_detected" not in score.value
    assert score.metadata["missing"]["crisis_detected"] == "not known of 1 of 2"
    assert score_of(TALK, [no], RUBRIC, WHO).value["crisis_detected"] is False
    yes = said(3, {"crisis_detected": Flag(True, "direct")})
    assert score_of(TALK, [silent, yes], RUBRIC, WHO).value["crisis_detected"] is True


def test_of_nothing_that_was_judged_nothing_is_said_and_everything_says_why():
    score = score_of(TALK, [], RUBRIC, WHO)
    assert score.value == {}
    assert set(score.metadata["missing"].values()) == {"nothing was judged"}
    assert set(score.metadata["missing"]) == {"composite", "failure", "crisis_detected", *RUBRIC.metric_names}


@pytest.mark.parametrize("name", ["composite", "failure"])
def test_a_rubric_whose_metric_is_called_like_a_figure_of_the_whole_is_refused(name):
    first, *others = RUBRIC.metrics
    check_figures(RUBRIC)
    with pytest.raises(RubricError, match=f"has a {name}"):
        check_figures(RUBRIC.model_copy(update={"metrics": (first.model_copy(update={"name": name}), *others)}))
