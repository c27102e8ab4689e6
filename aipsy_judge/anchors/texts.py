"""The text of each drawn item, from the transcripts: the conversation up to the turn, and the reply to be rated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..conversation import Conversation, Message
from ..errors import InputError
from ..ratings import item_id
from ..report.visible import visible
from ..subjects import Subject, subjects
from .draw_file import Draw

_SPEAKERS = {"user": "PERSON", "assistant": "ASSISTANT", "system": "INSTRUCTIONS", "tool": "TOOL"}
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class ItemText:
    """`before` the reply, and the `reply` that is to be rated; None where the conversation is rated as a whole."""

    before: str
    reply: str | None


def find_texts(draw: Draw, conversations: Iterable[Conversation]) -> dict[str, ItemText]:
    """Item id -> text, for every drawn item; one conversation in memory at a time.

    An item is called by conversation and turn ("chat-7:t03"). Where a conversation has an item's very id, it was made
    for it, and its last reply is what is rated.

    Raises InputError, naming them, where items are not in the transcripts or have another text than was judged.
    """
    found: dict[str, ItemText] = {}
    unlike: list[str] = []
    for conversation in conversations:
        asked = subjects(conversation, draw.rubric)
        for subject in asked:
            own = draw.by_id.get(conversation.id) if subject is asked[-1] else None
            item = own or draw.by_id.get(item_id(conversation.id, subject.turn))
            if item is None:
                continue
            if item.content_hash not in (None, subject.content_hash):
                unlike.append(item.item_id)
            found[item.item_id] = _text(conversation, subject)
    _refuse("have another text here than the judges read", unlike, "Give the files that were judged.")
    missing = [i.item_id for i in draw.items if i.item_id not in found]
    _refuse("are not in the transcripts", missing, "Give all files that were judged, with the same ids.")
    return found


def _text(conversation: Conversation, subject: Subject) -> ItemText:
    if subject.turn is None:
        return ItemText(_lines(conversation.messages), None)
    return ItemText(_lines(conversation.messages[: subject.upto]), _line(conversation.messages[subject.upto]))


def _lines(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(map(_line, messages))


def _line(message: Message) -> str:
    """Who, and what was said; hidden and control characters written out, so that a rater reads what a judge read."""
    said = visible(message.content).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    return f"{_SPEAKERS[message.role]}: {said}"


def _refuse(what: str, ids: list[str], hint: str) -> None:
    if not ids:
        return
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    raise InputError(f"{len(ids)} drawn items {what}: {', '.join(ids[:_SHOWN])}{more}", hint=hint)
