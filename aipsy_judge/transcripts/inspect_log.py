"""Inspect logs: the JSON form `{"version", "status", "eval", "samples": [...]}`, and one sample of it or of an `.eval`.

A sample is `{"id", "epoch", "messages": [...], "attachments": {hash: text}}`; a text written `attachment://hash` stands
in `attachments`. Its conversation is called `<id>_epoch_<n>`, as its entry in an `.eval` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..conversation import Conversation
from .chat import add_chat_message
from .draft import Draft
from .place import Place
from .skipping import Skip

# The second is how logs of 2024 wrote it.
_PROTOCOLS = ("attachment://", "tc://")


def recognises_log(value: dict[str, Any]) -> bool:
    return isinstance(value.get("eval"), dict) and "version" in value and "status" in value


def recognises_sample(value: dict[str, Any]) -> bool:
    return isinstance(value.get("messages"), list) and "epoch" in value and "target" in value


def read_log(value: dict[str, Any], place: Place, skip: Skip) -> Iterator[Conversation]:
    samples = value.get("samples")
    if not isinstance(samples, list) or not samples:
        raise place.error(
            "an Inspect log without samples",
            hint="It was written as a header only, or no sample was finished.",
        )
    about = header_metadata(value)
    for n, sample in enumerate(samples):
        where = place.at("samples", n)
        if not isinstance(sample, dict) or not isinstance(sample.get("messages"), list):
            raise where.error("a sample must be an object with messages")
        yield from read_sample(sample, where, skip, about)


def header_metadata(log: Any) -> dict[str, Any]:
    """Task and model, from a log or its `header.json`."""
    about = log.get("eval") if isinstance(log, dict) else None
    return {k: about[k] for k in ("task", "model") if isinstance(about.get(k), str)} if isinstance(about, dict) else {}


def read_sample(
    sample: dict[str, Any], place: Place, skip: Skip, about: dict[str, Any] | None = None
) -> Iterator[Conversation]:
    """At most one conversation: a sample that failed before its first message is passed over."""
    draft = Draft(place)
    for n, message in enumerate(sample["messages"]):
        where = place.at("messages", n)
        add_chat_message(draft, _resolved(message, sample.get("attachments"), where), where)
    if not draft.messages:
        skip(str(place), "a sample without messages")
        return
    if sample.get("error"):
        draft.warn("the sample ended in an error: its conversation may be cut short")
    id, epoch = sample.get("id"), sample.get("epoch")
    name = f"{id}_epoch_{epoch}" if isinstance(id, str | int) and isinstance(epoch, int) else None
    metadata = {"sample": id, "epoch": epoch, **(about or {})}
    yield draft.conversation(name, {k: v for k, v in metadata.items() if isinstance(v, str | int)})


def _resolved(message: Any, attachments: Any, place: Place) -> Any:
    if not isinstance(message, dict):
        return message
    return {**message, "content": _text(message.get("content"), attachments, place.at("content"))}


def _text(content: Any, attachments: Any, place: Place) -> Any:
    if isinstance(content, list):
        return [_text(part, attachments, place.at(n)) for n, part in enumerate(content)]
    if isinstance(content, dict):
        return {**content, "text": _text(content["text"], attachments, place)} if "text" in content else content
    if not isinstance(content, str) or not content.startswith(_PROTOCOLS):
        return content
    text = attachments.get(content.split("://", 1)[1]) if isinstance(attachments, dict) else None
    if not isinstance(text, str):
        raise place.error("a text that stands as an attachment is missing from the log")
    return text
