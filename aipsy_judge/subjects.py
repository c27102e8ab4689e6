"""Subjects: what of a conversation there is to judge. What came of it, with its verdict, is a unit (units.py)."""

from __future__ import annotations

from dataclasses import dataclass

from .conversation import Conversation
from .rubric import Rubric


@dataclass(frozen=True, slots=True)
class Subject:
    """What one verdict is about: a turn, or (turn None) the whole conversation.

    upto   index of the last message that the judge is shown
    empty  the assistant said nothing there: nothing to judge, and nothing is asked
    """

    turn: int | None
    upto: int
    content_hash: str
    empty: bool


def subjects(conversation: Conversation, rubric: Rubric) -> list[Subject]:
    """The turns, or the conversation as a whole if it has any turn, as the rubric's unit says."""
    turns = conversation.turns
    if rubric.unit == "turn":
        return [
            Subject(t.number, t.index, conversation.turn_hash(t), empty=not t.message.content.strip()) for t in turns
        ]
    if not turns:
        return []
    empty = all(not t.message.content.strip() for t in turns)
    return [Subject(None, len(conversation.messages) - 1, conversation.content_hash, empty)]
