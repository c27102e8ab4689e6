"""`aipsy-judge serve` as a process of its own: what it says, and how it ends. The judge is the stand-in."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import httpx
import pytest

pytestmark = pytest.mark.slow


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


def _up(said: str) -> bool:
    url = next(word for word in said.split() if word.startswith("http://"))
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
