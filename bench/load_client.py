"""One client of bench.load, light enough that thirty-two start in a moment: it imports no judge."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import httpx

TALKS = 25
_USERS = ("I failed my exam.", "I cannot sleep.", "My cat is ill.", "They laughed at me.", "I am alone a lot.")
_REPLIES = ("That hurts.", "Cheer up!", "What would help?", "It is only a phase.", "Who could be with you?")


@dataclass
class Told:
    """What a client reports of one call: the number of the talk and its verdicts, or that it failed."""

    answers: list[tuple[int, Any]] = field(default_factory=list)
    seconds: float = 0.0
    failed: int = 0
    retries: int = 0


def talk(number: int) -> dict[str, Any]:
    """One of 25 short talks, as /v1/score takes it."""
    user, reply = _USERS[number % 5], _REPLIES[number // 5 % 5]
    messages = [{"role": "user", "content": user}, {"role": "assistant", "content": reply}]
    return {"id": f"talk-{number % TALKS}", "messages": messages}


def ask(http: httpx.Client, number: int) -> httpx.Response:
    return http.post("/v1/score", json={"rationale": "never", **talk(number)})


def client(url: str, numbers: Sequence[int], report: Connection) -> None:
    """Ask for talks one after another; report a call at a time, so that a killed client's calls are not counted."""
    with httpx.Client(base_url=url, timeout=600, trust_env=False) as http:
        for number in numbers:
            told, begun = Told(), time.perf_counter()
            while (answer := ask(http, number)).status_code == 503:
                told.retries += 1
                time.sleep(min(2.0, float(answer.headers["Retry-After"])))
            told.seconds = time.perf_counter() - begun
            if answer.status_code == 200:
                told.answers.append((number, answer.json()["verdicts"]))
            else:
                told.failed += 1
            report.send(told)
    report.close()
