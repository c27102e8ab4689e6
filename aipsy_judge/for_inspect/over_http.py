"""A judge that is served elsewhere by `aipsy-judge serve`, asked on the wire that Ollama's clients speak."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from ..backends.server_name import checked_key, is_loopback, server_address
from ..errors import AccessError, AipsyJudgeError, BackendError, ContractError, InputError
from ..server.answering import Answer, Chat
from ..server.working import Tokens
from ..strict_json import loads

ANSWER_SECONDS = 600.0
LARGEST_BYTES = 16 * 2**20  # of an answer; a whole verdict has some thousands


def checked_address(url: str) -> str:
    """The server's address without /v1 or a slash at its end. Raises InputError."""
    return server_address(url, "base_url").removesuffix("/v1")


async def asked_of(address: str, model: str, chat: Chat, *, token: str | None, seconds: float | None) -> Answer:
    """The answer of the model at `address`. Raises BackendError (retryable where the server says so or cannot be
    reached), AccessError, ContractError (409), InputError (what it refuses, and a token that no header can hold)."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": m.text} for m in chat.messages],
        "stream": False,
        "options": {"num_predict": chat.limit} if chat.limit is not None else {},
    }
    if chat.schema is not None:
        body["format"] = dict(chat.schema)
    key = checked_key(token, "api_key")
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    # Escaped: half of an emoji is no UTF-8. The server reads it as files are read.
    content = json.dumps(body, allow_nan=False).encode()
    try:
        async with (
            httpx.AsyncClient(timeout=seconds or ANSWER_SECONDS, trust_env=not is_loopback(address)) as client,
            client.stream("POST", f"{address}/api/chat", content=content, headers=headers) as answer,
        ):
            return _read(address, answer, await _received(address, answer))
    except httpx.HTTPError as error:
        raise BackendError(
            f"the judge's server does not answer: {type(error).__name__}",
            where=address,
            hint="Is it running, and the address right?",
            retryable=True,
        ) from error


async def _received(address: str, answer: httpx.Response) -> bytes:
    received = bytearray()
    async for block in answer.aiter_bytes():
        received += block
        if len(received) > LARGEST_BYTES:
            raise BackendError(f"the server sent more than {LARGEST_BYTES >> 20} MiB for one answer", where=address)
    return bytes(received)


def _read(address: str, answer: httpx.Response, received: bytes) -> Answer:
    try:
        data = loads(received)
    except ValueError:
        data = None
    if answer.status_code != httpx.codes.OK:
        raise _error(address, answer, data)
    message = data.get("message") if isinstance(data, Mapping) else None
    text = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(text, str) or "error" in data:
        raise BackendError("the server's answer is not one of a chat", where=address)
    about = data.get("aipsy_judge")
    named = about.get("judge") if isinstance(about, Mapping) else None
    if not isinstance(about, Mapping) or not isinstance(named, str) or not named:
        raise BackendError(
            "the answer does not say which judge gave it: it comes from another model",
            where=address,
            hint="Name a judge that `aipsy-judge serve` serves there.",
        )
    if data.get("done_reason") != "stop":
        raise BackendError(f"the answer is not whole (done_reason {data.get('done_reason')!r})", where=address)
    return Answer(text, Tokens(_count(data.get("prompt_eval_count")), _count(data.get("eval_count"))), about)


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _error(address: str, answer: httpx.Response, data: Any) -> AipsyJudgeError:
    """A 503 without Retry-After is the server's word that the failure lasts; Inspect retries without end."""
    status = answer.status_code
    may_pass = status in (429, 502, 504) or (status == 503 and "retry-after" in answer.headers)
    said = data.get("error") if isinstance(data, Mapping) else None
    message = f"HTTP {status}: {said if isinstance(said, str) else 'no reason given'}"
    match status:
        case 401 | 403 | 404 | 421:
            return AccessError(message, where=address)
        case 409:
            return ContractError(message, where=address)
        case 400 | 413 | 422:
            return InputError(message, where=address)
        case _:
            return BackendError(message, where=address, retryable=may_pass)
