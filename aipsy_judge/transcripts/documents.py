"""From the text of a file to its conversations: JSONL, a JSON list or object."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..conversation import Conversation
from . import chat
from .json_source import array_elements, is_json_lines, json_lines
from .place import UnknownShape
from .shapes import read_value
from .strict_json import Parser
from .text_source import Text


def read_text(text: Text) -> Iterator[Conversation]:
    """The conversations in `text`, one after another; the format is told by the content."""
    first = text.first_char()
    if not first:
        raise text.place.error("the file is empty", hint="A transcript holds at least one conversation.")
    if first in "{[" and is_json_lines(text):
        for value, place in json_lines(text):
            yield from read_value(value, place)
    elif first == "[":
        yield from _read_list(text)
    elif first == "{":
        yield from read_value(Parser().parse(text.whole(), text.place), text.place)
    else:
        raise UnknownShape("not a transcript: no known shape", where=str(text.place))


def _read_list(text: Text) -> Iterator[Conversation]:
    elements = array_elements(text)
    first = next(elements, None)
    if first is None:
        raise text.place.error("an empty list: no conversation in it")
    if chat.is_message(first[0]):
        yield chat.read_messages([first[0], *(value for value, _ in elements)], text.place)
        return
    for value, place in chain([first], elements):
        yield from read_value(value, place)
