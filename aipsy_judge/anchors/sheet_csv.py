"""The sheet as CSV, and the wording as a text file beside it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ..atomic import write_bytes, write_text
from .sheet import Sheet
from .wording import wording

# What makes a spreadsheet take a text for a formula, the wide forms of East Asian keyboards included (OWASP, "CSV
# injection"). A reply that begins with a list ("- first ...") is as common as an attack is rare.
_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def guarded(text: str) -> str:
    """The text, after an apostrophe where a spreadsheet would take it for a formula.

    >>> guarded("=1+1"), guarded("PERSON: =1+1")
    ("'=1+1", 'PERSON: =1+1')
    """
    return f"'{text}" if text.lstrip(" \n").startswith(_DANGEROUS) else text


def write_csv(sheet: Sheet, path: Path) -> Path:
    """Write the sheet and, beside it, what a rater should read first; the path of the latter. InputError where it
    cannot be written."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(sheet.header)
    writer.writerows([guarded(cell) for cell in sheet.cells(row)] for row in sheet.rows)
    # Excel takes a CSV without a byte-order mark for the country's old encoding.
    beside = wording_path(path)
    write_text(beside, wording_text(sheet))
    write_bytes(path, text.getvalue().encode("utf-8-sig"))
    return beside


def wording_path(path: Path) -> Path:
    """Where the wording goes.

    >>> wording_path(Path("a/sheet.csv")).as_posix()
    'a/sheet.wording.txt'
    """
    return path.with_name(f"{path.stem}.wording.txt")


def wording_text(sheet: Sheet) -> str:
    """The wording as plain text."""
    lines = [f"{head}: {said}" if head and said else head or f"  {said}".rstrip() for head, said in wording(sheet)]
    return "\n".join(lines) + "\n"
