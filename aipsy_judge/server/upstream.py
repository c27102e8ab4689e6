"""Models that are not served here, passed on to the Ollama that the user named; nothing is passed on otherwise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..strict_json import without_nan
from .disconnect import gone
from .refusal import Refusal
from .scheduler import Cancelled
from .waiting import unless_gone

LIST_SECONDS = 2.0  # a client waits five for the list, and this server's own part of it must come
LIST_BYTES = 4 * 2**20
ANSWER_SECONDS = 600.0
PASSED_ON = "x-aipsy-judge-passed-on"  # marks what is passed on, which comes back where --upstream is this server
# Between two hops only, or ours: the other server has its own, and no business with the token of this one.
_OURS = frozenset(
    [
        "host",
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "authorization",
        "content-length",
        "origin",
        "referer",
        "cookie",
    ]
)


async def upstream_tags(request: Request, address: str) -> list[dict[str, Any]]:
    """What the other server lists, each with a name; nothing where it does not answer at once, or not in JSON."""
    if PASSED_ON in request.headers:
        return []
    try:
        async with asyncio.timeout(LIST_SECONDS):  # of the whole answer: one that drips never ends
            models = without_nan(json.loads(await _listing(f"{address}/api/tags")))["models"]
    except (TimeoutError, httpx.HTTPError, ValueError, RecursionError, KeyError, TypeError):
        return []
    if not isinstance(models, list):
        return []
    return [m for m in models if isinstance(m, dict) and isinstance(m.get("name"), str)]


async def _listing(url: str) -> bytes:
    """The body; ValueError where it is longer than any list of models."""
    body = bytearray()
    async with (
        httpx.AsyncClient(timeout=LIST_SECONDS, trust_env=False, headers={PASSED_ON: "1"}) as client,
        client.stream("GET", url) as answer,
    ):
        async for block in answer.aiter_bytes():
            body += block
            if len(body) > LIST_BYTES:
                raise ValueError("too long")
    return bytes(body)


async def pass_on(request: Request, address: str) -> Response:
    """The request as it came, the answer as it comes, without either's hop-by-hop headers. Refusal(502), or 508
    where it was passed on already."""
    if PASSED_ON in request.headers:
        raise Refusal(
            508, "No server here has that model: the request came back.", hint="Is --upstream this very server?"
        )
    headers = [*((k, v) for k, v in request.headers.items() if k not in _OURS), (PASSED_ON, "1")]
    client = httpx.AsyncClient(timeout=httpx.Timeout(ANSWER_SECONDS, connect=5.0), trust_env=False)
    try:
        sent = client.build_request(
            request.method,
            f"{address}{request.url.path}",
            params=request.url.query,
            headers=headers,
            content=await request.body(),
        )
        answer = await unless_gone(client.send(sent, stream=True), gone(request))
    except httpx.HTTPError as error:
        await client.aclose()
        raise Refusal(502, f"The server behind --upstream does not answer: {type(error).__name__}.") from error
    except Cancelled:
        await client.aclose()  # so that the other server sees that nobody waits
        raise
    kept = {k: v for k, v in answer.headers.items() if k not in _OURS and not k.startswith("access-control-")}
    return StreamingResponse(_body(client, answer), answer.status_code, headers=kept)


async def _body(client: httpx.AsyncClient, answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for block in answer.aiter_raw():
            yield block
    finally:
        await answer.aclose()
        await client.aclose()
