"""One thread owns the judge (llama.cpp is not thread-safe); requests wait in a bounded queue, first come first served.

A job that is cancelled while it waits leaves the queue at once; one that runs ends before the engine's next pass.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

Check = Callable[[], None]
"""Raises Cancelled where nobody waits for the answer any more."""

Handle = Callable[[Sequence["Job"], Check], None]
"""Works on jobs that were taken together and settles their futures; may raise, for all of those left."""

USUAL_SECONDS = 5.0  # of one job, before any was measured: only for the first Retry-After


class Cancelled(Exception):
    """Nobody waits for the answer any more."""


class Busy(Exception):
    """The queue is full, or the server stops. `retry_after` in seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(eq=False, slots=True)
class Job:
    """A task and where its result goes."""

    task: Any
    done: Future[Any] = field(default_factory=Future)
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class Counts:
    """Jobs by how they ended, and the time the thread worked."""

    finished: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0
    busy_seconds: float = 0.0


class Scheduler:
    """`limit` jobs may wait beside those being worked on; up to `width` that may join are taken together."""

    def __init__(
        self,
        handle: Handle,
        *,
        limit: int,
        width: int = 1,
        may_join: Callable[[Any, Any], bool] = lambda first, other: False,
    ) -> None:
        self._handle, self._limit, self._width, self._may_join = handle, limit, width, may_join
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._mean_seconds = USUAL_SECONDS
        self.counts = Counts()
        self._thread = threading.Thread(target=self._work, name="judge", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, task: Any) -> Job:
        """Queue a task. Raises Busy."""
        job = Job(task)
        with self._changed:
            if self._stopping:
                self.counts.refused += 1
                raise Busy("the server is stopping", 5)
            if len(self._waiting) >= self._limit:
                self.counts.refused += 1
                raise Busy(f"{len(self._waiting)} requests are waiting already", self._retry_after())
            self._waiting.append(job)
            self._changed.notify_all()
        return job

    def cancel(self, job: Job) -> None:
        """Nobody waits for it any more. Harmless where it is done."""
        job.cancelled.set()
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
                self.counts.cancelled += 1
                _settle(job, Cancelled())

    def refuse_waiting(self) -> None:
        """Take nothing new and answer what waits with Busy; what runs goes on."""
        with self._changed:
            self._stopping = True
            waiting, self._waiting = list(self._waiting), deque()
            self.counts.refused += len(waiting)
            self._changed.notify_all()
        for job in waiting:
            _settle(job, Busy("the server is stopping", 5))

    def stop(self, grace_seconds: float, *, leave: bool = False) -> None:
        """Refuse what waits, let what runs finish within the grace, then end it before its next pass.

        `leave`: do not wait for that pass; for a judge on another server, which may not answer for long.
        """
        self.refuse_waiting()
        if self._thread.ident is None:
            return
        running = list(self._running)
        if not running or not all(job.cancelled.is_set() for job in running):
            self._thread.join(grace_seconds)
        for job in running:
            job.cancelled.set()
        if not leave:
            self._thread.join()

    def _retry_after(self) -> int:
        ahead = len(self._waiting) + len(self._running)
        return max(1, min(600, math.ceil(ahead * self._mean_seconds / self._width)))

    # -- the thread -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while jobs := self._take():
            begun = time.monotonic()
            try:
                self._handle(jobs, lambda taken=jobs: _check(taken))  # type: ignore[misc]
            except Exception as error:  # whatever it is, the client hears of it and the thread lives on
                for job in jobs:
                    _settle(job, error)
            self._count(jobs, time.monotonic() - begun)

    def _take(self) -> list[Job]:
        """The next job with those behind it that may join it; empty where the server stops."""
        with self._changed:
            while not self._waiting:
                if self._stopping:
                    return []
                self._changed.wait()
            first = self._waiting.popleft()
            joining = [j for j in self._waiting if self._may_join(first.task, j.task)][: self._width - 1]
            for job in joining:
                self._waiting.remove(job)
            self._running = [first, *joining]
            return self._running

    def _count(self, jobs: Sequence[Job], seconds: float) -> None:
        with self._changed:
            self._running = []
            self.counts.busy_seconds += seconds
            self._mean_seconds += 0.2 * (seconds - self._mean_seconds)
            for job in jobs:
                _settle(job, RuntimeError("the job was left without a result"))
                error = job.done.exception()
                if isinstance(error, Cancelled):
                    self.counts.cancelled += 1
                elif error is not None:
                    self.counts.failed += 1
                else:
                    self.counts.finished += 1


def _check(jobs: Sequence[Job]) -> None:
    if all(job.cancelled.is_set() for job in jobs):
        raise Cancelled


def _settle(job: Job, error: Exception) -> None:
    if not job.done.done():
        job.done.set_exception(error)
