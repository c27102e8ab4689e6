"""A run killed in the middle (SIGKILL, nothing can be caught) is gone on with: nothing lost, nothing judged twice."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.runs import load_run
from aipsy_judge.runs_info import describe_run
from aipsy_judge.runs_store import open_run
from aipsy_judge.scoring import score_into

CONVERSATIONS = [
    Conversation(f"c{n}", (Message("user", f"hello {n}"), Message("assistant", f"hi {n}"))) for n in range(10)
]

# Judges slowly, and leaves a line in a second file for every conversation that it was asked to judge.
PROGRAM = """
import sys, time
from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.runs_info import describe_run
from aipsy_judge.runs_store import open_run
from aipsy_judge.scoring import score_into

class Slow(FakeJudge):
    def score(self, conversation, **kwargs):
        with open(sys.argv[2], "a") as asked:
            asked.write(conversation.id + "\\n")
        time.sleep(0.02)
        return super().score(conversation, **kwargs)

judge = Slow()
with open_run(sys.argv[1], describe_run(judge, rationale="flagged"), resume=True) as run:
    for n in range(10):
        messages = (Message("user", f"hello {n}"), Message("assistant", f"hi {n}"))
        score_into(run, judge, Conversation(f"c{n}", messages))
"""


def start(tmp_path):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / "run"), str(tmp_path / "asked")])


def wait_for_lines(path, count, process):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    raise AssertionError("it never came so far")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_in_the_middle_and_resumed_nothing_is_lost_or_judged_twice(tmp_path):
    file = tmp_path / "run" / "verdicts.jsonl"
    process = start(tmp_path)
    wait_for_lines(file, 7, process)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = file.read_bytes()
    kept = kept[: kept.rindex(b"\n") + 1]
    done = [json.loads(line)["conversation_id"] for line in kept.splitlines()]
    assert 7 <= len(done) < 10
    # A line cut short, as a kill in the middle of a write leaves it.
    file.write_bytes(kept + kept.splitlines()[0][:80])
    (tmp_path / "asked").write_text("")

    process = start(tmp_path)
    assert process.wait() == 0
    assert file.read_bytes().startswith(kept)
    asked = (tmp_path / "asked").read_text().split()
    assert asked == [c.id for c in CONVERSATIONS if c.id not in done]
    run = load_run(tmp_path / "run")
    assert list(run.conversations) == CONVERSATIONS
    assert list(run.verdicts) == straight_through()


def straight_through():
    judge = FakeJudge()
    with open_run(None, describe_run(judge, rationale="flagged")) as run:
        return [v for c in CONVERSATIONS for v in score_into(run, judge, c)]
