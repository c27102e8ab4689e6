"""CSV (comma, semicolon, tab or bar): a row a message, or a row a prompt with its response.

Columns, by their usual names (`rows.COLUMNS`): role and text, with conversation and turn if there are several
conversations or the rows are not in order; or prompt and response, one conversation a row unless a conversation column
says otherwise. Other columns are not read. A table is held in memory whole, for its rows may stand in any order.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator

from ..conversation import Conversation
from .place import Place
from .rows import Row, columns_of, grouped, row_of
from .text_source import MAX_VALUE_CHARS, Text

_DELIMITERS = ",;\t|"


def delimiter_of(header: str, place: Place) -> str | None:
    """The delimiter by which `header` names the columns of a transcript; None when there is none."""
    for delimiter in _DELIMITERS:
        try:
            names = next(csv.reader([header], delimiter=delimiter, strict=True), [])
        except csv.Error:
            continue
        if columns_of(names, place):
            return delimiter
    return None


def is_table(text: Text) -> bool:
    header = text.first_line()
    return header is not None and delimiter_of(header, text.place) is not None


def read_table(text: Text) -> Iterator[Conversation]:
    """The conversations of a table.

    Raises TranscriptError, with the line, for a row that has not as many fields as the header, and for bad quotes.
    """
    delimiter = delimiter_of(text.first_line() or "", text.place)
    assert delimiter is not None  # `is_table` was asked before
    records = _records(text, delimiter)
    names, place = next(records)
    columns = columns_of(names, place)
    assert columns is not None
    yield from grouped(_rows(records, names, columns), text.place, apart="prompt" in columns)


def _rows(records: Iterator[tuple[list[str], Place]], names: list[str], columns: dict[str, str]) -> Iterator[Row]:
    for fields, place in records:
        if len(fields) != len(names):
            raise place.error(
                f"a row of {len(fields)} fields under a header of {len(names)}",
                hint="Text that holds the delimiter or a line break must stand in double quotes.",
            )
        yield row_of(dict(zip(names, fields, strict=True)), columns, place)


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """A reply may be longer than the 131,072 characters that the csv module allows at first. Its limit is the whole
    process's, so it is put back: whoever else reads a table here counts on his own."""
    before = csv.field_size_limit(MAX_VALUE_CHARS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(text: Text, delimiter: str) -> Iterator[tuple[list[str], Place]]:
    """The records that are not blank, each with the line on which it ends."""
    reader = csv.reader(text.lines(), delimiter=delimiter, strict=True)
    while True:
        try:
            with _long_fields():
                fields = next(reader, None)
        except csv.Error as fault:
            raise text.place.on_line(reader.line_num).error(
                f"not a valid table: {fault}",
                hint="A double quote inside a quoted field is written twice.",
            ) from None
        if fields is None:
            return
        if any(field.strip() for field in fields):
            yield fields, text.place.on_line(reader.line_num)
