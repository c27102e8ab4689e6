"""Content as a list of parts: what is said, what is a tool call or result, what cannot be shown as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..conversation import Role
from .draft import Draft
from .place import Place


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a message, in the order of the file."""

    kind: Literal["text", "call", "result"]
    text: str


Warn = Callable[[str], None]

_TEXT = {"text", "input_text", "output_text", "summary_text", "refusal", "audio_transcription", "transcript"}
CALLS = {"tool_use", "tool_call", "function_call", "server_tool_use", "mcp_tool_use", "mcp_call", "custom_tool_call"}
RESULT = re.compile(r"^(\w+_)?(tool_result|tool_call_output|function_call_output|tool_response)$")
_THOUGHT = re.compile(r"think|thought|reason", re.IGNORECASE)
_MEDIA = ("image", "audio", "video", "file", "document")


def read_content(content: Any, place: Place, warn: Warn) -> list[Segment]:
    """The segments of a message's content: a string, null, one part, or a list of strings and parts.

    Text parts are kept. An image, audio, video, file or unknown part becomes `[image omitted]` and so on, and thoughts
    are left out; both with a warning. Raises TranscriptError for a part that is none of these.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [Segment("text", content)]
    if isinstance(content, dict):
        return _part(content, place, warn)
    if isinstance(content, list):
        return [s for n, part in enumerate(content) for s in _item(part, place.at(n), warn)]
    raise place.error("content must be text, a list of parts, or null", hint='For example "content": "Hello".')


def _item(part: Any, place: Place, warn: Warn) -> list[Segment]:
    if part is None:
        return []
    if isinstance(part, str):
        return [Segment("text", part)]
    if isinstance(part, dict):
        return _part(part, place, warn)
    raise place.error("a part of a message must be text or an object with a type")


def _part(part: dict[str, Any], place: Place, warn: Warn) -> list[Segment]:
    kind = part.get("type", part.get("content_type", "text" if "text" in part else None))
    if not isinstance(kind, str):
        raise place.error("a part of a message must be text or an object with a type")
    if kind in _TEXT:
        return _text(part.get("text", part.get(kind)), place, warn)
    if kind in CALLS:
        return [call(part.get("name"))]
    if RESULT.match(kind):
        return _result(part, place, warn)
    if _THOUGHT.search(kind):
        warn("thoughts left out")
        return []
    return [_omitted(kind, warn)]


def _text(text: Any, place: Place, warn: Warn) -> list[Segment]:
    if isinstance(text, dict):  # {"value": ..., "annotations": [...]}, as in OpenAI threads
        text = text.get("value")
    if text is None:
        return []
    if not isinstance(text, str):
        raise place.error("the text of a part must be text")
    return [Segment("text", text)]


def _result(part: dict[str, Any], place: Place, warn: Warn) -> list[Segment]:
    content = part.get("content", part.get("output", part.get("result")))
    inner = read_content(content, place, warn) if isinstance(content, str | list) else []
    return [Segment("result", joined(inner) or "[tool result]")]


def _omitted(kind: str, warn: Warn) -> Segment:
    medium = next((m for m in _MEDIA if m in kind.lower()), "part")
    warn(f"{medium} omitted")
    return Segment("text", f"[{medium} omitted]")


def call(name: object) -> Segment:
    """The segment of a tool call; only its name is shown, its arguments never."""
    shown = " ".join(name.split())[:64] if isinstance(name, str) else ""
    return Segment("call", f"[tool call: {shown or 'unnamed'}]")


def joined(segments: list[Segment]) -> str:
    return "\n".join(s.text for s in segments if s.text)


def add_message(draft: Draft, role: Role, segments: list[Segment], *, spoken: bool = True) -> None:
    """Add one message of the file to `draft`.

    Its texts are joined with newlines into one spoken message, so that a reply stays one turn; it stands where its
    last text stood among the tool calls and results, which are added unspoken, one each. A message of tool calls or
    results alone says nothing; a message without anything is kept, empty. A tool's message is never spoken.
    """
    texts = [s for s in segments if s.kind == "text"]
    if role == "tool":
        draft.add("tool", joined(segments), spoken=False)
        return
    if len(texts) == len(segments):
        draft.add(role, joined(texts), spoken=spoken)
        return
    last = max((n for n, s in enumerate(segments) if s.kind == "text" and s.text.strip()), default=-1)
    for n, segment in enumerate(segments):
        if n == last:
            draft.add(role, joined(texts), spoken=spoken)
        elif segment.kind != "text":
            draft.add("assistant" if segment.kind == "call" else "tool", segment.text, spoken=False)
