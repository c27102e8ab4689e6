"""This project's own format, in JSON (one object, or a list of them) and JSONL (one object a line).

`{"id": "talk-1", "messages": [{"role": "user", "content": "..."}, ...], "metadata": {...}}`

Roles are system, user, assistant, tool; `content` is text; `"spoken": false` marks what stands in the transcript but
was not said (a tool call). `id` and `metadata` may be missing. It is read as chat messages are (`chat.py`), of which it
is the plain case; this file writes it.
"""

from __future__ import annotations

from typing import Any

from ..conversation import Conversation, Message


def to_dict(conversation: Conversation) -> dict[str, Any]:
    """The conversation as an object of this format: `read` gives back the same id, messages and metadata."""
    return {
        "id": conversation.id,
        "messages": [_message(m) for m in conversation.messages],
        "metadata": dict(conversation.metadata),
    }


def _message(message: Message) -> dict[str, Any]:
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    return record if message.spoken else {**record, "spoken": False}
