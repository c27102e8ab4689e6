"""Probes: whether the server is up, whether the judge can answer, and counters. They answer while it judges."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ..local_judge import LocalJudge
from .metrics import Labels
from .serving import Served, served_by
from .wire_json import reply


async def health(request: Request) -> Response:
    """200 while the judge's thread lives, else 503."""
    served = served_by(request)
    alive = served.scheduler.alive
    return reply({"status": "ok" if alive else "down"}, 200 if alive else 503)


async def metrics(request: Request) -> Response:
    served = served_by(request)
    return PlainTextResponse(served.metrics.text(_now(served)), media_type="text/plain; version=0.0.4")


async def root(request: Request) -> Response:
    return PlainTextResponse("aipsy-judge is running\n")


def _now(served: Served) -> Mapping[tuple[str, Labels], float]:
    counts, scheduler = served.scheduler.counts, served.scheduler
    values: dict[tuple[str, Labels], float] = {
        ("jobs_waiting", ()): scheduler.waiting,
        ("jobs_running", ()): scheduler.running,
        ("judge_busy_seconds_total", ()): counts.busy_seconds,
        ("up_seconds", ()): time.time() - served.started,
    }
    for end in ("finished", "failed", "cancelled", "refused"):
        values["jobs_total", (("end", end),)] = getattr(counts, end)
    if isinstance(served.judge, LocalJudge):
        trunks, work = served.judge.engine.trunks, served.judge.backend.work
        values["evaluated_tokens_total", ()] = work.tokens
        values["engine_passes_total", ()] = work.passes
        values["trunk_tokens_kept_total", ()] = trunks.reuse.kept
        values["parked_bytes", ()] = trunks.parked_bytes
    memory = resident_bytes()
    return values if memory is None else {**values, ("resident_memory_bytes", ()): memory}


def resident_bytes() -> int | None:
    """Memory of this process that is in RAM, where the system says it."""
    if not sys.platform.startswith("linux"):
        return None
    import os

    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
