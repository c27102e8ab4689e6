"""OpenAI's responses, as far as evaluation clients use them for a judge: text in, one message out."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ..strict_json import dumps
from .answering import Answer, Chat, Said, answer
from .disconnect import gone
from .openai_chat import TextPart, role_of, schema_in, text_of, usage_of
from .refusal import Refusal
from .serving import served_by
from .upstream import pass_on
from .wire_json import Wire, checked, read_body, reply


class Item(Wire):
    type: str = "message"
    role: str | None = None
    content: str | list[TextPart] | None = None


class Format(Wire):
    type: str
    json_schema: dict[str, Any] | None = Field(None, alias="schema")


class TextOptions(Wire):
    format: Format | None = None


class Body(Wire):
    model: str
    input: str | list[Item]
    instructions: str | None = None
    max_output_tokens: int | None = None
    text: TextOptions | None = None
    stream: bool | None = None
    tools: list[Any] | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    prompt: Any = None


async def responses(request: Request) -> Response:
    data = await read_body(request)
    served, body = served_by(request), checked(Body, data)
    if body.model not in served.names.all and served.options.upstream:
        return await pass_on(request, served.options.upstream)
    served.names.check(body.model)
    if body.tools:
        raise Refusal(422, "A judge calls no tools.")
    if any(kept is not None for kept in (body.previous_response_id, body.conversation, body.prompt)):
        raise Refusal(422, "Nothing is kept of earlier answers: send the whole prompt.")
    chat = Chat(_messages(body), _schema(body.text), body.max_output_tokens)
    found = await answer(served, chat, gone(request))
    whole = _response(body, found)
    if body.stream:
        return Response(_events(whole), media_type="text/event-stream")
    return reply(whole)


def _messages(body: Body) -> tuple[Said, ...]:
    first = (Said("system", body.instructions),) if body.instructions else ()
    if isinstance(body.input, str):
        return (*first, Said("user", body.input))
    said: list[Said] = []
    for item in body.input:
        if item.type != "message" or item.role is None:
            raise Refusal(422, f"A judge is not asked by an item of the type {item.type[:40]!r}.")
        said.append(Said(role_of(item.role), text_of(item.content)))
    if not said:
        raise Refusal(400, "The request is not understood: input: nothing is given.")
    return (*first, *said)


def _schema(text: TextOptions | None) -> Mapping[str, Any] | None:
    if text is None or text.format is None:
        return None
    return schema_in(text.format.json_schema, text.format.type)


def _response(body: Body, found: Answer) -> dict[str, Any]:
    used = usage_of(found)
    part = {"type": "output_text", "text": found.text, "annotations": [], "logprobs": []}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": time.time(),
        "status": "completed",
        "model": body.model,
        "output": [message],
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "metadata": {},
        "parallel_tool_calls": False,
        "temperature": None,
        "tool_choice": "none",
        "tools": [],
        "top_p": None,
        "store": False,
        "usage": {
            "input_tokens": used["prompt"],
            "input_tokens_details": {"cached_tokens": used["cached"], "cache_write_tokens": 0},
            "output_tokens": used["answer"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used["prompt"] + used["answer"],
        },
        "aipsy_judge": dict(found.about),
    }


def _events(whole: dict[str, Any]) -> str:
    """The stream of an answer that is there already, in the order in which clients build it up again."""
    (message,) = whole["output"]
    (part,) = message["content"]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    item = {"item_id": message["id"], "output_index": 0}
    empty = {**part, "text": ""}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
        (
            "response.output_item.added",
            {"output_index": 0, "item": {**message, "status": "in_progress", "content": []}},
        ),
        ("response.content_part.added", {**item, "content_index": 0, "part": empty}),
        ("response.output_text.delta", {**item, "content_index": 0, "delta": part["text"], "logprobs": []}),
        ("response.output_text.done", {**item, "content_index": 0, "text": part["text"], "logprobs": []}),
        ("response.content_part.done", {**item, "content_index": 0, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": message}),
        ("response.completed", {"response": whole}),
    ]
    return "".join(
        f"event: {kind}\ndata: {dumps({'type': kind, 'sequence_number': n, **data})}\n\n"
        for n, (kind, data) in enumerate(steps)
    )
