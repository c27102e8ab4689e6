"""A filled sheet, XLSX or CSV as spreadsheets save it, as rows of plain texts with the numbers that a person sees."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError, RatingsError
from ..ratings.files import read_chunks
from .fields import CODE
from .sheet_xlsx import ABOUT, RATINGS


@dataclass(frozen=True, slots=True)
class FilledRow:
    """One row that is not blank: its number in the file (header: 1), and its cells by column, trimmed."""

    number: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FilledSheet:
    """`about`: what an XLSX says it is (see sheet_xlsx.about), a CSV says nothing; `faults`: rows not read."""

    path: str
    header: tuple[str, ...]
    rows: tuple[FilledRow, ...]
    about: Mapping[str, str]
    faults: tuple[tuple[int, str], ...] = ()


def read_sheet(path: str | Path) -> FilledSheet:
    """A sheet from its file, told by content. Raises RatingsError where it is none, MissingExtraError for XLSX without
    openpyxl."""
    path = Path(path)
    try:
        zipped = zipfile.is_zipfile(path)
    except OSError as error:
        raise RatingsError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    sheet = _read_xlsx(path) if zipped else _read_csv(path)
    if CODE not in sheet.header:
        raise RatingsError(
            f"no column {CODE!r}; there are: {', '.join(h for h in sheet.header if h) or 'none'}",
            where=str(path),
            hint="Fill the sheet that `aipsy-judge anchors sheet` wrote; its first row must stay.",
        )
    return sheet


def _read_csv(path: Path) -> FilledSheet:
    header: tuple[str, ...] = ()
    rows: list[FilledRow] = []
    faults: list[tuple[int, str]] = []
    try:
        for chunk in read_chunks(path):
            header = tuple(chunk.columns)
            faults += chunk.faults
            for place, number in enumerate(chunk.rows):
                cells = {name: _text(column[place]) for name, column in chunk.columns.items()}
                rows += _kept(number, cells)
    except RatingsError as error:
        hint = "In a spreadsheet: save as XLSX, or as CSV UTF-8."
        raise RatingsError(error.message, where=error.where, hint=error.hint or hint) from error
    return FilledSheet(str(path), header, tuple(rows), {}, tuple(faults))


def _read_xlsx(path: Path) -> FilledSheet:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtraError("openpyxl", "stats", "Reading XLSX") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it leaves unread: lists, styles
            book = load_workbook(path, read_only=True, data_only=True)
            try:
                page = book[RATINGS] if RATINGS in book.sheetnames else book[book.sheetnames[0]]
                page.reset_dimensions()  # what a file says of its own size may be wrong, and rows would be left out
                lines = [[_text(cell) for cell in line] for line in page.iter_rows(values_only=True)]
                about = _about(book[ABOUT]) if ABOUT in book.sheetnames else {}
            finally:
                book.close()
    except Exception as error:  # whatever a damaged file makes the library raise
        raise RatingsError(f"not a readable XLSX file: {error}", where=str(path)) from error
    return _from_lines(path, lines, about)


def _from_lines(path: Path, lines: list[list[str]], about: Mapping[str, str]) -> FilledSheet:
    header = lines[0] if lines else []
    twice = sorted({h for h in header if h and header.count(h) > 1})
    if twice:
        raise RatingsError(f"column written twice: {', '.join(twice)}", where=str(path))
    rows: list[FilledRow] = []
    for number, line in enumerate(lines[1:], start=2):
        rows += _kept(number, dict(zip(header, line, strict=False)))
    return FilledSheet(str(path), tuple(header), tuple(rows), about)


def _about(page: Any) -> dict[str, str]:
    pairs = ([_text(cell) for cell in (*line, None, None)[:2]] for line in page.iter_rows(values_only=True))
    return {name: value for name, value in pairs if name}


def _kept(number: int, cells: dict[str, str]) -> Iterator[FilledRow]:
    """The row, unless nothing stands in it."""
    named = {name: text for name, text in cells.items() if name}
    if any(named.values()):
        yield FilledRow(number, named)


def _text(cell: Any) -> str:
    """What a person sees in the cell; a whole number that the file holds as 4.0 is 4."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()
