"""Which shape a JSON value has, told by its keys and never by the name of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..conversation import Conversation
from . import chat
from .place import Place, UnknownShape

# name, how to tell it, how to read it; the first that recognises the object reads it.
_OBJECTS: tuple[tuple[str, Callable[[dict[str, Any]], bool], Callable[[dict[str, Any], Place], Conversation]], ...] = (
    ("chat messages", chat.holds_messages, chat.read_object),
)


def read_value(value: Any, place: Place) -> Iterator[Conversation]:
    """The conversations of one JSON value: an object that holds one or several, or a list of messages."""
    if isinstance(value, list):
        yield chat.read_messages(value, place)
        return
    if isinstance(value, dict):
        for _, recognises, read in _OBJECTS:
            if recognises(value):
                yield read(value, place)
                return
    raise unknown(value, place)


def unknown(value: Any, place: Place) -> UnknownShape:
    tried = ", ".join(name for name, _, _ in _OBJECTS)
    return UnknownShape(
        f"not a transcript: {describe(value)}; tried as {tried}",
        where=str(place),
        hint='Write a conversation as {"messages": [{"role": "user", "content": "..."}, ...]}.',
    )


def describe(value: Any) -> str:
    """What the value is, without any of its text."""
    if isinstance(value, dict):
        keys = ", ".join(repr(str(k)[:30]) for k in list(value)[:6])
        return f"an object with the keys {keys}" if value else "an empty object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "null" if value is None else f"a single {type(value).__name__}"
