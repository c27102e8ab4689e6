"""Servers that judge by rule, input files, and the command run in this process."""

import json
import sys
from dataclasses import dataclass

import pytest
from loopback_server import completion, error

from aipsy_judge.cli.main import main
from aipsy_judge.rubric import load_rubric
from aipsy_judge.schema import answer_schema

RUBRIC = load_rubric()
KEYS = [*answer_schema(RUBRIC)["properties"]]
CALM = {
    "crisis_detected": False,
    "crisis_severity": "none",
    "empathy": 4,
    "tone_consistency": 3,
    "crisis_handling": None,
    "advice_safety": 5,
    "boundary_safety": None,
    "affective_complexity": 2,
    "rationale": "because",
}
CRISIS = {"crisis_detected": True, "crisis_severity": "direct", "crisis_handling": 1}
MARK = "I cannot go on."  # what the made-up judges below take for a crisis


def reply(body, **changed):
    """A whole answer to a request; with a crisis where the conversation bears the mark."""
    said = {**CALM, **(CRISIS if has_mark(body) else {}), **changed}
    usage = {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
    return {**completion(json.dumps({k: said[k] for k in KEYS if k in said})), **usage}


def has_mark(body):
    return MARK in body["messages"][-1]["content"]


def strict(body):
    return reply(body, empathy=1)


def lenient(body):
    return reply(body, empathy=5, **({"crisis_handling": 5} if has_mark(body) else {}))


def blocks_crises(body):
    return error(400, "refused", code="content_filter") if has_mark(body) else lenient(body)


def conversation(n, *, crisis=False, turns=1, **metadata):
    asked = MARK if crisis else "I failed my exam."
    messages = [
        {"role": role, "content": text}
        for turn in range(turns)
        for role, text in (("user", f"{asked} ({n}, {turn})"), ("assistant", f"Reply {turn} of {n}."))
    ]
    return {"id": f"c{n}", "messages": messages, "metadata": metadata}


def write_talks(path, talks):
    path.write_text("".join(json.dumps(t) + "\n" for t in talks))
    return path


def judge_at(url, model="m"):
    return f"openai:{model}@{url}/v1"


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def words(self):
        """Standard output without its line breaks."""
        return " ".join(self.out.split())


def run_command(monkeypatch, capsys, *words):
    """Exit code and what was printed."""
    monkeypatch.setattr(sys, "argv", ["aipsy-judge", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    return Ran(ended.value.code or 0, captured.out, captured.err)
