"""Load on a served judge: many clients at once, every answer checked against `score`, some clients killed midway.

    python -m bench.load [--judge NAME] [--clients 32] [--calls 20] [--parallel 1] [--json FILE]

Three parts, on one server with its own process:

* whole     clients x calls short talks on /v1/score; every request is answered once, and what is answered is what
            `score` says of the same talk (with --parallel 1 to the last digit, above it by values alone)
* killed    the same, with a third of the clients killed (SIGKILL) in the middle: those left are all answered, the
            judge's queue is empty afterwards, the next request works
* memory    resident memory of the server after the first hundred calls and at the end

A request that finds the queue full is told to come again (503, Retry-After) and does; how often is printed. Figures of
a busy machine mean little.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.judge import Judge, JudgeOptions
from aipsy_judge.opening import open_judge
from aipsy_judge.verdict import verdict_to_dict

from .load_client import TALKS, Told, ask, client, talk

WARM_CALLS = 100  # memory is counted from here: by then every buffer has its size


@dataclass
class Part:
    """What came of one part. seconds are of single calls as clients saw them; retries are 503s that were obeyed."""

    name: str
    answered: int = 0
    wrong: int = 0
    failed: int = 0
    retries: int = 0
    wall_seconds: float = 0.0
    median_seconds: float = 0.0
    slowest_seconds: float = 0.0


def run_part(
    name: str, url: str, expected: dict[int, Any], clients: int, calls: int, *, kill: int, exact: bool
) -> Part:
    """`clients` processes of `calls` calls each, `kill` of which are killed when a third of all calls are answered."""
    # each forked from one clean process that has imported what a client needs, and nothing of this one
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bench.load_client"])
    ends, processes = [], []
    for n in range(clients):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=client, args=(url, range(n * calls, (n + 1) * calls), there), daemon=True)
        process.start()
        there.close()
        ends.append(here)
        processes.append(process)
    part, seconds, begun = Part(name), list[float](), time.perf_counter()
    open_ends, killed = list(ends), False
    while open_ends:
        for end in multiprocessing.connection.wait(open_ends):
            assert isinstance(end, Connection)
            try:
                told: Told = end.recv()
            except (EOFError, ConnectionResetError):
                open_ends.remove(end)
                continue
            _count(part, told, expected, exact=exact)
            seconds.append(told.seconds)
        if kill and not killed and part.answered >= clients * calls // 3:
            killed = True
            for process in processes[:kill]:
                os.kill(process.pid or 0, signal.SIGKILL)
    for process in processes:
        process.join()
    part.wall_seconds = time.perf_counter() - begun
    part.median_seconds, part.slowest_seconds = statistics.median(seconds), max(seconds)
    return part


def _count(part: Part, told: Told, expected: dict[int, Any], *, exact: bool) -> None:
    part.failed += told.failed
    part.retries += told.retries
    for number, verdicts in told.answers:
        part.answered += 1
        wanted = expected[number % TALKS]
        part.wrong += (verdicts if exact else _values(verdicts)) != (wanted if exact else _values(wanted))


def _values(verdicts: Any) -> Any:
    return [{name: (s["status"], s["value"]) for name, s in v["scores"].items()} for v in verdicts]


def measured(judge: str, contract: str, clients: int, calls: int, parallel: int, queue: int) -> dict[str, Any]:
    """All parts, on a server of its own."""
    expected = _expected(judge, contract)
    with _Server(judge, contract, parallel, queue) as server:
        exact = parallel == 1
        run_part("warm", server.url, expected, 4, WARM_CALLS // 4, kill=0, exact=exact)
        before = server.metric("resident_memory_bytes")
        parts = [run_part("whole", server.url, expected, clients, calls, kill=0, exact=exact)]
        middle = server.metric("resident_memory_bytes")
        parts.append(run_part("killed", server.url, expected, clients, calls, kill=clients // 3, exact=exact))
        idle = server.wait_idle()
        return {
            "parts": [asdict(p) for p in parts],
            "clients": clients,
            "calls": calls,
            "parallel": parallel,
            "memory_mib": [round(b / 2**20, 1) for b in (before, middle, server.metric("resident_memory_bytes"))],
            "idle_afterwards": idle,
            "cancelled": int(server.metric('jobs_total{end="cancelled"}')),
        }


@cache
def _expected(judge: str, contract: str) -> dict[int, Any]:
    """Talk -> what `score` says of it."""
    with open_judge(judge, contract=contract, options=JudgeOptions(threads=1)) as opened:
        return {n: _scored(opened, n) for n in range(TALKS)}


def _scored(judge: Judge, number: int) -> Any:
    """What `score` says of a talk, as it comes out of JSON."""
    told = talk(number)
    messages = tuple(Message(m["role"], m["content"]) for m in told["messages"])
    verdicts = judge.score(Conversation(told["id"], messages), rationale="never")
    return json.loads(json.dumps([verdict_to_dict(v) for v in verdicts]))


class _Server:
    """`aipsy-judge serve` in a process of its own."""

    def __init__(self, judge: str, contract: str, parallel: int, queue: int) -> None:
        self._words = [sys.executable, "-m", "aipsy_judge", "serve", "--judge", judge, "--contract", contract]
        self._words += ["--port", "0", "--threads", "1", "--parallel", str(parallel), "--queue", str(queue)]
        self._words += ["--rationale", "never", "--no-prefix-file"]
        self.url = ""

    def __enter__(self) -> _Server:
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(self._words, stderr=self._log, text=True)
        end = time.monotonic() + 120
        while not self.url:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {self._said()}")
            self.url = next((word for word in self._said().split() if word.startswith("http://")), "")
            time.sleep(0.1)
        self._http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        return self

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def metric(self, name: str) -> float:
        lines = self._http.get("/metrics").text.splitlines()
        return next((float(x.split()[-1]) for x in lines if x.startswith(f"aipsy_judge_{name}")), 0.0)

    def wait_idle(self, seconds: float = 30.0) -> bool:
        end = time.monotonic() + seconds
        while self.metric("jobs_running") or self.metric("jobs_waiting"):
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return ask(self._http, 0).status_code == 200

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._process.terminate()
        self._process.wait(60)
        self._log.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--judge", default="smollm2-untrained")
    parser.add_argument("--contract", default="compact")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--calls", type=int, default=20, help="of each client")
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--queue", type=int, default=16, help="shorter than the clients, so that some are told to wait")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = measured(args.judge, args.contract, args.clients, args.calls, args.parallel, args.queue)
    print(f"{args.clients} clients x {args.calls} calls, {args.parallel} in a plan, one thread")
    print(
        f"{'':8}{'answered':>9}{'wrong':>7}{'failed':>8}{'retries':>9}{'calls/s':>9}{'median s':>10}{'slowest s':>11}"
    )
    for part in found["parts"]:
        rate = part["answered"] / part["wall_seconds"]
        row = f"{part['name']:8}{part['answered']:9}{part['wrong']:7}{part['failed']:8}{part['retries']:9}"
        print(f"{row}{rate:9.2f}{part['median_seconds']:10.2f}{part['slowest_seconds']:11.2f}")
    print(f"memory, MiB, after {WARM_CALLS} calls, after the first part, at the end: {found['memory_mib']}")
    print(f"cancelled {found['cancelled']}; idle and answering afterwards: {found['idle_afterwards']}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    whole = found["parts"][0]
    right = whole["answered"] == args.clients * args.calls and not any(p["wrong"] + p["failed"] for p in found["parts"])
    raise SystemExit(0 if right and found["idle_afterwards"] else 1)


if __name__ == "__main__":
    main()
