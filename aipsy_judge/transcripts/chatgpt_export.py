"""ChatGPT data export: `conversations.json`, a list of `{"title", "current_node", "mapping": {id: node}}`.

A node is `{"parent", "children", "message": {"author": {"role"}, "content": {"content_type", "parts"}, ...}}`: a tree,
for edited prompts and repeated replies are kept. The thread that ends in `current_node` is read, the other branches are
not. Where `current_node` is missing (old exports), it is the newest leaf, or the deepest where no times are given, with
a warning if there are several. Left out: nodes that the app hid (weight 0, hidden, system prompts, custom
instructions), and thoughts. Tool calls and results are kept unspoken. An assistant's empty node is a reply only where
no reply with text stands before the next user message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..conversation import Conversation, Message
from .draft import Draft
from .message_tree import depths, leaves, thread_to
from .parts import Segment, add_message, call, read_content
from .place import Place
from .roles import role_of
from .skipping import Skip

_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
_THOUGHTS = ("thoughts", "reasoning_recap")


def recognises(value: dict[str, Any]) -> bool:
    return isinstance(value.get("mapping"), dict)


def read_object(value: dict[str, Any], place: Place, skip: Skip) -> Iterator[Conversation]:
    """At most one conversation: one whose thread shows no message is passed over."""
    draft = Draft(place)
    nodes = value["mapping"]
    for node in _thread(value, place, draft):
        message = nodes[node].get("message")
        if message is not None:
            _add(draft, message, place.at("mapping", node, "message"))
    draft.messages = list(_without_placeholders(draft.messages))
    if not draft.messages:
        skip(str(place), "an empty chat: no message to show")
        return
    id = value.get("conversation_id") or value.get("id")
    metadata = {key: value[key] for key in ("title", "create_time") if value.get(key) is not None}
    yield draft.conversation(id, metadata)


def _thread(value: dict[str, Any], place: Place, draft: Draft) -> list[str]:
    nodes: dict[str, Any] = value["mapping"]
    for id, node in nodes.items():
        if not isinstance(node, dict):
            raise place.at("mapping", id).error("a node must be an object")
    if not nodes:
        return []
    parents = _parents(nodes)
    leaf = value.get("current_node")
    if not isinstance(leaf, str) or leaf not in nodes:
        deep, ends = depths(parents), leaves(parents)
        leaf = max(ends, key=lambda id: (_time(nodes[id]), deep[id]))
        if len(ends) > 1:
            draft.warn("the chat branches and names no current_node: the newest thread was taken")
    thread = thread_to(leaf, parents)
    above = parents[thread[0]]
    if above is not None:
        draft.warn("the thread has no beginning: a message above it is missing from the file")
    return thread


def _parents(nodes: dict[str, Any]) -> dict[str, str | None]:
    """By `parent`, and where a node does not name it, by the `children` of another."""
    by_child = {
        child: id
        for id, node in nodes.items()
        for child in (node.get("children") if isinstance(node.get("children"), list) else [])
        if isinstance(child, str)
    }
    return {
        id: node["parent"] if isinstance(node.get("parent"), str) else by_child.get(id) for id, node in nodes.items()
    }


def _time(node: dict[str, Any]) -> float:
    message = node.get("message")
    time = message.get("create_time") if isinstance(message, dict) else None
    return time if isinstance(time, int | float) and time == time else 0.0


def _add(draft: Draft, message: Any, place: Place) -> None:
    author = message.get("author") if isinstance(message, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(author, dict) or not isinstance(content, dict):
        raise place.error("a message must be an object with author and content")
    role = role_of(author.get("role"), place.at("author", "role"))
    kind = content.get("content_type", "text")
    if role == "system" or kind in _INSTRUCTIONS or _hidden(message):
        return
    if kind in _THOUGHTS or message.get("channel") == "analysis":
        draft.warn("thoughts left out")
    elif role == "assistant" and message.get("recipient") not in (None, "", "all"):
        add_message(draft, role, [call(message["recipient"])])
    else:
        add_message(draft, role, _content(content, place.at("content"), draft))


def _hidden(message: dict[str, Any]) -> bool:
    metadata = message.get("metadata")
    flagged = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    return flagged or message.get("weight") in (0, 0.0)


def _content(content: dict[str, Any], place: Place, draft: Draft) -> list[Segment]:
    if "parts" in content:
        return read_content(_transcribed(content["parts"]), place.at("parts"), draft.warn)
    key = next((k for k in ("text", "result") if isinstance(content.get(k), str)), None)
    if key:
        return [Segment("text", content[key])]
    draft.warn("part omitted")
    return [Segment("text", "[part omitted]")]


def _transcribed(parts: Any) -> Any:
    """Spoken messages come as a transcription with its recording: where the words are there, nothing is omitted."""
    if not isinstance(parts, list):
        return parts
    kinds = [str(p.get("content_type")) if isinstance(p, dict) else "" for p in parts]
    if "audio_transcription" not in kinds:
        return parts
    return [p for p, kind in zip(parts, kinds, strict=True) if not (kind.endswith("_pointer") and "audio" in kind)]


def _without_placeholders(messages: list[Message]) -> Iterator[Message]:
    """The app writes an empty assistant node before a tool call; it is no turn if a reply with text follows."""
    replied = False
    kept = []
    for message in reversed(messages):
        spoken = message.role == "assistant" and message.spoken
        if not (spoken and replied and not message.content.strip()):
            kept.append(message)
        replied = spoken or (replied and message.role != "user")
    yield from reversed(kept)
