"""ShareGPT: `{"id"?, "system"?, "conversations": [{"from": "human|gpt|system|...", "value": "..."}, ...]}`.

`function_call` is the assistant's tool call (shown by name, not judged), `observation` its result.
"""

from __future__ import annotations

import json
from typing import Any

from ..conversation import Conversation
from .draft import Draft
from .parts import add_message, call, read_content
from .place import Place
from .roles import role_of

_LISTS = ("conversations", "conversation", "messages")


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def recognises(value: dict[str, Any]) -> bool:
    return _list_key(value) is not None


def read_object(value: dict[str, Any], place: Place) -> Conversation:
    key = _list_key(value)
    assert key is not None  # `recognises` was asked before
    id = next((value[i] for i in ("id", "conversation_id", "uuid") if value.get(i) is not None), None)
    draft = Draft(place)
    if isinstance(value.get("system"), str) and value["system"]:
        draft.add("system", value["system"])
    for n, message in enumerate(value[key]):
        _add(draft, message, place.at(key, n))
    return draft.conversation(id)


def read_messages(messages: list[Any], place: Place) -> Conversation:
    """The conversation that a bare list of messages is."""
    draft = Draft(place)
    for n, message in enumerate(messages):
        _add(draft, message, place.at(n))
    return draft.conversation()


def _list_key(value: dict[str, Any]) -> str | None:
    lists = ((key, value.get(key)) for key in _LISTS)
    return next((k for k, v in lists if isinstance(v, list) and v and is_message(v[0])), None)


def _add(draft: Draft, message: Any, place: Place) -> None:
    if not isinstance(message, dict):
        raise place.error("a message must be an object with from and value")
    speaker, value = message.get("from"), message.get("value")
    if "value" not in message:
        raise place.error("a message without value", hint='Write "value": "" where nothing was said.')
    if isinstance(speaker, str) and speaker.strip().lower() in ("function_call", "tool_call"):
        add_message(draft, "assistant", [call(_called(value))])
        return
    add_message(draft, role_of(speaker, place.at("from")), read_content(value, place.at("value"), draft.warn))


def _called(value: Any) -> object:
    """The name in `{"name": ..., "arguments": ...}`, which stands as a JSON string in the value."""
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return value.get("name") if isinstance(value, dict) else None
