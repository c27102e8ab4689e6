"""A panel that is stopped, in whatever way, goes on with what is missing and nothing else."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from loopback_server import error, serving
from panel_setup import conversation, judge_at, lenient, strict, write_talks

from aipsy_judge.ratings import read_ratings


@pytest.fixture
def talks(tmp_path):
    return write_talks(tmp_path / "talks.jsonl", [conversation(n, turns=2) for n in range(2)])


@pytest.fixture
def many(tmp_path):
    return write_talks(tmp_path / "many.jsonl", [conversation(n, turns=2) for n in range(20)])


def verdict_lines(folder):
    """By run folder: the whole lines of its verdicts."""
    files = {p.parent.name: p.read_bytes() for p in sorted(folder.glob("*/verdicts.jsonl"))}
    return {name: data[: data.rfind(b"\n") + 1] for name, data in files.items()}


def stopped_in_the_middle(talks, folder, judges, number, *, verdicts):
    """Exit code and stderr of a panel that gets signal `number` once so many verdicts are there."""
    named = [word for judge in judges for word in ("--judge", judge)]
    words = [sys.executable, "-m", "aipsy_judge", "panel", str(talks), *named, "--out", str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while sum(lines.count(b"\n") for lines in verdict_lines(folder).values()) < verdicts:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=30)
    return process.returncode, said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_killed_panel_goes_on_to_the_same_tables_as_one_that_was_not(run, many, tmp_path):
    def slow(body):
        time.sleep(0.005)
        return strict(body)

    with serving(slow) as (a, url_a), serving(slow) as (b, url_b):
        judges = [judge_at(url_a, "a"), judge_at(url_b, "b"), "fake"]
        named = [word for judge in judges for word in ("--judge", judge)]
        code, _ = stopped_in_the_middle(many, tmp_path / "killed", judges, signal.SIGKILL, verdicts=50)
        assert code == -signal.SIGKILL
        assert not (tmp_path / "killed" / "ratings.csv").exists()
        before = verdict_lines(tmp_path / "killed")
        asked = len(a.asked) + len(b.asked)
        assert 50 <= asked < 80  # the first judge is through, the second in the middle
        # Without --judge, all judges of the panel go on.
        assert run("panel", many, "--out", tmp_path / "killed", "--resume").code == 0
        had = sum(lines.count(b"\n") for name, lines in before.items() if name != "fake")
        assert len(a.asked) + len(b.asked) - asked == 80 - had
        assert run("panel", many, *named, "--out", tmp_path / "straight").code == 0
    after = verdict_lines(tmp_path / "killed")
    assert all(after[name].startswith(lines) for name, lines in before.items())
    assert after == verdict_lines(tmp_path / "straight")
    tables = [(tmp_path / name / "ratings.csv").read_bytes() for name in ("killed", "straight")]
    assert tables[0] == tables[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_control_c_ends_with_130_and_says_how_to_go_on(many, tmp_path):
    def slow(body):
        time.sleep(0.1)  # long enough that a machine at work elsewhere still stops it in the middle
        return strict(body)

    with serving(slow) as (_, url):
        code, said = stopped_in_the_middle(many, tmp_path / "p", [judge_at(url)], signal.SIGINT, verdicts=5)
    assert code == 130
    assert "--resume goes on" in said
    assert "Traceback" not in said


def test_items_that_failed_for_lack_of_a_server_are_asked_again(run, talks, tmp_path):
    down = [True]

    def falters(body):
        again = down[0] and "Reply 1 of 1." in body["messages"][-1]["content"]
        return error(501, "not now") if again else strict(body)

    with serving(falters) as (server, url):
        ran = run("panel", talks, "--judge", judge_at(url), "--out", tmp_path / "p")
        assert (ran.code, "lost to the server" in ran.words) == (0, True)
        assert read_ratings(tmp_path / "p" / "ratings.csv").matrix("empathy").unscored.sum() == 1
        down[0] = False
        asked = len(server.asked)
        assert run("panel", talks, "--out", tmp_path / "p", "--resume").code == 0
    assert len(server.asked) == asked + 1
    assert read_ratings(tmp_path / "p" / "ratings.csv").matrix("empathy").scored.all()


def test_a_judge_that_joins_later_reads_the_same_items_and_the_others_are_not_asked_again(run, talks, tmp_path):
    with serving(strict) as (first, url_a), serving(lenient) as (second, url_b):
        run("panel", talks, "--judge", judge_at(url_a), "--out", tmp_path / "p")
        asked = len(first.asked)
        assert run("panel", talks, "--judge", judge_at(url_b), "--out", tmp_path / "p", "--resume").code == 0
        assert (len(first.asked), len(second.asked)) == (asked, 4)
        names = (judge_at(url_a), judge_at(url_b))
    ratings = read_ratings(tmp_path / "p" / "ratings.csv")
    assert ratings.judges == names
    assert ratings.matrix("empathy").scored.all()


def test_a_panel_is_not_gone_on_with_unasked_or_with_other_files_or_another_rubric(run, talks, tmp_path):
    assert run("panel", talks, "--judge", "fake", "--out", tmp_path / "p").code == 0
    again = ("panel", talks, "--judge", "fake", "--out", tmp_path / "p")
    assert "holds a panel already" in run(*again).err
    other = write_talks(tmp_path / "other.jsonl", [conversation(99)])
    ran = run("panel", other, "--out", tmp_path / "p", "--resume")
    assert (ran.code, "begun with other files" in ran.err) == (2, True)
    ran = run(*again, "--resume", "--rubric", "empa-turns")
    assert (ran.code, "begun with the rubric" in ran.err) == (2, True)
    ran = run(*again, "--resume", "--rationale", "never")
    assert (ran.code, "rationale was 'flagged', is 'never'" in ran.err) == (2, True)
    # The same text under another name is the same input.
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(talks.read_bytes())
    assert run("panel", copy, "--out", tmp_path / "p", "--resume").code == 0


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "other"}', '{"format": "aipsy-judge-panel-1"}'])
def test_a_folder_with_a_damaged_description_is_refused(run, talks, tmp_path, content):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "panel.json").write_text(content)
    ran = run("panel", talks, "--judge", "fake", "--out", tmp_path / "p", "--resume")
    assert (ran.code, "not the description of a panel" in ran.err) == (2, True)


def test_a_folder_of_something_else_is_not_written_into(run, talks, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "thesis.txt").write_text("mine")
    ran = run("panel", talks, "--judge", "fake", "--out", tmp_path / "p")
    assert (ran.code, "not a panel" in ran.err) == (2, True)
    assert json.dumps(sorted(p.name for p in (tmp_path / "p").iterdir())) == '["thesis.txt"]'
