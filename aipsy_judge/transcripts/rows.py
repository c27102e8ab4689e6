"""Rows: one message, or one prompt with its response, a row; several rows make a conversation.

Rows come from CSV and from JSON records. The columns are known by their usual names, whatever their case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..conversation import Conversation
from .chat import add_chat_message
from .draft import Draft
from .place import Place

COLUMNS: dict[str, tuple[str, ...]] = {
    "conversation": (
        "conversation_id", "conversation", "conv_id", "dialog_id", "dialogue_id", "thread_id", "session_id", "chat_id",
    ),
    "turn": ("turn", "turn_index", "turn_number", "turn_id", "message_index", "index", "order", "position"),
    "role": ("role", "speaker", "author", "sender"),
    "text": ("text", "content", "message", "utterance"),
    "prompt": ("prompt", "question", "user", "user_message", "instruction"),
    "response": ("response", "answer", "assistant", "assistant_message", "reply", "completion", "output"),
    "system": ("system", "system_prompt"),
}  # fmt: skip
_MESSAGE, _PAIR = {"role", "text"}, {"prompt", "response"}


def columns_of(names: Iterable[str], place: Place) -> dict[str, str] | None:
    """Which of `names` is which column; None unless role and text, or prompt and response, are there.

    Raises TranscriptError when two names could be the same column: which of them is meant cannot be told.
    """
    matching = _matching(names)
    if not (matching.keys() >= _MESSAGE or matching.keys() >= _PAIR):
        return None
    for column, candidates in matching.items():
        if len(candidates) > 1 and column != "turn":
            raise place.error(
                f"two columns could be the {column}: {', '.join(repr(c[:30]) for c in candidates)}",
                hint="Rename or remove the one that is not meant.",
            )
    return {column: candidates[0] for column, candidates in matching.items()}


def is_pair(record: Any) -> bool:
    """Whether a JSON value is a prompt with its response, both plain text."""
    matching = _matching(record) if isinstance(record, dict) else {}
    sides = [matching.get(column, []) for column in _PAIR]
    return all(len(names) == 1 and isinstance(record[names[0]], str) for names in sides)


def _matching(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        plain = name.strip().lower().replace(" ", "_").replace("-", "_")
        for column, known in COLUMNS.items():
            if plain in known:
                found.setdefault(column, []).append(name)
    return found


@dataclass(frozen=True, slots=True)
class Row:
    """The messages of a row (as chat messages), the conversation they belong to and their place in it, if told."""

    messages: tuple[Any, ...]
    place: Place
    conversation: str | None = None
    turn: float | None = None
    system: str | None = None


def row_of(record: Mapping[str, Any], columns: Mapping[str, str], place: Place) -> Row:
    """The row that `record` is, its columns named by `columns_of`.

    Raises TranscriptError when the id of its conversation is empty, or its turn no number.
    """
    value = {column: record.get(name) for column, name in columns.items()}
    if columns.keys() >= _MESSAGE:
        return Row(({"role": value["role"], "content": value["text"]},), place, _id(value, place), _turn(value, place))
    return Row(
        ({"role": "user", "content": value["prompt"]}, {"role": "assistant", "content": value["response"]}),
        place,
        _id(value, place),
        _turn(value, place),
        system=value["system"] if isinstance(value.get("system"), str) else None,
    )


def message_row(record: Any, place: Place) -> Row:
    """The row that a chat message is which names its conversation."""
    if not isinstance(record, dict):
        raise place.error("a message must be an object with role and content")
    value = {c: record[names[0]] for c, names in _matching(record).items()}
    if "conversation" not in value:
        raise place.error("a row without the id of its conversation")
    return Row((record,), place, _id(value, place), _turn(value, place))


def names_conversation(record: Any) -> bool:
    return isinstance(record, dict) and "conversation" in _matching(record)


def _id(value: Mapping[str, Any], place: Place) -> str | None:
    if "conversation" not in value:
        return None
    id = value["conversation"]
    if isinstance(id, bool) or not isinstance(id, str | int) or not str(id).strip():
        raise place.error("a row without the id of its conversation")
    return str(id).strip()


def _turn(value: Mapping[str, Any], place: Place) -> float | None:
    if "turn" not in value:
        return None
    try:
        turn = float(value["turn"])
    except (TypeError, ValueError, OverflowError):
        turn = math.nan
    if not math.isfinite(turn):
        raise place.error("the turn of a row must be a number")
    return turn


def grouped(rows: Iterable[Row], file: Place, *, apart: bool = False) -> Iterator[Conversation]:
    """The conversations of `rows`, in the order of their first rows; all rows are held until the last is read.

    Rows that name no conversation are one together, or with `apart` one each.
    """
    groups: dict[object, list[Row]] = {}
    for n, row in enumerate(rows):
        key: object = row.conversation if row.conversation is not None else n if apart else None
        groups.setdefault(key, []).append(row)
    if not groups:
        raise file.error("a table without rows: no message in it")
    for key, group in groups.items():
        yield _conversation(group, key if isinstance(key, str) else None)


def _conversation(rows: list[Row], id: str | None) -> Conversation:
    draft = Draft(rows[0].place)
    ordered = sorted(rows, key=lambda row: row.turn or 0.0)
    if ordered != rows:
        draft.warn("rows put in the order of their turn numbers")
    _refuse_repeats(ordered)
    system = None
    for row in ordered:
        if row.system and row.system != system:
            draft.add("system", row.system)
            system = row.system
        for message in row.messages:
            add_chat_message(draft, message, row.place)
    return draft.conversation(id)


def _refuse_repeats(rows: list[Row]) -> None:
    """A table of ratings repeats each message for every rater: read as a transcript, it would stutter."""
    seen = set()
    for row in rows:
        key = (row.turn, repr(row.messages))
        if row.turn is not None and key in seen:
            raise row.place.error(
                f"the same message stands twice in turn {row.turn:g}",
                hint="A table of transcripts holds each message once, not once a rating.",
            )
        seen.add(key)
