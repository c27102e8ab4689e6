"""Claude data export: `conversations.json`, a list of `{"uuid", "name", "chat_messages": [...]}`.

A message is `{"uuid", "sender": "human|assistant", "text", "content": [{"type": "text|thinking|tool_use|..."}],
"attachments", "files", "parent_message_uuid"?}`. The text blocks of `content` are preferred to `text`, which also holds
remarks on what was left out. Where messages name their parents and branch, the thread that ends in
`current_leaf_message_uuid` is read, or without it the one that ends last, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..conversation import Conversation
from .draft import Draft
from .message_tree import leaves, thread_to
from .parts import Segment, add_message, read_content
from .place import Place
from .roles import role_of
from .skipping import Skip


def recognises(value: dict[str, Any]) -> bool:
    return isinstance(value.get("chat_messages"), list)


def read_object(value: dict[str, Any], place: Place, skip: Skip) -> Iterator[Conversation]:
    """At most one conversation: a chat in which nothing was written is passed over."""
    draft = Draft(place)
    messages = value["chat_messages"]
    for n in _thread(value, place.at("chat_messages"), draft):
        _add(draft, messages[n], place.at("chat_messages", n))
    if not draft.messages:
        skip(str(place), "an empty chat: no message in it")
        return
    metadata = {key: value[key] for key in ("name", "created_at") if value.get(key)}
    yield draft.conversation(value.get("uuid"), metadata)


def _thread(value: dict[str, Any], place: Place, draft: Draft) -> list[int]:
    """The numbers of the messages to read: all of them, unless they branch."""
    messages = value["chat_messages"]
    for n, message in enumerate(messages):
        if not isinstance(message, dict):
            raise place.at(n).error("a message must be an object")
    numbers = {m["uuid"]: n for n, m in enumerate(messages) if isinstance(m.get("uuid"), str)}
    parents = {id: _parent(messages[n], numbers) for id, n in numbers.items()}
    if len(numbers) < len(messages) or not any(parents.values()):
        return list(range(len(messages)))
    ends = leaves(parents)
    leaf = value.get("current_leaf_message_uuid")
    if not isinstance(leaf, str) or leaf not in numbers:
        leaf = ends[-1]
        if len(ends) > 1:
            draft.warn("the chat branches: the thread that ends last was taken")
    return [numbers[id] for id in thread_to(leaf, parents)]


def _parent(message: dict[str, Any], known: dict[str, int]) -> str | None:
    """The first message names a parent too, an all-zero one that is not in the file."""
    parent = message.get("parent_message_uuid")
    return parent if isinstance(parent, str) and parent in known else None


def _add(draft: Draft, message: dict[str, Any], place: Place) -> None:
    role = role_of(message.get("sender"), place.at("sender"))
    segments = read_content(message.get("content"), place.at("content"), draft.warn)
    if not any(s.text for s in segments):
        segments = read_content(message.get("text"), place.at("text"), draft.warn)
    add_message(draft, role, segments + _files(message, draft))


def _files(message: dict[str, Any], draft: Draft) -> list[Segment]:
    lists = (message.get(key) for key in ("attachments", "files"))
    count = sum(len(files) for files in lists if isinstance(files, list))
    for _ in range(count):
        draft.warn("file omitted")
    return [Segment("text", "[file omitted]")] * count
