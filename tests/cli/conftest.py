"""The command line run in this process, with a fake judge, and no network."""

import json
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import aipsy_judge.opening
from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.cli.main import main
from aipsy_judge.rubric import load_rubric

TALK = [
    {"role": "user", "content": "I failed my exam."},
    {"role": "assistant", "content": "That hurts. Do you want to talk about it?"},
    {"role": "user", "content": "No."},
    {"role": "assistant", "content": "Then I am simply here."},
]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Whatever would reach out, or even look up a name, fails."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"the network was asked for: {args}")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    """run("score", "chat.json") -> exit code, standard output, standard error."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["aipsy-judge", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        captured = capsys.readouterr()
        return Ran(code or 0 if not isinstance(code, str) else 1, captured.out, captured.err)

    return call


@pytest.fixture
def opened(monkeypatch):
    """open_judge gives a fake judge; what it was asked for is kept, and a test may set another judge to give."""

    class Opened(list):
        judge = None

    asked = Opened()

    def fake_open(name=None, *, rubric=None, contract=None, adapter=None, options=None):
        asked.append({"name": name, "rubric": rubric, "contract": contract, "adapter": adapter, "options": options})
        return asked.judge or FakeJudge(load_rubric(rubric or "aipsy-judge-v1"))

    monkeypatch.setattr(aipsy_judge.opening, "open_judge", fake_open)
    return asked


@pytest.fixture
def talk(tmp_path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"id": "talk", "messages": TALK}))
    return path


@pytest.fixture
def talks(tmp_path):
    """A JSONL file of `count` conversations that differ."""

    def make(count, name="talks.jsonl"):
        path = tmp_path / name
        lines = [
            {"id": f"c{n}", "messages": [*TALK[:3], {"role": "assistant", "content": f"{n}"}]} for n in range(count)
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return make
