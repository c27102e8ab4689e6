"""What is served and how: the judge, its thread, and what was asked for on the command line."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..judge import Judge, Rationale
from .metrics import Metrics
from .naming import Names
from .scheduler import Scheduler

if TYPE_CHECKING:
    from starlette.requests import Request  # not needed by whoever asks the judge in the same process


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """host and port, where the server listens; token, without which nobody is answered (None: all on this machine
    are); origins, pages that may call it; hosts, further names by which it may be called.

    upstream         address of an Ollama that answers for models not served here
    answer_as_own    a judge that was not made for the benchmark's prompt answers it by its own contract
    rationale        when the judge also says why
    queue, parallel  requests that may wait, and conversations judged in one plan
    park_gb          GiB for the beginnings of conversations that wait for their next turn
    keep_prefix      keep the evaluated rubric on disk between starts
    body_bytes, body_seconds  most that a request's body may have and take
    grace_seconds    that a running answer gets when the server is told to stop
    """

    host: str = "127.0.0.1"
    port: int = 11434
    token: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    upstream: str | None = None
    answer_as_own: bool = False
    rationale: Rationale = "flagged"
    queue: int = 64
    parallel: int = 1
    park_gb: float = 1.0
    keep_prefix: bool = True
    body_bytes: int = 8 * 2**20
    body_seconds: float = 30.0
    grace_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Served:
    """One judge at work."""

    judge: Judge
    names: Names
    scheduler: Scheduler
    options: ServeOptions
    metrics: Metrics
    started: float = field(default_factory=time.time)

    @property
    def started_at(self) -> str:
        """RFC 3339, as Ollama writes times."""
        return datetime.fromtimestamp(self.started, UTC).isoformat().replace("+00:00", "Z")


def served_by(request: Request) -> Served:
    """What answers this request."""
    served: Served = request.app.state.served
    return served
