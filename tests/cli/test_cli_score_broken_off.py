"""`aipsy-judge score`: a run that broke off keeps what there is, and goes on with --resume."""

import json

import pytest

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.errors import BackendError
from aipsy_judge.runs import load_run


class Breaking(FakeJudge):
    """Judges `good` conversations, then raises."""

    def __init__(self, good, error):
        super().__init__()
        self.good, self.error, self.asked = good, error, []

    def score(self, conversation, **kwargs):
        if len(self.asked) >= self.good:
            raise self.error
        self.asked.append(conversation.id)
        return super().score(conversation, **kwargs)


def test_a_judge_that_breaks_in_the_middle_keeps_what_there_is_and_writes_nothing_half(run, opened, talks, tmp_path):
    path = talks(3)
    opened.judge = Breaking(2, BackendError("the server is gone"))
    words = ["score", path, "--out", tmp_path / "run", "--json", tmp_path / "r.json"]
    ran = run(*words)
    assert ran.code == 3
    assert "the server is gone" in ran.err
    assert "4 of 6 verdicts; they are kept in" in ran.err
    assert not (tmp_path / "r.json").exists()
    opened.judge = Breaking(9, None)
    assert run(*words, "--resume").code == 0
    assert opened.judge.asked == ["c2"]
    assert len(json.loads((tmp_path / "r.json").read_text())["conversations"]) == 3


@pytest.mark.parametrize("out", [True, False])
def test_control_c_ends_with_130_and_says_what_is_kept_and_how_to_go_on(run, opened, talks, tmp_path, out):
    opened.judge = Breaking(1, KeyboardInterrupt())
    ran = run("score", talks(3), *(["--out", tmp_path / "run"] if out else []), "--json", tmp_path / "r.json")
    assert ran.code == 130
    assert ("--resume goes on" in ran.err) is True
    assert ("none is kept" in ran.err) is not out
    assert not (tmp_path / "r.json").exists()
    if out:
        assert len(load_run(tmp_path / "run").verdicts) == 2


def test_control_c_while_the_judge_is_opened_ends_with_130_too(run, opened, talk, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("aipsy_judge.opening.open_judge", interrupt)
    ran = run("score", talk)
    assert ran.code == 130
    assert "Traceback" not in ran.err


def test_a_used_folder_is_refused_without_resume_before_a_judge_is_opened(run, opened, talk, tmp_path):
    run("score", talk, "--out", tmp_path / "run")
    opened.clear()
    ran = run("score", talk, "--out", tmp_path / "run")
    assert ran.code == 2
    assert "--resume" in ran.err
    assert opened == []


def test_resume_without_a_folder_is_refused(run, opened, talk):
    assert run("score", talk, "--resume").code == 2
    assert opened == []


def test_other_text_under_the_same_ids_is_judged_afresh_on_resume(run, opened, talks, tmp_path):
    a, b = talks(3, "a.jsonl"), talks(3, "b.jsonl")
    b.write_text(b.read_text().replace("I failed my exam.", "I lost my job."))
    opened.judge = Breaking(99, None)
    run("score", a, "--out", tmp_path / "run")
    run("score", b, "--out", tmp_path / "run", "--resume")
    assert opened.judge.asked == ["c0", "c1", "c2"] * 2
    assert "I lost my job." in load_run(tmp_path / "run").conversations[0].messages[0].content
