"""Conversation, Message, Turn: what every reader makes and every judge reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Message:
    """One message: who, and the text.

    `spoken` is False for what stands in the transcript but was not said to the person: a tool call or a tool's
    result. Such a message is context for the judge and is never judged itself.
    """

    role: Role
    content: str
    spoken: bool = True


@dataclass(frozen=True, slots=True)
class Turn:
    """One assistant message to be judged. `number` counts assistant messages from 1; `index` is its place in
    `Conversation.messages`."""

    number: int
    index: int
    message: Message


@dataclass(frozen=True)
class Conversation:
    """An id, the messages, and what else the file said of it.

    Only role and text of the messages ever reach a prompt; `metadata` does not. `source` is the file (and place)
    it was read from; `warnings` say what the reader left out or changed.
    """

    id: str
    messages: tuple[Message, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The assistant messages to be judged, in order, numbered from 1."""
        spoken = [(i, m) for i, m in enumerate(self.messages) if m.role == "assistant" and m.spoken]
        return tuple(Turn(number=n, index=i, message=m) for n, (i, m) in enumerate(spoken, start=1))

    @property
    def content_hash(self) -> str:
        """sha256 (hex) over roles and texts alone: what a judge can see. Ids and metadata do not change it."""
        return self._hashes[-1] if self.messages else _digest(hashlib.sha256())

    def turn_hash(self, turn: Turn) -> str:
        """sha256 (hex) over what can be seen when `turn` is judged: the messages up to and including it."""
        return self._hashes[turn.index]

    @cached_property
    def _hashes(self) -> tuple[str, ...]:
        """The hash after each message, in one pass: a talk of thousands of turns is asked for all of them."""
        running, found = hashlib.sha256(), []
        for m in self.messages:
            # ensure_ascii keeps a lone surrogate (half an emoji) from breaking the encoding.
            running.update(json.dumps([m.role, m.content, m.spoken], ensure_ascii=True).encode("ascii") + b"\n")
            found.append(_digest(running))
        return tuple(found)


def _digest(running: hashlib._Hash) -> str:
    return running.copy().hexdigest()
