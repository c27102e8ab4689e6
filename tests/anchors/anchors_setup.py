"""Small tables and conversations written out, a draw of all of them, and ways to fill its sheets as a person would."""

import csv
import io

from openpyxl import load_workbook

from aipsy_judge.anchors import draw_anchors, find_texts, make_sheet, write_csv, write_xlsx
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.ratings import ratings_from_rows
from aipsy_judge.rubric import load_rubric

RUBRIC = load_rubric()
METRICS = RUBRIC.metric_names
GENERATOR = "gpt-5-secret-bot"
JUDGES = ("judge-alpha", "judge-beta")


def judged(item, rater, score=4, *, crisis=False, conversation=None, turn=None, **changed):
    """All rows of one judge on one item: every metric `score` unless changed (None: N/A, "?": unscored)."""
    values = {**dict.fromkeys(METRICS, score), "crisis_handling": score if crisis else None, **changed}
    common = {
        "item_id": item,
        "rater": rater,
        "rater_kind": "judge",
        "conversation": conversation or item.split(":")[0],
        "turn": turn or int(item.split(":t")[1]),
        "generator": GENERATOR,
    }
    rows = [{**common, "metric": m, "scale_min": 0, "scale_max": 5, **cell(v)} for m, v in values.items()]
    flag = {**common, "metric": "crisis_detected", "scale_min": 0, "scale_max": 1, **cell(int(crisis))}
    level = {**common, "metric": "crisis_severity", "scale_min": 0, "scale_max": 2, **cell(2 * int(crisis))}
    return [*rows, flag, level]


def cell(value):
    if value == "?":
        return {"score": None, "status": "unscored"}
    return {"score": value, "status": "na" if value is None else "scored"}


def table(*rows):
    return ratings_from_rows([row for group in rows for row in group])


def talk(id, turns=2, reply="Reply {} of {}."):
    messages = [
        message
        for n in range(1, turns + 1)
        for message in (Message("user", f"Line {n} of {id}."), Message("assistant", reply.format(n, id)))
    ]
    return Conversation(id, tuple(messages), {"generator": GENERATOR})


def small_draw(conversations=3, turns=2, **options):
    """A draw of every turn of some conversations, and the conversations."""
    talks = [talk(f"chat-{n}", turns) for n in range(conversations)]
    rows = [judged(f"{t.id}:t{n:02d}", j) for t in talks for n in range(1, turns + 1) for j in JUDGES]
    return draw_anchors(table(*rows), RUBRIC, n=1000, seed=1, **options), talks


def sheet_of(draw, talks, rater="anna", **options):
    return make_sheet(draw, find_texts(draw, talks), rater, **options)


GOOD = {
    "crisis_detected": "no",
    "crisis_severity": "",
    "empathy": 4,
    "tone_consistency": "N/A",
    "crisis_handling": "",
    "advice_safety": 2,
    "boundary_safety": "N/A",
    "affective_complexity": "",
    "comment": "",
}


def fill_xlsx(draw, talks, path, answers=lambda code: GOOD, rater="anna", **options):
    """Write the sheet, and fill it by column name: `answers(code)` -> {column: value}."""
    write_xlsx(sheet_of(draw, talks, rater, **options), path)
    book = load_workbook(path)
    page = book["Ratings"]
    places = {cell.value: cell.column for cell in page[1]}
    for row in range(2, page.max_row + 1):
        for name, value in answers(page.cell(row, places["code"]).value).items():
            if value != "":
                page.cell(row, places[name]).value = value
    book.save(path)
    return path


def fill_csv(draw, talks, path, answers=lambda code: GOOD, *, delimiter=",", encoding="utf-8-sig", ends="\r\n"):
    """Write the sheet, fill it, and save it as a spreadsheet would."""
    write_csv(sheet_of(draw, talks), path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator=ends)
    writer.writeheader()
    writer.writerows({**row, **answers(row["code"])} for row in rows)
    path.write_bytes(text.getvalue().encode(encoding))
    return path
