"""From the text of a file to its conversations: JSON, JSONL, a table, or text with speakers, told by its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..conversation import Conversation
from . import chat, rows, sharegpt
from .csv_table import is_table, read_table
from .json_parser import Parser
from .json_source import array_elements, is_json_lines, json_lines
from .labelled_text import begins_with_speaker, read_labelled
from .place import Place, UnknownShape
from .shapes import read_value
from .skipping import Skip
from .text_source import Text

_Values = Iterator[tuple[Any, Place]]


def read_text(text: Text, skip: Skip) -> Iterator[Conversation]:
    """The conversations in `text`, one after another; one without an id has the id "".

    JSONL and JSON lists are read element by element, in memory that does not grow with the file.
    """
    first = text.first_char()
    if not first:
        raise text.place.error("the file is empty", hint="A transcript holds at least one conversation.")
    if begins_with_speaker(text):
        yield read_labelled(text)
    elif first in "{[" and is_json_lines(text):
        yield from _read_values(json_lines(text), text.place, skip)
    elif first == "[":
        yield from _read_values(array_elements(text), text.place, skip)
    elif first == "{":
        value = Parser().parse(text.whole(), text.place)
        yield from _read_values(iter([(value, text.place)]), text.place, skip)
    elif is_table(text):
        yield from read_table(text)
    else:
        raise _unknown(text.place)


def _read_values(values: _Values, file: Place, skip: Skip) -> Iterator[Conversation]:
    """The first value tells whether they are conversations or the messages of one."""
    first = next(values, None)
    if first is None:
        raise file.error("an empty list: no conversation in it")
    values = chain([first], values)
    if chat.is_message(first[0]) and rows.names_conversation(first[0]):
        yield from rows.grouped((rows.message_row(value, place) for value, place in values), file)
    elif sharegpt.is_message(first[0]):
        yield sharegpt.read_messages([value for value, _ in values], file)
    elif chat.is_message(first[0]):
        yield from rows.grouped((rows.Row((value,), place) for value, place in values), file)
    else:
        for value, place in values:
            yield from read_value(value, place, skip)


def _unknown(place: Place) -> UnknownShape:
    return UnknownShape(
        "not a transcript: neither JSON nor JSONL, nor a table with the columns role and text (or prompt and "
        "response), nor text that begins with a speaker (User:, [USER], **User:**, ### User, Q:)",
        where=str(place),
        hint="See the formats that are read in the README, or write JSON: "
        '{"messages": [{"role": "user", "content": "..."}, ...]}.',
    )
