"""Which shape a JSON value has, told by its keys and never by the name of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..conversation import Conversation
from . import chat, chatgpt_export, claude_export, inspect_log, rows, sharegpt
from .place import Place, UnknownShape
from .skipping import Skip

_Object = dict[str, Any]


def _one(read: Callable[[_Object, Place], Conversation]) -> Callable[[_Object, Place, Skip], Iterator[Conversation]]:
    return lambda value, place, skip: iter([read(value, place)])


def _holds_conversations(value: _Object) -> bool:
    return isinstance(value.get("conversations"), list)


def _read_bundle(value: _Object, place: Place, skip: Skip) -> Iterator[Conversation]:
    for n, element in enumerate(value["conversations"]):
        yield from read_value(element, place.at("conversations", n), skip)


def _read_pair(value: _Object, place: Place) -> Conversation:
    columns = rows.columns_of(value, place)
    assert columns is not None  # `is_pair` was asked before
    return next(rows.grouped([rows.row_of(value, columns, place)], place))


# How to tell a shape, and how to read it. The first that recognises an object reads it: narrow shapes come first.
_OBJECTS: tuple[
    tuple[str, Callable[[_Object], bool], Callable[[_Object, Place, Skip], Iterator[Conversation]]], ...
] = (
    ("an Inspect log", inspect_log.recognises_log, inspect_log.read_log),
    ("an Inspect sample", inspect_log.recognises_sample, inspect_log.read_sample),
    ("a ChatGPT export", chatgpt_export.recognises, chatgpt_export.read_object),
    ("a Claude export", claude_export.recognises, claude_export.read_object),
    ("ShareGPT", sharegpt.recognises, _one(sharegpt.read_object)),
    ("chat messages", chat.holds_messages, _one(chat.read_object)),
    ("a list of conversations", _holds_conversations, _read_bundle),
    ("a prompt with its response", rows.is_pair, _one(_read_pair)),
)


def read_value(value: Any, place: Place, skip: Skip) -> Iterator[Conversation]:
    """The conversations of one JSON value: an object that holds one or several, or a list of messages.

    Raises UnknownShape, naming the shapes tried, when it is none of them.
    """
    if isinstance(value, list):
        if not value:
            raise place.error("an empty list: no message in it")
        yield _read_message_list(value, place)
        return
    if isinstance(value, dict):
        for _, recognises, read in _OBJECTS:
            if recognises(value):
                yield from read(value, place, skip)
                return
    raise _unknown(value, place)


def _read_message_list(messages: list[Any], place: Place) -> Conversation:
    """The one conversation that a bare list of messages is."""
    if sharegpt.is_message(messages[0]):
        return sharegpt.read_messages(messages, place)
    if chat.is_message(messages[0]):
        return chat.read_messages(messages, place)
    raise _unknown(messages[0], place.at(0))


def _unknown(value: Any, place: Place) -> UnknownShape:
    tried = ", ".join(name for name, _, _ in _OBJECTS)
    return UnknownShape(
        f"not a transcript: {_describe(value)}; tried: {tried}",
        where=str(place),
        hint='Write a conversation as {"messages": [{"role": "user", "content": "..."}, ...]}.',
    )


def _describe(value: Any) -> str:
    """What the value is, without any of its text."""
    if isinstance(value, dict):
        keys = ", ".join(repr(key[:30]) for key in list(value)[:6])
        return f"an object with the keys {keys}" if value else "an empty object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "null" if value is None else f"a single {type(value).__name__}"
