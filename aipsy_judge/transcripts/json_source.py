"""The JSON values of a text: line by line from JSONL, element by element from an array, or one object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .json_parser import Parser, explain
from .place import Place
from .text_source import Text

_BLANK = re.compile(r"[ \t\r\n]*")
# A value cut off by the end of a block is reported by json near that end: no literal or escape is longer.
_CUT_CHARS = 16


def is_json_lines(text: Text) -> bool:
    """Whether the first line is a whole JSON value and not the last line."""
    line = text.first_line()
    if line is None or line[-1] not in "}]" or not text.has_second_line():
        return False
    try:
        return Parser().parse_at(line, 0)[1] == len(line)
    except (ValueError, RecursionError):
        return False


def json_lines(text: Text) -> Iterator[tuple[Any, Place]]:
    """One value a line, blank lines passed over; a line that is not JSON is an error that names it."""
    parser = Parser()
    for number, line in enumerate(text.lines(), start=1):
        if line.strip():
            place = text.place.on_line(number)
            yield parser.parse(line, place), place


def array_elements(text: Text) -> Iterator[tuple[Any, Place]]:
    """The elements of the array that `text` is, one after another: the array is never held whole."""
    window = _Window(text)
    window.take("[")
    count = 0
    while window.next_char() != "]" or count:
        place = text.place.at(count)
        yield window.value(place), place
        count += 1
        if window.next_char() == "]":
            break
        window.take(",")
    window.take("]")
    if window.next_char():
        raise window.fault("extra data after the end of the list")


class _Window:
    """The part of a text that was read and not yet consumed."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._blocks = text.blocks()
        self._parser = Parser()
        self._buffer = ""
        self._at = 0
        # Where in the file the buffer begins.
        self._line, self._column = 1, 0

    def next_char(self) -> str:
        """The next character that is not blank, not consumed; "" at the end of the text."""
        while True:
            self._at = _skip_blanks(self._buffer, self._at)
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._grow():
                return ""

    def take(self, wanted: str) -> None:
        if self.next_char() != wanted:
            raise self.fault(f"expecting {wanted!r}")
        self._at += 1

    def value(self, place: Place) -> Any:
        """The next value. One that ends with the buffer may go on in the next block, so it is parsed again with it."""
        self.next_char()
        while True:
            fault = None
            try:
                value, end = self._parser.parse_at(self._buffer, self._at)
                if self._is_whole(value, end) or not self._grow():
                    break
            except (ValueError, RecursionError) as error:
                fault = error
            if fault is not None:
                explained = self._explained(fault)
                if not self._may_be_cut(fault) or not self._grow():
                    raise explained
        self._at = end
        self._parser.refuse_repeats(value, place)
        return value

    def _is_whole(self, value: Any, end: int) -> bool:
        after = self._buffer[_skip_blanks(self._buffer, end) :][:1]
        # A number cut in its middle is a number too, and what follows it then is neither blank nor comma.
        return after != "" and (not isinstance(value, int | float) or after in ",]")

    def _grow(self) -> bool:
        """Read as much again as waits unconsumed, so that a value of any length is parsed a few times at most.

        False, and nothing changed, at the end of the text.
        """
        waiting, parts, chars = len(self._buffer) - self._at, [], 0
        while chars <= waiting and (block := next(self._blocks, None)) is not None:
            parts.append(block)
            chars += len(block)
        if not parts:
            return False
        consumed = self._buffer[: self._at]
        self._line += consumed.count("\n")
        self._column = len(consumed) - consumed.rfind("\n") - 1 + (0 if "\n" in consumed else self._column)
        self._buffer, self._at = "".join([self._buffer[self._at :], *parts]), 0
        self._text.refuse_above_limit(len(self._buffer))
        return True

    def _may_be_cut(self, fault: Exception) -> bool:
        if not isinstance(fault, json.JSONDecodeError):
            return False
        return fault.msg.startswith("Unterminated string") or fault.pos >= len(self._buffer) - _CUT_CHARS

    def fault(self, message: str) -> Exception:
        return self._explained(json.JSONDecodeError(message, self._buffer, self._at))

    def _explained(self, fault: Exception) -> Exception:
        if isinstance(fault, json.JSONDecodeError) and fault.lineno == 1:
            fault.colno += self._column
        return explain(fault, self._text.place, first_line=self._line)


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None  # the pattern matches the empty string
    return match.end()
