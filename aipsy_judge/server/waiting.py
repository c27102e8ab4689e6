"""Waiting for the judge's thread, and giving up where the client has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from .refusal import Refusal
from .scheduler import Busy, Cancelled, Job
from .serving import Served

T = TypeVar("T")
Gone = Callable[[], Awaitable[None]]
"""Returns when the client has hung up."""


def submit(served: Served, task: Any) -> Job:
    """Queue a task. Raises Refusal(503) where there is no room."""
    try:
        return served.scheduler.submit(task)
    except Busy as busy:
        raise refusal_of_busy(busy) from None


def refusal_of_busy(busy: Busy) -> Refusal:
    return Refusal(503, f"Not now: {busy}.", retry_after=busy.retry_after)


async def result_of(served: Served, task: Any, gone: Gone) -> Any:
    """The task's result. Raises what the task raised, Refusal(503), or Cancelled where the client is gone."""
    job = submit(served, task)
    done = asyncio.ensure_future(asyncio.wrap_future(job.done))
    hung_up = asyncio.ensure_future(gone())
    try:
        await asyncio.wait({done, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise Cancelled
        return done.result()
    except Busy as busy:
        raise refusal_of_busy(busy) from None
    finally:
        hung_up.cancel()
        if not job.done.done():
            served.scheduler.cancel(job)
        if not done.done():
            # Its exception, if one comes yet, is nobody's any more.
            done.add_done_callback(lambda late: late.cancelled() or late.exception())


async def unless_gone(work: Coroutine[Any, Any, T], gone: Gone) -> T:
    """What `work` gives. Raises Cancelled, and ends it, where the client hangs up before."""
    working, hung_up = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({working, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Cancelled
        return working.result()
    finally:
        hung_up.cancel()
        working.cancel()
