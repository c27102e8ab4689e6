"""Ollama's protocol, as far as a client of a judge uses it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from ..judge import Judge
from ..local_judge import LocalJudge
from ..strict_json import dumps
from .answering import Answer, Chat, Said, answer
from .disconnect import gone
from .refusal import Refusal
from .serving import Served, served_by
from .upstream import pass_on, upstream_tags
from .wire_json import Wire, checked, read_body, reply


class Message(Wire):
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    images: list[Any] | None = None
    tool_calls: list[Any] | None = None


class Options(Wire):
    num_predict: int | None = None


class ChatBody(Wire):
    model: str
    messages: list[Message] = Field(default_factory=list)
    stream: bool = True
    format: str | dict[str, Any] | None = None
    options: Options | None = None
    tools: list[Any] | None = None


class GenerateBody(Wire):
    model: str
    prompt: str = ""
    system: str | None = None
    stream: bool = True
    format: str | dict[str, Any] | None = None
    options: Options | None = None
    images: list[Any] | None = None
    suffix: str | None = None
    template: str | None = None
    raw: bool = False
    context: list[Any] | None = None


class NameBody(Wire):
    model: str | None = None
    name: str | None = None


async def version(request: Request) -> Response:
    return reply({"version": f"{__version__}-aipsy-judge"})


async def tags(request: Request) -> Response:
    served = served_by(request)
    others = await upstream_tags(request, served.options.upstream) if served.options.upstream else []
    own = _listed(served)
    return reply({"models": [own, *(m for m in others if m["name"] not in served.names.all)]})


async def running(request: Request) -> Response:
    own = _listed(served_by(request))
    return reply({"models": [{**own, "size_vram": 0, "expires_at": "9999-12-31T23:59:59Z"}]})


async def show(request: Request) -> Response:
    data = await read_body(request)
    served, body = served_by(request), checked(NameBody, data)
    name = body.model or body.name or ""
    if name not in served.names.all and served.options.upstream:
        return await pass_on(request, served.options.upstream)
    served.names.check(name)
    judge = served.judge
    return reply(
        {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "license": "",
            "details": _details(judge),
            "model_info": {
                "general.name": judge.lane.judge,
                **{f"aipsy_judge.{k}": v for k, v in _lane(judge).items()},
            },
            "capabilities": ["completion"],
            "modified_at": served.started_at,
        }
    )


async def chat(request: Request) -> Response:
    data = await read_body(request)
    served, body = served_by(request), checked(ChatBody, data)
    if body.model not in served.names.all and served.options.upstream:
        return await pass_on(request, served.options.upstream)
    served.names.check(body.model)
    if body.tools:
        raise Refusal(422, "A judge calls no tools.")
    begun = time.perf_counter_ns()
    asked = Chat(tuple(_said(m) for m in body.messages), _schema(body.format), _limit(body.options), may_warm=True)
    found = await answer(served, asked, gone(request))
    return _answered(
        body.model, found, {"message": {"role": "assistant", "content": found.text}}, begun, stream=body.stream
    )


async def generate(request: Request) -> Response:
    data = await read_body(request)
    served, body = served_by(request), checked(GenerateBody, data)
    if body.model not in served.names.all and served.options.upstream:
        return await pass_on(request, served.options.upstream)
    served.names.check(body.model)
    for name in ("images", "suffix", "template", "raw", "context"):
        if getattr(body, name):
            raise Refusal(422, f"A judge takes no {name!r}: it is asked by its own template, in text.")
    begun = time.perf_counter_ns()
    system = (Said("system", body.system),) if body.system else ()
    messages = (*system, Said("user", body.prompt)) if body.prompt else ()
    found = await answer(
        served, Chat(messages, _schema(body.format), _limit(body.options), may_warm=True), gone(request)
    )
    return _answered(body.model, found, {"response": found.text}, begun, stream=body.stream)


async def pull(request: Request) -> Response:
    """What is served is here already; nothing is ever fetched for a client."""
    data = await read_body(request)
    served, body = served_by(request), checked(NameBody, data)
    name = body.model or body.name or ""
    if name not in served.names.all and served.options.upstream:
        return await pass_on(request, served.options.upstream)
    served.names.check(name)
    return reply({"status": "success"})


async def elsewhere(request: Request) -> Response:
    """Parts of the protocol that are no business of a judge: another server's, where there is one."""
    served = served_by(request)
    if served.options.upstream:
        return await pass_on(request, served.options.upstream)
    raise Refusal(501, "This server judges; it does not make, copy, delete or embed.")


def _answered(model: str, found: Answer, content: dict[str, Any], begun: int, *, stream: bool) -> Response:
    """One object; streamed, the whole answer in one piece and then the end: there is no half of a verdict."""
    elapsed = time.perf_counter_ns() - begun
    base = {"model": model, "created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
    end = {
        "done": True,
        "done_reason": "stop" if found.text else "load",
        "total_duration": elapsed,
        "load_duration": 0,
        "prompt_eval_count": found.tokens.prompt,
        "prompt_eval_duration": 0,
        "eval_count": found.tokens.answer,
        "eval_duration": elapsed,
        "aipsy_judge": dict(found.about),
    }
    if not stream:
        return reply({**base, **content, **end})
    empty = {k: {**v, "content": ""} if isinstance(v, dict) else "" for k, v in content.items()}
    lines = [{**base, **content, "done": False}] if found.text else []
    text = "".join(dumps(line) + "\n" for line in [*lines, {**base, **empty, **end}])
    return Response(text, media_type="application/x-ndjson")


def _said(message: Message) -> Said:
    if message.images or message.tool_calls or message.role == "tool":
        raise Refusal(422, "A judge reads text: no images, no tools.")
    return Said(message.role, message.content)


def _schema(wanted: str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """ "json" asks for any JSON: the benchmark's answer is some, and of other prompts nothing is known by it."""
    if isinstance(wanted, str):
        if wanted not in ("", "json"):
            raise Refusal(400, f'The format {wanted[:40]!r} is not known: "json" or a JSON schema.')
        return None
    return wanted


def _limit(options: Options | None) -> int | None:
    """Ollama writes "no limit" as a negative number."""
    wanted = options.num_predict if options is not None else None
    return wanted if wanted is not None and wanted > 0 else None


def _listed(served: Served) -> dict[str, Any]:
    judge = served.judge
    local = judge if isinstance(judge, LocalJudge) else None
    return {
        "name": served.names.listed,
        "model": served.names.listed,
        "modified_at": served.started_at,
        "size": local.model_bytes if local is not None else 0,
        "digest": local.model_sha256 if local is not None else "",
        "details": _details(judge),
        "aipsy_judge": _lane(judge),
    }


def _details(judge: Judge) -> dict[str, Any]:
    stored = ""
    if isinstance(judge, LocalJudge):
        stored = "safetensors" if judge.weights.model.is_dir() else "gguf"
    return {
        "parent_model": "",
        "format": stored,
        "family": judge.lane.judge.partition("@")[0],
        "families": None,
        "parameter_size": "",
        "quantization_level": "",
    }


def _lane(judge: Judge) -> dict[str, Any]:
    return {**judge.lane.to_dict(), "remarks": list(judge.remarks)}
