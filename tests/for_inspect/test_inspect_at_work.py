"""The judges of this process end with it, and hold up nobody."""

from __future__ import annotations

import threading
import time

import pytest

from aipsy_judge.backends.fake import FakeJudge, drawn_answer
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.for_inspect import at_work
from aipsy_judge.rubric import load_rubric
from aipsy_judge.server.assembly import make_served
from aipsy_judge.server.serving import ServeOptions
from aipsy_judge.server.working import ScoreTask

pytestmark = pytest.mark.slow


def test_a_judge_that_is_not_in_this_process_is_not_waited_for_at_the_end(monkeypatch):
    begun, let_go = threading.Event(), threading.Event()

    def answer(conversation, turn):
        begun.set()
        assert let_go.wait(10)
        return drawn_answer(load_rubric(), "x")

    served = make_served(FakeJudge(answer=answer), ServeOptions())
    served.scheduler.start()
    monkeypatch.setitem(at_work._open, at_work.Choice(judge="fake"), served)
    talk = Conversation("c", (Message("user", "a"), Message("assistant", "b")))
    job = served.scheduler.submit(ScoreTask(talk, "never"))
    assert begun.wait(10)
    closed_at = time.monotonic()
    at_work.close_all()
    took = time.monotonic() - closed_at
    let_go.set()
    assert job.done.exception(timeout=10) is not None
    assert took < 5
