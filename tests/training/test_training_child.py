"""A program of the chain ends with the chain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from training.child import run_child

ROOT = Path(__file__).resolve().parents[2]
CHAIN = (
    "import sys; from training.child import run_child; sys.exit(run_child([sys.executable, '-c', sys.argv[1]]) != -15)"
)
WORKS = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_chain_that_is_ended_leaves_no_training_behind(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    work = WORKS.replace("sys.argv[1]", repr(str(note)))
    chain = subprocess.Popen([sys.executable, "-c", CHAIN, work], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    chain.send_signal(signal.SIGTERM)
    assert chain.wait(60) == 0, "the program was not ended by the signal that ended the chain"
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_its_exit_code_is_handed_back_and_signals_are_ours_again() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert run_child([sys.executable, "-c", "raise SystemExit(7)"]) == 7
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_signal_that_comes_while_the_program_is_started_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def ended_at_once(command: list[str]) -> subprocess.Popen[bytes]:
        os.kill(os.getpid(), signal.SIGTERM)
        return start(command)

    monkeypatch.setattr(subprocess, "Popen", ended_at_once)
    assert run_child([sys.executable, "-c", "import time; time.sleep(600)"]) == -signal.SIGTERM
