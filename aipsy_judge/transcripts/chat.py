"""OpenAI chat messages, and what is written like them: TRL, Hugging Face, Anthropic, recorded benchmark items.

`[{"role": ..., "content": ...}, ...]`, or an object that holds such a list as "messages", "conversation" or
"conversations"; the items of OpenAI's Responses API are read too. Only role and text are taken from a message.
Null content with tool calls is shown as `[tool call: name]`, which is not judged; a tool's result is context.
"""

from __future__ import annotations

from typing import Any

from ..conversation import Conversation
from .draft import Draft
from .parts import CALLS, RESULT, Segment, add_message, call, read_content
from .place import Place
from .roles import role_of

LISTS = ("messages", "conversation", "conversations")
_IDS = ("id", "item_id", "conversation_id", "uuid")
_METADATA = ("metadata", "meta")


def is_message(value: Any) -> bool:
    """Whether `value` looks like one chat message (or one item of a Responses API list)."""
    if not isinstance(value, dict) or any(isinstance(value.get(key), list) for key in LISTS):
        return False
    return isinstance(value.get("role"), str) or _item_type(value) is not None


def holds_messages(value: dict[str, Any]) -> bool:
    return any(isinstance(value.get(key), list) for key in LISTS)


def read_object(value: dict[str, Any], place: Place) -> Conversation:
    key = next(key for key in LISTS if isinstance(value.get(key), list))
    metadata = next((value[m] for m in _METADATA if isinstance(value.get(m), dict)), None)
    id = next((value[i] for i in _IDS if value.get(i) is not None), None)
    draft = Draft(place)
    if value.get("system"):  # Anthropic's requests hold it beside the messages
        add_message(draft, "system", read_content(value["system"], place.at("system"), draft.warn))
    for n, message in enumerate(value[key]):
        add_chat_message(draft, message, place.at(key, n))
    return draft.conversation(id, metadata)


def read_messages(messages: list[Any], place: Place) -> Conversation:
    """The conversation that a bare list of messages is."""
    draft = Draft(place)
    for n, message in enumerate(messages):
        add_chat_message(draft, message, place.at(n))
    return draft.conversation()


def add_chat_message(draft: Draft, message: Any, place: Place) -> None:
    """Add one message to `draft`. Raises TranscriptError when it is no message, or its role is unknown."""
    if not isinstance(message, dict):
        raise place.error("a message must be an object with role and content")
    if "role" not in message and _item_type(message):
        _add_item(draft, message, place)
        return
    role = role_of(message.get("role"), place.at("role"))
    segments = _segments(message, place, draft)
    if message.get("reasoning_content"):
        draft.warn("thoughts left out")
    spoken = message.get("spoken", True)
    if not isinstance(spoken, bool):
        raise place.at("spoken").error("spoken must be true or false")
    add_message(draft, role, segments, spoken=spoken)


def _segments(message: dict[str, Any], place: Place, draft: Draft) -> list[Segment]:
    calls = _calls(message, place)
    key = next((k for k in ("content", "text", "parts") if k in message), "content")
    said = read_content(message.get(key), place.at(key), draft.warn)
    if not said:
        said = _said_elsewhere(message)
    if key not in message and not said and not calls:
        raise place.error("a message without content", hint='Write "content": "" where nothing was said.')
    return said + calls


def _said_elsewhere(message: dict[str, Any]) -> list[Segment]:
    """A refusal, or the transcript of a spoken reply: OpenAI leaves the content null for both."""
    audio = message.get("audio")
    texts = (message.get("refusal"), audio.get("transcript") if isinstance(audio, dict) else None)
    return [Segment("text", t) for t in texts if isinstance(t, str) and t]


def _calls(message: dict[str, Any], place: Place) -> list[Segment]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise place.at("tool_calls").error("tool_calls must be a list")
    named = [_call_name(c) for c in calls]
    if isinstance(message.get("function_call"), dict):
        named.append(message["function_call"].get("name"))
    return [call(name) for name in named]


def _call_name(value: Any) -> object:
    if not isinstance(value, dict):
        return None
    function = value.get("function")
    # OpenAI nests the name; Inspect gives the function's name itself; others say "name".
    return function.get("name") if isinstance(function, dict) else function or value.get("name")


def _item_type(value: dict[str, Any]) -> str | None:
    """The type of an item that is no message of a role: a call, its output, or reasoning."""
    kind = value.get("type")
    return kind if isinstance(kind, str) and (kind in CALLS or kind == "reasoning" or RESULT.match(kind)) else None


def _add_item(draft: Draft, item: dict[str, Any], place: Place) -> None:
    if item["type"] == "reasoning":
        draft.warn("thoughts left out")
    else:
        add_message(draft, "assistant", read_content([item], place, draft.warn))
