"""The sheet as XLSX: lists to choose from in every cell, the wording on a second sheet."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import Any

from ..atomic import write_bytes
from ..errors import MissingExtraError
from .fields import COMMENT, SETTLED, Field
from .sheet import Sheet
from .wording import wording

RATINGS, WORDING, ABOUT, LISTS = "Ratings", "Wording", "About", "Lists"
_WIDTHS = {"code": 12.0, "conversation": 80.0, "reply": 60.0, "ratings_to_settle": 40.0, COMMENT: 40.0}
_ANSWER_WIDTH = 14.0
# The most that Excel shows in the box beside a cell.
_PROMPT_TITLE, _PROMPT = 32, 255


def write_xlsx(sheet: Sheet, path: Path) -> None:
    """Write the sheet. Raises MissingExtraError without openpyxl, InputError where it cannot be written."""
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MissingExtraError("openpyxl", "stats", "Writing XLSX") from error
    book = Workbook()
    book.active.title = RATINGS
    _fill_ratings(book.active, sheet)
    _fill_wording(book.create_sheet(WORDING), sheet)
    _fill_about(book.create_sheet(ABOUT), sheet)
    _fill_lists(book.create_sheet(LISTS), sheet)
    for number, field in enumerate(sheet.fields, start=1):
        _offer_answers(book.active, sheet, field, number)
    file = io.BytesIO()
    book.save(file)
    write_bytes(path, file.getvalue())


def _fill_ratings(page: Any, sheet: Sheet) -> None:
    from openpyxl.styles import Alignment, Font, PatternFill

    for column, name in enumerate(sheet.header, start=1):
        _put(page.cell(1, column), name)
        page.cell(1, column).font = Font(bold=True)
        letter = page.cell(1, column).column_letter
        page.column_dimensions[letter].width = _WIDTHS.get(name.rstrip("_0123456789"), _ANSWER_WIDTH)
    grey = PatternFill("solid", fgColor="E7E6E6")
    for number, row in enumerate(sheet.rows, start=2):
        for column, text in enumerate(sheet.cells(row), start=1):
            cell = page.cell(number, column)
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            _put(cell, text)
            if text == SETTLED:
                cell.fill = grey
    page.freeze_panes = "B2"


def _put(cell: Any, text: str) -> None:
    """Text as text: never a formula, nor one when the file is saved as CSV and opened again (quotePrefix)."""
    if not text:
        return
    cell.value = text
    cell.data_type = "s"
    cell.quotePrefix = True


def _fill_wording(page: Any, sheet: Sheet) -> None:
    from openpyxl.styles import Alignment, Font

    for number, (head, said) in enumerate(wording(sheet), start=1):
        _put(page.cell(number, 1), head)
        _put(page.cell(number, 2), said)
        page.cell(number, 1).font = Font(bold=True)
        for column in (1, 2):
            page.cell(number, column).alignment = Alignment(wrap_text=True, vertical="top")
    page.column_dimensions["A"].width, page.column_dimensions["B"].width = 34, 110


def _fill_about(page: Any, sheet: Sheet) -> None:
    """What an import checks: the sheet must come back to the draw, the rubric and the rater that it was made for."""
    for number, (name, value) in enumerate(about(sheet).items(), start=1):
        _put(page.cell(number, 1), name)
        _put(page.cell(number, 2), value)
    page.column_dimensions["A"].width, page.column_dimensions["B"].width = 20, 70


def about(sheet: Sheet) -> dict[str, str]:
    """What the sheet is, in words that a program finds again."""
    return {
        "draw": sheet.draw_id,
        "rubric": f"{sheet.rubric.name} {sheet.rubric.version}",
        "rubric hash": sheet.rubric.hash,
        "rater": sheet.rater,
        "purpose": "adjudication" if sheet.settles else "ratings",
    }


def _fill_lists(page: Any, sheet: Sheet) -> None:
    """The legal answers of each field, a column each; a list written into the rule itself may have 255 characters."""
    for column, field in enumerate(sheet.fields, start=1):
        for number, answer in enumerate(field.answers, start=1):
            page.cell(number, column).value = int(answer) if answer.lstrip("-").isdigit() else answer
    page.sheet_state = "hidden"


def _offer_answers(page: Any, sheet: Sheet, field: Field, number: int) -> None:
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    open_rows = [n for n, row in enumerate(sheet.rows, start=2) if field.name in row.open]
    if not open_rows:
        return
    of = get_column_letter(number)
    rule = DataValidation(type="list", formula1=f"{LISTS}!${of}$1:${of}${len(field.answers)}", allow_blank=True)
    rule.showErrorMessage = rule.showInputMessage = True
    rule.error = textwrap.shorten(f"One of: {', '.join(field.answers)}", 220, placeholder=" ...")
    rule.promptTitle = textwrap.shorten(field.title, _PROMPT_TITLE, placeholder=" ...")
    rule.prompt = textwrap.shorten(f"{field.question} ({WORDING})", _PROMPT, placeholder=f" ... ({WORDING})")
    column = get_column_letter(sheet.header.index(field.name) + 1)
    for first, last in _runs(open_rows):
        rule.add(f"{column}{first}:{column}{last}")
    page.add_data_validation(rule)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Rising numbers as runs without a gap.

    >>> _runs([2, 3, 4, 7])
    [(2, 4), (7, 7)]
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs
