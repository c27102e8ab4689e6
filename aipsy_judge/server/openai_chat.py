"""OpenAI's chat completions and list of models, as far as a client of a judge uses them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ..strict_json import dumps
from .answering import Answer, Chat, Said, answer
from .disconnect import gone
from .refusal import Refusal
from .serving import Served, served_by
from .upstream import pass_on, upstream_tags
from .wire_json import Wire, checked, read_body, reply

ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


class TextPart(Wire):
    type: str
    text: str | None = None


class Message(Wire):
    role: str
    content: str | list[TextPart] | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    function_call: Any = None
    audio: Any = None


class JsonSchema(Wire):
    json_schema: dict[str, Any] | None = Field(None, alias="schema")


class ResponseFormat(Wire):
    type: str
    json_schema: JsonSchema | None = None


class StreamOptions(Wire):
    include_usage: bool = False


class Body(Wire):
    model: str
    messages: list[Message]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    tools: list[Any] | None = None
    logprobs: bool | None = None


async def models(request: Request) -> Response:
    served = served_by(request)
    others = await upstream_tags(request, served.options.upstream) if served.options.upstream else []
    foreign = [{"id": m["name"], "object": "model", "created": 0, "owned_by": "upstream"} for m in others]
    own = [_model(served, name) for name in served.names.all]
    return reply({"object": "list", "data": [*own, *(m for m in foreign if m["id"] not in served.names.all)]})


async def model(request: Request) -> Response:
    served, name = served_by(request), str(request.path_params["model"]).rstrip("/")
    walks = ".." in name.split("/")  # on the other server that would be another path than that of a model
    if name not in served.names.all and served.options.upstream and not walks:
        return await pass_on(request, served.options.upstream)
    served.names.check(name)
    return reply(_model(served, name))


async def completions(request: Request) -> Response:
    data = await read_body(request)
    served, body = served_by(request), checked(Body, data)
    if body.model not in served.names.all and served.options.upstream:
        return await pass_on(request, served.options.upstream)
    served.names.check(body.model)
    _refuse_what_is_not_kept(body)
    limit = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    messages = tuple(said(m) for m in body.messages)
    if not messages:
        raise Refusal(400, "The request is not understood: messages: none is given.")
    found = await answer(served, Chat(messages, _schema(body.response_format), limit), gone(request))
    if body.stream:
        usage = body.stream_options is not None and body.stream_options.include_usage
        return Response(_chunks(body.model, found, usage=usage), media_type="text/event-stream")
    return reply(_completion(body.model, found))


def role_of(role: str) -> Literal["system", "user", "assistant"]:
    if role not in ROLES:
        raise Refusal(422, f"A judge is not asked by a message of the role {role[:40]!r}.")
    return ROLES[role]


def said(message: Message) -> Said:
    """A refusal is what the assistant said, though OpenAI leaves the content null then. Refusal(422) for no text."""
    if message.tool_calls or message.function_call or message.audio:
        raise Refusal(422, "A judge reads text: no tools, no sound.")
    return Said(role_of(message.role), text_of(message.content) or message.refusal or "")


def text_of(content: str | list[TextPart] | None) -> str:
    """Parts joined by newlines. Refusal(422) for what is no text: a judge that overlooks a picture judges wrongly."""
    if isinstance(content, str) or content is None:
        return content or ""
    for part in content:
        if part.type not in ("text", "input_text", "output_text") or part.text is None:
            raise Refusal(422, f"A judge reads text, not {part.type[:40]!r}.")
    return "\n".join(p.text or "" for p in content)


def schema_in(wanted: Mapping[str, Any] | None, kind: str) -> Mapping[str, Any] | None:
    """The schema that a format holds, if its kind is one that holds any. Refusal(400) where it is missing."""
    if kind in ("text", "json_object"):
        return None
    if kind != "json_schema":
        raise Refusal(400, f"The format {kind[:40]!r} is not known: text, json_object or json_schema.")
    if wanted is None:
        raise Refusal(400, "The format json_schema comes without a schema.")
    return wanted


def usage_of(found: Answer) -> dict[str, int]:
    return {"prompt": found.tokens.prompt, "answer": found.tokens.answer, "cached": cached_of(found)}


def cached_of(found: Answer) -> int:
    """Tokens of the prompt that were not evaluated for this answer; 0 where that is not known."""
    tokens = found.tokens
    if tokens.evaluated is None:
        return 0
    return max(0, tokens.prompt - tokens.evaluated)


def _refuse_what_is_not_kept(body: Body) -> None:
    if body.n is not None and body.n != 1:
        raise Refusal(422, "A judge gives one answer, always the same: n is 1.")
    if body.tools:
        raise Refusal(422, "A judge calls no tools.")
    if body.logprobs:
        raise Refusal(422, "Probabilities are given by slot, under aipsy_judge.readings, not by token.")


def _schema(wanted: ResponseFormat | None) -> Mapping[str, Any] | None:
    if wanted is None:
        return None
    return schema_in(wanted.json_schema.json_schema if wanted.json_schema else None, wanted.type)


def _model(served: Served, name: str) -> dict[str, Any]:
    created = int(served.started)
    return {"id": name, "object": "model", "created": created, "owned_by": served.judge.lane.judge}


def _usage(found: Answer) -> dict[str, Any]:
    used = usage_of(found)
    return {
        "prompt_tokens": used["prompt"],
        "completion_tokens": used["answer"],
        "total_tokens": used["prompt"] + used["answer"],
        "prompt_tokens_details": {"cached_tokens": used["cached"]},
    }


def _completion(model: str, found: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": found.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": _usage(found),
        "aipsy_judge": dict(found.about),
    }


def _chunks(model: str, found: Answer, *, usage: bool) -> str:
    """The stream: role, the whole answer, the end. It begins once the answer is there: a status is not taken back."""
    base = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
    }

    def chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    chunks = [
        chunk({"role": "assistant", "content": ""}, None),
        {**chunk({"content": found.text}, None), "aipsy_judge": dict(found.about)},
        chunk({}, "stop"),
    ]
    if usage:
        chunks.append({**base, "choices": [], "usage": _usage(found)})
    return "".join(f"data: {dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
