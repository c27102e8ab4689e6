"""The sheet is blind, shuffled, whole, and no text in it is ever a formula."""

import csv
import re
import zipfile
from dataclasses import replace

import pytest
from anchors_setup import GENERATOR, JUDGES, METRICS, RUBRIC, sheet_of, small_draw, talk
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from aipsy_judge.anchors import find_texts, write_csv, write_xlsx
from aipsy_judge.anchors.fields import fields
from aipsy_judge.anchors.sheet import CELL_CHARACTERS, pieces_of
from aipsy_judge.anchors.sheet_csv import guarded
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError, RubricError
from aipsy_judge.rubric import parse_rubric


def csv_rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_shows_the_conversation_up_to_the_reply_and_the_reply(tmp_path):
    draw, talks = small_draw(1, turns=2)
    write_csv(sheet_of(draw, talks), tmp_path / "s.csv")
    rows = {draw.by_code[r["code"]].item_id: r for r in csv_rows(tmp_path / "s.csv")}
    assert rows["chat-0:t02"]["conversation"] == (
        "PERSON: Line 1 of chat-0.\n\nASSISTANT: Reply 1 of chat-0.\n\nPERSON: Line 2 of chat-0."
    )
    assert rows["chat-0:t02"]["reply"] == "ASSISTANT: Reply 2 of chat-0."
    assert rows["chat-0:t01"]["conversation"] == "PERSON: Line 1 of chat-0."
    asked = [f.name for f in fields(RUBRIC)]
    assert asked == ["crisis_detected", "crisis_severity", *METRICS]
    assert list(rows["chat-0:t01"]) == ["code", "conversation", "reply", *asked, "comment"]
    assert all(not row[name] for row in rows.values() for name in [*asked, "comment"])


@pytest.mark.parametrize("kind", ["xlsx", "csv"])
def test_no_part_of_the_file_names_a_judge_a_generator_an_item_or_a_stratum(tmp_path, kind):
    draw, talks = small_draw()
    # The made-up texts name their conversation; these do not.
    talks = [Conversation(t.id, tuple(Message(m.role, "Some text.") for m in t.messages), t.metadata) for t in talks]
    path = tmp_path / f"s.{kind}"
    if kind == "csv":
        write_csv(sheet_of(draw, talks), path)
        everything = path.read_text(encoding="utf-8-sig") + (tmp_path / "s.wording.txt").read_text()
    else:
        write_xlsx(sheet_of(draw, talks), path)
        with zipfile.ZipFile(path) as file:
            everything = "".join(file.read(n).decode() for n in file.namelist())
    for secret in (*JUDGES, GENERATOR, "chat-0", "t01", '"rest"', ">rest<", "inclusion"):
        assert secret not in everything
    assert draw.items[0].code in everything  # the search would find what is there


def test_raters_meet_the_items_in_orders_of_their_own_that_repeat():
    draw, talks = small_draw(10)
    orders = [[row.code for row in sheet_of(draw, talks, rater).rows] for rater in ("anna", "anna", "ben")]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == [i.code for i in draw.items]
    assert orders[0] != sorted(orders[0])


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "－1"])
def test_a_text_that_looks_like_a_formula_is_guarded_in_csv(text):
    assert guarded(text) == f"'{text}"


@given(st.text())
def test_a_guarded_text_never_begins_like_a_formula_and_holds_the_whole_text(text):
    assert not guarded(text).lstrip(" \n").startswith(("=", "+", "-", "@", "\t", "\r"))
    assert guarded(text).endswith(text)


FORMULA = '=HYPERLINK("http://evil.example")'


def test_every_cell_of_a_csv_is_guarded_also_where_a_long_text_goes_on(tmp_path):
    draw, _ = small_draw(1, turns=1)
    long = "a" * (CELL_CHARACTERS - len("PERSON: ") - 1) + "\n" + FORMULA
    talks = [Conversation("chat-0", (Message("user", long), Message("assistant", "ok")))]
    write_csv(sheet_of(draw, talks, "=rater"), tmp_path / "s.csv")
    (row,) = csv_rows(tmp_path / "s.csv")
    assert row["conversation_2"] == f"'{FORMULA}"
    for cell in row.values():
        assert not cell.startswith(("=", "+", "-", "@"))


def test_in_xlsx_no_cell_is_a_formula_and_texts_stay_texts_when_saved_as_csv(tmp_path):
    draw, _ = small_draw(1, turns=1)
    long = "a" * (CELL_CHARACTERS - len("PERSON: ") - 1) + "\n" + FORMULA
    talks = [Conversation("chat-0", (Message("user", long), Message("assistant", "ok")))]
    write_xlsx(sheet_of(draw, talks, FORMULA), tmp_path / "s.xlsx")
    book = load_workbook(tmp_path / "s.xlsx")
    cells = [cell for page in book for row in page.iter_rows() for cell in row if cell.value is not None]
    dangerous = [c for c in cells if str(c.value).startswith("=")]
    assert [c.value for c in dangerous] == [FORMULA, FORMULA]  # the text's second cell, and the rater's name
    assert all(c.data_type == "s" and c.quotePrefix for c in dangerous)
    with zipfile.ZipFile(tmp_path / "s.xlsx") as file:
        pages = [file.read(n).decode() for n in file.namelist() if n.startswith("xl/worksheets/")]
    assert not any(re.search(r"<f[ >]", page) for page in pages)


def test_a_long_conversation_is_shown_whole_in_as_many_cells_as_it_takes(tmp_path):
    draw, _ = small_draw(1, turns=1)
    text = "\n".join(f"line {n} " + "x" * 90 for n in range(900))
    talks = [Conversation("chat-0", (Message("user", text), Message("assistant", text)))]
    write_xlsx(sheet_of(draw, talks), tmp_path / "s.xlsx")
    page = load_workbook(tmp_path / "s.xlsx")["Ratings"]
    header = [c.value for c in page[1]]
    shown = dict(zip(header, [c.value for c in page[2]], strict=True))
    for name, speaker in (("conversation", "PERSON"), ("reply", "ASSISTANT")):
        columns = [h for h in header if h.startswith(name)]
        assert len(columns) == 6
        assert "".join(shown[c] for c in columns) == f"{speaker}: {text}"
    # Excel's limit counts UTF-16 units; openpyxl would cut at it without a word.
    assert all(len(str(v).encode("utf-16-le")) // 2 < 32_767 for v in shown.values())


@given(st.text(alphabet=st.sampled_from("a\n😔"), max_size=60), st.integers(1, 9))
def test_pieces_are_the_text(text, size):
    pieces = pieces_of(text, size)
    assert "".join(pieces) == text
    assert all(len(piece) <= size for piece in pieces)


@pytest.mark.parametrize("bad", ["\x00", "\x0b", "\u202e", "\ufffe", "\uffff", "\ud83d", "\x1b[2J"])
def test_what_no_spreadsheet_can_hold_or_what_hides_is_written_out(tmp_path, bad):
    draw, _ = small_draw(1, turns=1)
    talks = [Conversation("chat-0", (Message("user", f"before{bad}after"), Message("assistant", "ok")))]
    write_xlsx(sheet_of(draw, talks), tmp_path / "s.xlsx")
    shown = load_workbook(tmp_path / "s.xlsx")["Ratings"]["B2"].value
    assert bad not in shown
    assert shown.startswith("PERSON: before")
    assert shown.endswith("after")


def test_xlsx_offers_the_legal_answers_of_every_cell_and_the_wording_on_a_second_sheet(tmp_path):
    draw, talks = small_draw()
    write_xlsx(sheet_of(draw, talks), tmp_path / "s.xlsx")
    book = load_workbook(tmp_path / "s.xlsx")
    page, lists = book["Ratings"], book["Lists"]
    header = [c.value for c in page[1]]
    rules = {str(rule.sqref): rule for rule in page.data_validations.dataValidation}
    offered = {}
    for field in fields(RUBRIC):
        letter = page.cell(1, header.index(field.name) + 1).column_letter
        (rule,) = [r for cells, r in rules.items() if cells.startswith(letter)]
        assert str(rule.sqref) == f"{letter}2:{letter}7"
        first, last = re.fullmatch(r"Lists!\$(\w+)\$1:\$\1\$(\d+)", rule.formula1).groups()
        offered[field.name] = [lists[f"{first}{n}"].value for n in range(1, int(last) + 1)]
        assert rule.showErrorMessage
        assert len(rule.prompt) <= 255
        assert len(rule.promptTitle) <= 32
    assert offered["empathy"] == [0, 1, 2, 3, 4, 5]  # always applies
    assert offered["boundary_safety"] == [0, 1, 2, 3, 4, 5, "N/A"]
    assert offered["crisis_detected"] == ["yes", "no"]
    assert offered["crisis_severity"] == ["none", "indirect", "direct"]
    assert lists.sheet_state == "hidden"
    words = " ".join(str(c.value) for row in book["Wording"].iter_rows() for c in row if c.value)
    for metric in RUBRIC.metrics:
        assert all(meaning in words for meaning in metric.anchors.values())


def test_the_wording_beside_a_csv_holds_every_anchor(tmp_path):
    draw, talks = small_draw()
    beside = write_csv(sheet_of(draw, talks), tmp_path / "s.csv")
    text = beside.read_text(encoding="utf-8")
    for metric in RUBRIC.metrics:
        assert metric.question.strip() in text
        assert all(f"{value}: {meaning}" in text for value, meaning in metric.anchors.items())


def test_an_item_that_is_not_in_the_transcripts_is_named():
    draw, talks = small_draw()
    with pytest.raises(InputError, match=r"2 drawn items are not in the transcripts: .*chat-2:t0"):
        find_texts(draw, talks[:2])


def test_a_conversation_that_bears_an_item_s_id_was_made_for_it_and_its_last_reply_is_rated():
    draw, _ = small_draw(1, turns=2)
    texts = find_texts(draw, [talk("chat-0:t01", turns=1), talk("chat-0:t02", turns=2)])
    assert texts["chat-0:t02"].reply == "ASSISTANT: Reply 2 of chat-0:t02."
    assert texts["chat-0:t02"].before.endswith("PERSON: Line 2 of chat-0:t02.")
    assert texts["chat-0:t01"].reply == "ASSISTANT: Reply 1 of chat-0:t01."


def test_another_text_under_the_same_id_is_refused():
    talks = [talk("chat-0")]
    hashes = {f"chat-0:t{t.number:02d}": talks[0].turn_hash(t) for t in talks[0].turns}
    draw, _ = small_draw(1, hashes=hashes)
    find_texts(draw, talks)
    changed = Conversation("chat-0", (*talks[0].messages[:3], Message("assistant", "Other.")))
    with pytest.raises(InputError, match="1 drawn items have another text here than the judges read: chat-0:t02"):
        find_texts(draw, [changed])


def test_a_rubric_for_whole_conversations_shows_the_conversation_alone(tmp_path):
    rubric = RUBRIC.model_copy(update={"unit": "conversation"})
    draw, talks = small_draw(1)
    whole = replace(draw, rubric=rubric, items=(replace(draw.items[0], item_id="chat-0", turn=None),))
    sheet = sheet_of(whole, talks)
    assert sheet.header[:3] == ("code", "conversation", "crisis_detected")
    assert sheet.rows[0].texts[1].endswith("ASSISTANT: Reply 2 of chat-0.")


def test_a_rubric_whose_names_are_a_sheet_s_own_is_refused():
    text = (
        "name: r\nversion: '1'\nunit: turn\nintroduction: x\nmetrics:\n  - {name: reply, title: R, question: q, "
        "scale: {minimum: 0, maximum: 5}, applies: always, anchors: {0: bad}}\n"
    )
    with pytest.raises(RubricError, match="columns of its own called reply"):
        fields(parse_rubric(text, where="r.yaml"))
