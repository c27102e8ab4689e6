"""The command itself, stopped from outside in the middle of a run."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from aipsy_judge.runs import load_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
SCORE = [sys.executable, "-m", "aipsy_judge", "score"]


def stopped_in_the_middle(path, folder, number):
    """Exit code and stderr of a run that gets signal `number` once some verdicts are there."""
    words = [*SCORE, str(path), "--judge", "fake", "--out", str(folder), "--json", str(folder) + ".json"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    file = folder / "verdicts.jsonl"
    while not file.exists() or file.read_bytes().count(b"\n") < 5:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=30)
    return process.returncode, said


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_result_as_one_that_was_not(talks, tmp_path, run):
    path = talks(120)
    code, _ = stopped_in_the_middle(path, tmp_path / "killed", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (tmp_path / "killed.json").exists()
    done = len(load_run(tmp_path / "killed").verdicts)
    assert 5 <= done < 240
    kept = (tmp_path / "killed" / "verdicts.jsonl").read_bytes()
    kept = kept[: kept.rindex(b"\n") + 1]
    assert run("score", path, "--judge", "fake", "--out", tmp_path / "killed", "--resume").code == 0
    assert run("score", path, "--judge", "fake", "--out", tmp_path / "straight").code == 0
    after = (tmp_path / "killed" / "verdicts.jsonl").read_bytes()
    assert after.startswith(kept)
    assert after == (tmp_path / "straight" / "verdicts.jsonl").read_bytes()


def test_a_reader_that_leaves_the_pipe_does_not_cost_the_result(talks, tmp_path):
    read, write = os.pipe()
    os.close(read)
    words = [*SCORE, str(talks(3)), "--judge", "fake", "--json", str(tmp_path / "r.json")]
    try:
        done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads((tmp_path / "r.json").read_text())["conversations"]) == 3


def test_control_c_ends_with_130_and_the_run_is_kept(talks, tmp_path):
    code, said = stopped_in_the_middle(talks(120), tmp_path / "run", signal.SIGINT)
    assert code == 130
    assert "interrupted after" in said
    assert "--resume goes on" in said
    assert "Traceback" not in said
    assert not (tmp_path / "run.json").exists()
    lines = (tmp_path / "run" / "verdicts.jsonl").read_text().splitlines()
    assert len(lines) >= 5
    assert all(json.loads(line)["key"] for line in lines)
