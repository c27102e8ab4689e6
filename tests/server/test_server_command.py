"""`aipsy-judge serve` as a process of its own: what it says, and how it ends. The judge is the stand-in."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

pytestmark = pytest.mark.slow
TALK = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_says_who_is_served_answers_and_ends_cleanly_when_told_to(tmp_path, how):
    log = tmp_path / "log"
    words = [sys.executable, "-m", "aipsy_judge", "serve", "--judge", "fake", "--port", "0", "--answer-as-own"]
    with log.open("w") as file:
        process = subprocess.Popen(words, stderr=file, stdout=file, cwd=tmp_path)
    try:
        end = time.monotonic() + 60
        while "http://" not in log.read_text() or not _up(log.read_text()):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        process.send_signal(how)
    assert process.wait(30) in (0, 130, -signal.SIGTERM)
    said = log.read_text()
    assert "judge fake, contract fake" in said
    assert "every answer says so" in said
    assert "Traceback" not in said
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


SLOW = """
import time
from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.cli.main import main

drawn = FakeJudge.score

def slow(self, *words, **more):
    time.sleep(8)
    return drawn(self, *words, **more)

FakeJudge.score = slow
main()
"""


def test_told_twice_it_ends_what_runs_without_a_word_of_the_librarys(tmp_path):
    log = tmp_path / "log"
    words = [sys.executable, "-c", SLOW, "serve", "--judge", "fake", "--port", "0", "--grace", "60"]
    with log.open("w") as file:
        process = subprocess.Popen(words, stderr=file, stdout=file, cwd=tmp_path)
    end = time.monotonic() + 60
    while "http://" not in log.read_text() or not _up(log.read_text()):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end
        time.sleep(0.05)
    with ThreadPoolExecutor(1) as asking:
        asked = asking.submit(httpx.post, f"{_url(log.read_text())}/v1/score", json=TALK, timeout=60, trust_env=False)
        while "jobs_running 1" not in _metrics(log.read_text()):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)  # the answer that runs has its grace
        assert process.poll() is None
        assert not asked.done()
        process.send_signal(signal.SIGINT)
        assert asked.result().status_code == 503
    assert process.wait(30) == 130
    said = log.read_text()
    assert said.rstrip().endswith("interrupted")
    assert "Traceback" not in said
    assert "Task" not in said


def _metrics(said: str) -> str:
    return httpx.get(f"{_url(said)}/metrics", trust_env=False).text


def _url(said: str) -> str:
    return next(word for word in said.split() if word.startswith("http://"))


def _up(said: str) -> bool:
    try:
        return httpx.get(f"{_url(said)}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
