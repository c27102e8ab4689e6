"""The judge's seat of aipsy-bench: its frozen prompt recognised by hash, and its layout read back as a conversation.

The client inserts messages raw, one after another behind `[USER] ` and `[AI] `, so what a message says can look like
the layout. Which lines are the client's own follows from what it always does: speakers alternate, the history ends
with the user, and one heading stands before the message to be judged. A tag that breaks the alternation is text of
the message it stands in. Where two headings would both fit nothing decides between them, and a reply that forges one
must not choose what is judged: that is refused.

What no reading can tell is an earlier reply that holds a whole further exchange, `[USER] ` and `[AI] ` in turn: byte
for byte it is what the client writes of two replies. It is read as two, so the context then holds words as the user's
that the user never said; what is judged stays the message to be judged. `turn` counts those replies too, and a client
that knows how many there were can tell by it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from ..bench_contract import SYSTEM_SHA256
from ..conversation import Conversation, Message, Role
from .refusal import Refusal

_HISTORY = "CONVERSATION HISTORY:\n"
_TARGET = "\n\nTARGET MESSAGE TO EVALUATE:\n[AI] "
MOST_HEADINGS = 32  # each is tried, in a text that may be long
MOST_TAGS = 10_000  # tagged lines; the benchmark's talks have some dozens
_TAG = re.compile(r"^\[(USER|AI)\] ", re.MULTILINE)
_ROLES: dict[str, Role] = {"USER": "user", "AI": "assistant"}


@dataclass(frozen=True, slots=True)
class Seat:
    """What the benchmark asks: judge the last message. `turn` counts the assistant's messages from 1.

    Earlier replies are context and not judged again. `forged` counts the tags and headings that are known to be text of
    a message; a whole exchange in a reply is not among them, but counted in `turn`.
    """

    conversation: Conversation
    turn: int
    forged: int


def is_bench_prompt(system: str) -> bool:
    """Whether this is the benchmark's frozen system text, to the byte."""
    return hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest() == SYSTEM_SHA256


def read_seat(text: str) -> Seat:
    """The conversation that the benchmark's user message holds. Refusal(422) where it holds none, or two."""
    if not text.startswith(_HISTORY):
        raise Refusal(422, "The system prompt is the benchmark's, but the user message does not have its layout.")
    if text.count(_TARGET) > MOST_HEADINGS:
        raise Refusal(422, f"The user message holds more than {MOST_HEADINGS} headings of the layout.")
    body = text[len(_HISTORY) - 1 :]  # with the newline before it
    if body.count("\n[USER] ") + body.count("\n[AI] ") > MOST_TAGS:
        raise Refusal(422, f"The user message holds more than {MOST_TAGS} lines of the layout.")
    readings = _readings(body)
    if not readings:
        raise Refusal(422, "The user message holds no history that ends with the user and one message to evaluate.")
    if len(readings) > 1:
        raise Refusal(
            422,
            f"Where the message to evaluate begins can be read in {len(readings)} ways: a message imitates the layout.",
            hint="Judge the conversation with `aipsy-judge score` or POST /v1/score, where messages are kept apart.",
        )
    return _seat(body, readings[0])


@dataclass(frozen=True, slots=True)
class _Reading:
    """A heading, the tags before it that are the client's own, and how many of the others are text."""

    heading: re.Match[str]
    kept: tuple[re.Match[str], ...]
    inside: int


def _readings(text: str) -> list[_Reading]:
    """One for every heading before which the history ends with the user, all in one pass over the tags.

    Users' turns are the benchmark's own script; what is not to be trusted is the assistant's replies. So a second
    `[AI]` in a row is part of the reply, and of several `[USER]` in a row behind a reply the last is the real one.
    """
    tags = list(_TAG.finditer(text))
    if not tags or tags[0].start() != 1:
        return []
    found: list[_Reading] = []
    kept: list[re.Match[str]] = []
    read = 0
    for heading in re.finditer(re.escape(_TARGET), text):
        while read < len(tags) and tags[read].end() <= heading.start():
            _keep(kept, tags[read])
            read += 1
        if kept and kept[-1].group(1) == "USER":
            found.append(_Reading(heading, tuple(kept), read - len(kept)))
    return found


def _keep(kept: list[re.Match[str]], tag: re.Match[str]) -> None:
    if not kept or tag.group(1) != kept[-1].group(1):
        kept.append(tag)
    elif tag.group(1) == "USER" and len(kept) > 1:
        kept[-1] = tag


def _seat(text: str, reading: _Reading) -> Seat:
    start, target = reading.heading.start(), text[reading.heading.end() :]
    ends = [t.start() - 1 for t in reading.kept[1:]] + [start]
    history = [
        Message(_ROLES[t.group(1)], text[t.end() : end], spoken=t.group(1) == "USER")
        for t, end in zip(reading.kept, ends, strict=True)
    ]
    forged = reading.inside + len(_TAG.findall(target)) + text.count(_TARGET) - 1
    turn = 1 + sum(m.role == "assistant" for m in history)
    return Seat(_conversation(history, target), turn, forged)


def _conversation(history: list[Message], target: str) -> Conversation:
    messages = (*history, Message("assistant", target))
    digest = hashlib.sha256("\x00".join(m.content for m in messages).encode("utf-8", "surrogatepass")).hexdigest()
    return Conversation(f"aipsy-bench/{digest[:16]}", messages)
