"""What leaves this machine, what is asked before it does, and who is asked at the same time as whom."""

import io
import sys
import threading

import pytest
from loopback_server import serving
from panel_setup import conversation, judge_at, strict, write_talks

import aipsy_judge.backends.server_name as server_name


@pytest.fixture
def talks(tmp_path):
    return write_talks(tmp_path / "talks.jsonl", [conversation(n) for n in range(3)])


@pytest.fixture
def elsewhere(monkeypatch):
    """Servers of these tests count as other machines."""
    monkeypatch.setattr(server_name, "is_loopback", lambda url: False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_sent_elsewhere_where_nobody_can_agree(run, talks, tmp_path, elsewhere):
    with serving(strict) as (server, url):
        ran = run("panel", talks, "--judge", judge_at(url), "--out", tmp_path / "p")
    host = url.removeprefix("http://")
    assert ran.code == 2
    assert f"text would be sent to {host}" in ran.err
    assert "--yes" in ran.err
    assert server.asked == []
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(("answer", "code", "asked"), [("y\n", 0, 3), ("n\n", 2, 0)])
def test_a_person_is_asked_with_the_estimate_and_the_host_in_view(
    run, talks, tmp_path, elsewhere, monkeypatch, answer, code, asked
):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    with serving(strict) as (server, url):
        ran = run("panel", talks, "--judge", judge_at(url), "--out", tmp_path / "p")
    assert ran.code == code
    assert len(server.asked) == asked
    assert f"text leaves this machine: for {judge_at(url)} it is sent to {url.removeprefix('http://')}" in ran.err
    assert "tokens in" in ran.out


def test_standard_input_cannot_answer_for_itself(run, tmp_path, elsewhere, monkeypatch):
    stdin = Terminal("y\n")
    stdin.buffer = io.BytesIO(b'[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]')
    monkeypatch.setattr(sys, "stdin", stdin)
    with serving(strict) as (server, url):
        assert run("panel", "-", "--judge", judge_at(url), "--out", tmp_path / "p").code == 2
    assert server.asked == []


def test_nothing_is_asked_of_a_person_where_all_is_answered(run, talks, tmp_path, elsewhere):
    with serving(strict) as (server, url):
        assert run("panel", talks, "--judge", judge_at(url), "--out", tmp_path / "p", "--yes").code == 0
        ran = run("panel", talks, "--out", tmp_path / "p", "--resume")
    assert ran.code == 0
    assert "leaves this machine" not in ran.err
    assert len(server.asked) == 3


def test_judges_on_this_machine_are_not_announced(run, talks, tmp_path):
    with serving(strict) as (_, url):
        ran = run("panel", talks, "--judge", judge_at(url), "--judge", "fake", "--out", tmp_path / "p")
    assert ran.code == 0
    assert "leaves this machine" not in ran.err


def test_judges_on_unlike_machines_work_side_by_side(run, talks, tmp_path, elsewhere):
    both = threading.Barrier(2, timeout=10)  # passed only when both judges are being asked at once

    def waits(body):
        both.wait()
        return strict(body)

    with serving(waits) as (_, a), serving(waits) as (_, b):
        judges = ["--judge", judge_at(a), "--judge", judge_at(b)]
        assert run("panel", talks, *judges, "--out", tmp_path / "p", "--yes").code == 0
    assert not both.broken


def test_judges_on_one_machine_take_turns(run, talks, tmp_path):
    order = []

    def notes(body):
        order.append(body["model"])
        return strict(body)

    with serving(notes) as (_, a), serving(notes) as (_, b):
        judges = ["--judge", judge_at(a, "first"), "--judge", judge_at(b, "second")]
        assert run("panel", talks, *judges, "--out", tmp_path / "p").code == 0
    assert order == ["first"] * 3 + ["second"] * 3


def test_standard_input_is_read_by_one_judge_after_another(run, talks, tmp_path, elsewhere, monkeypatch):
    order = []

    def notes(body):
        order.append(body["model"])
        return strict(body)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(talks.read_bytes())))
    with serving(notes) as (_, a), serving(notes) as (_, b):
        judges = ["--judge", judge_at(a, "first"), "--judge", judge_at(b, "second")]
        assert run("panel", "-", *judges, "--out", tmp_path / "p", "--yes").code == 0
    assert order == ["first"] * 3 + ["second"] * 3
