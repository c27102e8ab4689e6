"""Our own wire: whole conversations in, verdicts out, turn by turn as server-sent events or all at once.

A verdict here says of every metric whether it is scored, N/A or unscored, as the files of `aipsy-judge score` do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..conversation import Conversation, Message
from ..errors import AipsyJudgeError
from ..strict_json import dumps, whole_characters
from ..verdict import Verdict, verdict_to_dict
from .disconnect import gone
from .naming import identity
from .refusal import Refusal, refusal_of
from .scheduler import Busy, Job
from .serving import Served, served_by
from .waiting import refusal_of_busy, result_of, submit
from .wire_json import Wire, checked, read_body, reply
from .working import Judged, ScoreTask

MOST_TURNS = 500  # every turn's prompt is a turn longer: a small body could hold the judge for hours
MOST_ID = 1000  # characters; it stands in every verdict
HEARTBEAT_SECONDS = 15.0  # a proxy in between takes a silent connection for a dead one


class ScoreMessage(Wire):
    """A message of this project's own form. A misspelt `spoken` passed over would have context judged, and a tool call
    passed over would not be in the text that a file's reader gives: both are refused."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    spoken: bool = True


class ScoreBody(Wire):
    """A conversation in this project's own form; `rubric` and `judge`, if given, must be those that are served.

    What is not known is refused: a misspelt `contract` passed over would be taken for kept.
    """

    model_config = ConfigDict(extra="forbid")

    messages: list[ScoreMessage] = Field(min_length=1)
    id: str = Field("conversation", max_length=MOST_ID)
    metadata: dict[str, Any] = Field(default_factory=dict)  # of a file in that form; not judged
    rationale: Literal["always", "flagged", "never"] | None = None
    stream: bool = False
    model: str | None = None
    judge: str | None = None
    rubric: str | None = None
    contract: str | None = None


async def score(request: Request) -> Response:
    data = await read_body(request)
    served, body = served_by(request), checked(ScoreBody, data)
    _check_lane(served, body)
    conversation = Conversation(body.id, tuple(_message(m) for m in body.messages))
    if not conversation.turns:
        raise Refusal(422, "The conversation has no message of an assistant: there is nothing to judge.")
    if len(conversation.turns) > MOST_TURNS:
        raise Refusal(
            422,
            f"The conversation has {len(conversation.turns)} turns to judge; {MOST_TURNS} are judged in one go.",
            hint='Send it in parts: what has "spoken": false is context and not judged.',
        )
    rationale = body.rationale or served.options.rationale
    if body.stream:
        return _streamed(served, conversation, lambda heard: ScoreTask(conversation, rationale, heard))
    judged: Judged = await result_of(served, ScoreTask(conversation, rationale), gone(request))
    served.metrics.count_verdicts(judged.verdicts)
    verdicts = [verdict_to_dict(v) for v in judged.verdicts]
    return reply({"judge": identity(served.judge), "id": conversation.id, "verdicts": verdicts, **_end(judged)})


def _message(message: ScoreMessage) -> Message:
    """As a file's reader gives it: half of an emoji, which JSON can hold and UTF-8 cannot, is replaced; what a tool
    gave was never said to the person."""
    return Message(message.role, whole_characters(message.content), message.spoken and message.role != "tool")


def _check_lane(served: Served, body: ScoreBody) -> None:
    """Scores of another judge, rubric or contract than the client means would be compared with its own."""
    if body.model is not None:
        served.names.check(body.model)
    for word, is_served in served.judge.lane.to_dict().items():
        asked = getattr(body, word)
        if asked is not None and asked != is_served:
            raise Refusal(409, f"The {word} served here is {is_served}, not {asked[:100]!r}.")


def _streamed(served: Served, conversation: Conversation, task: Any) -> Response:
    """Queued before the first byte, so that a full queue is a 503 and not an event."""
    loop, events = asyncio.get_running_loop(), asyncio.Queue[Verdict | None]()

    def tell(event: Verdict | None) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    job = submit(served, task(tell))
    job.done.add_done_callback(lambda _: tell(None))
    return StreamingResponse(_events(served, conversation, job, events), media_type="text/event-stream")


async def _events(
    served: Served, conversation: Conversation, job: Job, events: asyncio.Queue[Verdict | None]
) -> AsyncIterator[str]:
    try:
        yield _event("judge", {**identity(served.judge), "id": conversation.id, "turns": len(conversation.turns)})
        while (event := await _next(events)) is not None:
            if isinstance(event, Verdict):
                served.metrics.count_verdicts((event,))
                yield _event("verdict", verdict_to_dict(event))
            else:
                yield ": still judging\n\n"
        error = job.done.exception()
        if error is None:
            yield _event("done", _end(job.done.result()))
        else:
            yield _event("error", _told(error))
    finally:
        served.scheduler.cancel(job)


async def _next(events: asyncio.Queue[Verdict | None]) -> Verdict | str | None:
    """The next verdict, None at the end, or a word where nothing came for a while."""
    try:
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            return await events.get()
    except TimeoutError:
        return "nothing yet"


def _told(error: BaseException) -> dict[str, Any]:
    match error:
        case AipsyJudgeError():
            refusal = refusal_of(error)
        case Busy():
            refusal = refusal_of_busy(error)
        case Refusal():
            refusal = error
        case _:
            refusal = Refusal(500, f"The judge failed: {type(error).__name__}.")
    return {"status": refusal.status, "message": refusal.text, "retry_after": refusal.retry_after}


def _end(judged: Judged) -> dict[str, Any]:
    tokens = judged.tokens
    return {
        "verdict_count": len(judged.verdicts),
        "evaluated_tokens": tokens.evaluated,
        "finished_at": time.time(),
    }


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {dumps(data)}\n\n"
