"""Any server that speaks OpenAI's chat completions. What it does not support is found out once and written down.

Asked for first: greedy decoding, and our JSON schema. A 400 that names a parameter drops it; one that does not goes
a step down: schema, schema without lengths, any JSON object, the prompt alone. From there on every call is made so,
and every reply notes it. Whatever was promised, the reply is validated like any other.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from ..schema import without_lengths
from .protocol import Reply
from .refusals import as_error, is_blocked, is_too_long
from .server_name import ServerName, checked_key
from .wire import LOOPBACK_TIMEOUT_SECONDS, REMOTE_TIMEOUT_SECONDS, Patience, Problem, Wire

FORMATS = ("schema", "schema_without_lengths", "json_object", "prompt")
TOP_LOGPROBS = 20  # the most that OpenAI and vLLM allow
_DROPPABLE = ("temperature", "seed", "logprobs", "top_logprobs")

# How servers say the three things that matter. Anything else counts as "did not say that it finished".
_FINISHES = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety", "refusal", "recitation", "prohibited_content"), "content_filter"),
}


@dataclass(frozen=True, slots=True)
class Manner:
    """How this server is asked, as found out so far."""

    format: int = 0
    dropped: frozenset[str] = frozenset()
    budget_key: str = "max_tokens"

    def notes(self, constrained: bool) -> tuple[str, ...]:
        """Every departure from what was asked for first."""
        notes = [f"dropped:{name}" for name in sorted(self.dropped)]
        if self.budget_key != "max_tokens":
            notes.append("max_completion_tokens")
        if constrained and self.format:
            notes.append(f"format:{FORMATS[self.format]}")
        return tuple(notes)


class OpenAIBackend:
    """A ReplyBackend over one server and model.

    `key` None takes AIPSY_JUDGE_API_KEY, or OPENAI_API_KEY for OpenAI itself and this machine only: a key is never
    sent to a server that it may not be meant for. `timeout_seconds` None: 600 on this machine, else 120.
    """

    def __init__(
        self,
        server: ServerName,
        *,
        key: str | None = None,
        timeout_seconds: float | None = None,
        patience: Patience | None = None,
        logprobs: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = server
        self._logprobs = logprobs
        self._manner = Manner()
        local = server.is_loopback
        default = LOOPBACK_TIMEOUT_SECONDS if local else REMOTE_TIMEOUT_SECONDS
        self._wire = Wire(
            server.url,
            loopback=local,
            patience=patience or Patience(timeout_seconds or default),
            secret=checked_key(key if key is not None else key_for(server), "AIPSY_JUDGE_API_KEY"),
            sleep=sleep,
        )

    @property
    def name(self) -> str:
        return self._server.text

    @property
    def is_remote(self) -> bool:
        return not self._server.is_loopback

    def ask(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None, max_tokens: int) -> Reply:
        """One reply. Raises CapacityError where the prompt does not fit, AccessError, BackendError."""
        manner = self._manner
        while True:
            body = self._body(manner, messages, schema, max_tokens)
            answer = self._wire.post("chat/completions", body)
            notes = manner.notes(schema is not None)
            if answer.problem is None:
                self._manner = manner
                return _read(answer.data, notes)
            if is_blocked(answer.problem):
                return Reply(None, "content_filter", notes=(*notes, "blocked_by_server"))
            changed = _adapt(manner, answer.problem, body)
            if changed is None:
                raise as_error(answer.problem, where=self.name, model=self._server.model)
            manner = changed

    def describe(self) -> dict[str, Any]:
        return {
            "backend": "openai",
            "url": self._server.url.split("?")[0],
            "model": self._server.model,
            "temperature": 0,
            "seed": 0,
            "logprobs": self._logprobs,
        }

    def close(self) -> None:
        self._wire.close()

    def _body(
        self,
        manner: Manner,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any] | None,
        max_tokens: int,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._server.model,
            "messages": [{"role": m["role"], "content": m["content"]} for m in messages],
            "temperature": 0,
            "seed": 0,
            "stream": False,
            manner.budget_key: max_tokens,
        }
        if self._logprobs:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if schema is not None:
            body |= _format(FORMATS[manner.format], schema, body["messages"])
        return {k: v for k, v in body.items() if k not in manner.dropped}


def key_for(server: ServerName) -> str | None:
    """The key in the environment that is meant for this server."""
    own = os.environ.get("AIPSY_JUDGE_API_KEY")
    if own:
        return own
    host = urlsplit(server.url).hostname or ""
    is_openai = server.url.startswith("https://") and (host == "openai.com" or host.endswith(".openai.com"))
    return os.environ.get("OPENAI_API_KEY") if is_openai or server.is_loopback else None


def _format(name: str, schema: Mapping[str, Any], messages: list[dict[str, str]]) -> dict[str, Any]:
    if name == "json_object" or name == "prompt":
        asked = f"Answer with one JSON object that fits this JSON schema, and nothing else: {json.dumps(schema)}"
        told = [*messages[:-1], {**messages[-1], "content": f"{messages[-1]['content']}\n\n{asked}"}]
        return {"messages": told} | ({"response_format": {"type": "json_object"}} if name == "json_object" else {})
    sent = schema if name == "schema" else without_lengths(schema)
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": sent},
        }
    }


def _adapt(manner: Manner, problem: Problem, body: Mapping[str, Any]) -> Manner | None:
    """The next manner to try after a refusal, or None where there is none. Each step is taken at most once."""
    if problem.status not in (400, 422) or is_too_long(problem):
        return None
    named = [n for n in ("max_tokens", *_DROPPABLE) if n in body and _names(problem, n)]
    if "max_tokens" in named:
        return replace(manner, budget_key="max_completion_tokens")
    if named:
        dropped = {"logprobs", "top_logprobs"} if "logprobs" in named[0] else {named[0]}
        return replace(manner, dropped=manner.dropped | dropped)
    # The last step has no response_format any more, so that a plain 400 ends here.
    if "response_format" in body and manner.format < len(FORMATS) - 1:
        return replace(manner, format=manner.format + 1)
    return None


def _names(problem: Problem, parameter: str) -> bool:
    return problem.param == parameter or bool(re.search(rf"\b{parameter}\b", problem.message))


def _read(data: Mapping[str, Any], notes: tuple[str, ...]) -> Reply:
    """A chat completion as a Reply. Whatever is missing or of another shape is None, never guessed."""
    choices = data.get("choices")
    choice = _dict(choices[0] if isinstance(choices, list) and choices else None)
    message = _dict(choice.get("message"))
    said = choice.get("finish_reason")
    finish = _FINISHES.get(said.lower()) if isinstance(said, str) else None
    if message.get("refusal"):
        finish = "content_filter"
    thinking = message.get("reasoning_content") or message.get("reasoning")
    kept = {k: data[k] for k in ("model", "system_fingerprint", "usage") if k in data}
    return Reply(
        text=_text(message.get("content")),
        finish=finish,
        thinking=thinking if isinstance(thinking, str) else None,
        raw={**kept, "finish_reason": said, "logprobs": choice.get("logprobs")},
        notes=notes,
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(content: Any) -> str | None:
    """Content is a text, or a list of parts of which those with text count."""
    if isinstance(content, list):
        texts = [p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str)]
        return "".join(texts) if texts else None
    return content if isinstance(content, str) else None
