"""`aipsy-judge score`: where the text of a conversation goes, and where not."""

import os
from pathlib import Path

from given_answers import RUBRIC

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, drawn_answer
from aipsy_judge.runs import load_run
from aipsy_judge.verdict import Unscored

SECRETS = ("I failed my exam", "simply here", "Drawn from a hash", "secret detail")


def telling(conversation, turn):
    drawn = drawn_answer(RUBRIC, str(turn.number))
    return FakeAnswer({**drawn.scores, "empathy": Unscored("unparseable", "secret detail")}, drawn.flags)


class RemoteFake(FakeJudge):
    is_remote = True


def test_redact_leaves_no_text_in_any_output(run, opened, talk, tmp_path):
    opened.judge = FakeJudge(answer=telling)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    words = ["score", talk, "--rationale", "always", "--out", outputs / "run", "--json", outputs / "r.json"]
    ran = run(*words, "--html", outputs / "r.html", "--redact")
    files = [Path(folder) / name for folder, _, names in os.walk(outputs) for name in names]
    assert {f.name for f in files} == {"run.json", "verdicts.jsonl", "r.json", "r.html"}
    for text in (ran.out, ran.err, *(f.read_text() for f in files)):
        assert not [s for s in SECRETS if s in text]
    assert load_run(outputs / "run").redacted


def test_without_redact_the_same_outputs_hold_the_text(run, opened, talk, tmp_path):
    opened.judge = FakeJudge(answer=telling)
    words = ["score", talk, "--rationale", "always", "--out", tmp_path / "run", "--json", tmp_path / "r.json"]
    ran = run(*words, "--html", tmp_path / "r.html")
    assert "secret detail" in ran.out
    assert "secret detail" in (tmp_path / "r.json").read_text()
    assert "simply here" in (tmp_path / "r.html").read_text()
    assert "simply here" in (tmp_path / "run" / "conversations.jsonl").read_text()


def test_a_remote_judge_is_announced_with_its_host_before_anything_is_judged(run, opened, talk):
    opened.judge = RemoteFake()
    ran = run("score", talk, "--judge", "openai:m@https://api.example.org:8443/v1?token=abc")
    assert ran.err.startswith("text leaves this machine: it is sent to api.example.org:8443\n")
    assert "abc" not in ran.err


def test_a_local_judge_is_not_announced_as_remote(run, opened, talk):
    assert "leaves" not in run("score", talk).err


def test_scoring_without_a_network_tries_nothing(run, opened, talk, tmp_path):
    # The fixture would fail the test at the first attempt; the run must succeed all the same.
    assert run("score", talk, "--html", tmp_path / "r.html", "--json", tmp_path / "r.json").code == 0
