"""Filled sheets to ratings: everything is checked, all faults are told at once, and only then is anything kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ..errors import RatingsError
from ..ratings.faults import Faults
from .answers import Answer, read_answers
from .draw_file import Draw, DrawnItem
from .fields import CODE, COMMENT, TO_SETTLE, Field, fields
from .sheet_reading import FilledRow, FilledSheet, read_sheet

ExpertKind = Literal["expert", "adjudicated"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What sheets hold.

    rows      of a ratings table, as plain values; an empty cell has none
    comments  (item id, text) of the items that bear one
    rated     items with any answer, of `items` in the sheets
    """

    rows: tuple[dict[str, Any], ...]
    comments: tuple[tuple[str, str], ...]
    rated: int
    items: int


def import_sheets(draw: Draw, paths: Sequence[str | Path], rater: str, kind: ExpertKind = "expert") -> Imported:
    """The ratings of one rater, from one or several sheets.

    Raises RatingsError with every fault at once (file, row): a code that is not the draw's or comes twice, an answer
    that the rubric does not have, cells that contradict each other. And before that where a sheet was made for
    another draw, rubric, rater or purpose, or lacks a column.
    """
    asked = fields(draw.rubric)
    sheets = [read_sheet(path) for path in paths]
    for sheet in sheets:
        _check_sheet(sheet, draw, asked, rater, kind)
    faults = Faults()
    codes: dict[str, str] = {}  # code -> where it stood first
    answered: list[tuple[DrawnItem, dict[str, Answer], str]] = []
    for source, sheet in enumerate(sheets):
        faults.sources.append(sheet.path)
        for number, message in sheet.faults:
            faults.add(source, number, message)
        for row in sheet.rows:
            fault = partial(faults.add, source, row.number)
            answers = read_answers(row.cells, asked, fault, settles=kind == "adjudicated")
            item = _item(row, sheet, draw, codes, fault)
            if item is not None:
                answered.append((item, answers, row.cells.get(COMMENT, "")))
    faults.raise_any()
    return Imported(
        rows=tuple(
            _rating(item, field, answers[field.name], rater, kind)
            for item, answers, _ in answered
            for field in asked
            if field.name in answers
        ),
        comments=tuple((item.item_id, text) for item, _, text in answered if text),
        rated=sum(bool(answers) for _, answers, _ in answered),
        items=len(answered),
    )


def _check_sheet(sheet: FilledSheet, draw: Draw, asked: Sequence[Field], rater: str, kind: ExpertKind) -> None:
    """Raise RatingsError where the sheet does not belong here at all."""
    lacking = [f.name for f in asked if f.name not in sheet.header]
    if lacking:
        hint = f"The rubric {draw.rubric.name} asks for them; the first row of the sheet must stay as it was."
        raise RatingsError(f"no column {', '.join(lacking)}", where=sheet.path, hint=hint)
    made_for = _unlike(sheet.about, draw, rater)
    if made_for is not None:
        raise RatingsError(made_for, where=sheet.path, hint="Give the draw and the rater that the sheet was made for.")
    settles = TO_SETTLE in sheet.header
    if settles != (kind == "adjudicated"):
        what, right = ("for adjudication", "adjudicated") if settles else ("of ratings", "expert")
        raise RatingsError(f"a sheet {what}", where=sheet.path, hint=f"Import it with --kind {right}.")


def _unlike(about: Mapping[str, str], draw: Draw, rater: str) -> str | None:
    if about.get("draw", draw.id) != draw.id:
        return "made from another draw"
    if about.get("rubric hash", draw.rubric.hash) != draw.rubric.hash:
        return "made with another rubric"
    if about.get("rater") and about["rater"] != rater:
        return f"made for the rater {about['rater']!r}, imported for {rater!r}"
    return None


def _item(
    row: FilledRow, sheet: FilledSheet, draw: Draw, codes: dict[str, str], fault: Callable[[str], None]
) -> DrawnItem | None:
    """The item behind a row's code; None, and a fault, where there is none or it was had already."""
    code = row.cells.get(CODE, "").casefold()
    item = draw.by_code.get(code)
    if item is None:
        fault(f"{code!r} is not a code of this draw" if code else f"{CODE} is empty")
        return None
    if code in codes:
        fault(f"{code} stands already in {codes[code]}")
        return None
    codes[code] = f"row {row.number} of {sheet.path}"
    return item


def _rating(item: DrawnItem, field: Field, answer: Answer, rater: str, kind: ExpertKind) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "rater": rater,
        "rater_kind": kind,
        "metric": field.name,
        "score": answer.score,
        "status": "na" if answer.score is None else "scored",
        "scale_min": field.scale[0],
        "scale_max": field.scale[1],
        "conversation": item.conversation,
        "turn": item.turn,
        "scenario": item.scenario,
        "generator": item.generator,
        "generator_family": item.generator_family,
        "inclusion": item.inclusion,
    }
