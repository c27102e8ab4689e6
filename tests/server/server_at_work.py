"""A server on loopback, with real sockets, for the length of a test; and the benchmark's requests as its client sends
them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest

from aipsy_judge.judge import Judge
from aipsy_judge.server.answering import warm_up
from aipsy_judge.server.running import listen, make_served, make_server
from aipsy_judge.server.serving import Served, ServeOptions
from aipsy_judge.server.working import CallTask

SYSTEM = "You judge one message of a talk. This stands for the benchmark's frozen prompt in tests of the transport."


@dataclass
class AtWork:
    """url of the server, what is served, a client, a way to tell the server to stop, and the thread it runs in."""

    url: str
    served: Served
    client: httpx.Client
    stop: threading.Event
    serving: threading.Thread

    def post(self, path: str, body: object, **more: object) -> httpx.Response:
        return self.client.post(path, json=body, **more)  # type: ignore[arg-type]

    def metric(self, name: str) -> float:
        lines = self.client.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"aipsy_judge_{name}"))


@contextmanager
def at_work(judge: Judge, *, warm: bool = False, **options: object) -> Iterator[AtWork]:
    chosen = ServeOptions(**{"port": 0, "keep_prefix": False, **options})  # type: ignore[arg-type]
    served, listening = make_served(judge, chosen), listen(chosen.host, chosen.port)
    server = make_server(served)
    thread = threading.Thread(target=server.run, kwargs={"sockets": listening.sockets}, daemon=True)
    if warm:
        served.scheduler.submit(CallTask(warm_up))
    thread.start()
    _wait(lambda: server.started, "the server did not start")
    stop = threading.Event()
    with httpx.Client(base_url=listening.url, timeout=120, trust_env=False) as client:
        work = AtWork(listening.url, served, client, stop, thread)
        watcher = threading.Thread(target=lambda: (stop.wait(), setattr(server, "should_exit", True)), daemon=True)
        watcher.start()
        try:
            yield work
        finally:
            stop.set()
            thread.join(120)
            for opened in listening.sockets:
                opened.close()
    assert not thread.is_alive(), "the server did not stop"
    assert not served.scheduler.alive


def _wait(there: object, message: str, seconds: float = 20.0) -> None:
    assert callable(there)
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, message
        time.sleep(0.005)


wait_until = _wait


@pytest.fixture
def bench_prompt(monkeypatch: pytest.MonkeyPatch) -> str:
    """A short system text that the server takes for the benchmark's; the real one is not part of this project."""
    monkeypatch.setattr("aipsy_judge.server.seat.SYSTEM_SHA256", hashlib.sha256(SYSTEM.encode()).hexdigest())
    return SYSTEM


def bench_text(history: Sequence[tuple[str, str]], target: str) -> str:
    """The user message as the benchmark's client makes it: messages inserted raw."""
    lines = ["CONVERSATION HISTORY:", *(f"[{who}] {text}" for who, text in history)]
    return "\n".join(lines) + f"\n\nTARGET MESSAGE TO EVALUATE:\n[AI] {target}"


def bench_body(system: str, user: str, **more: object) -> dict[str, object]:
    """A scored call, as observed."""
    return {
        "model": "aipsy-judge",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "stream": False,
        "think": False,
        "keep_alive": "30m",
        "options": {"temperature": 0.3, "top_p": 1.0, "num_predict": 4096, "num_ctx": 16384, "seed": 14},
        **more,
    }


WARM_UP = {
    "model": "aipsy-judge",
    "messages": [{"role": "user", "content": "ok"}],
    "stream": False,
    "keep_alive": "30m",
    "options": {"num_predict": 1, "num_ctx": 16384},
}
TALK = [("USER", "I failed my exam."), ("AI", "That hurts."), ("USER", "I cannot tell them at home.")]
