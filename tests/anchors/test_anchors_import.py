"""Sheets filled and saved as spreadsheets do, imported: checked whole, and nothing that is there is ever changed."""

import csv
import datetime
import re
import zipfile

import pytest
from anchors_setup import GENERATOR, GOOD, RUBRIC, fill_csv, fill_xlsx, judged, sheet_of, small_draw, table
from openpyxl import load_workbook

from aipsy_judge.anchors import add_comments, add_ratings, import_sheets, write_csv
from aipsy_judge.errors import InputError, RatingsError
from aipsy_judge.ratings import inclusion_weights, load_ratings, read_ratings, write_ratings


def imported(draw, *paths, rater="anna", **options):
    return import_sheets(draw, paths, rater, **options)


def test_from_the_draw_to_ratings_that_can_be_read_and_weighed(tmp_path):
    draw, talks = small_draw()
    path = fill_xlsx(draw, talks, tmp_path / "s.xlsx", lambda code: {**GOOD, "empathy": int(code[-1]) % 6})
    table, new = add_ratings(imported(draw, path).rows, tmp_path / "anna.csv")
    ratings = read_ratings(tmp_path / "anna.csv")
    assert len(ratings) == len(table) == new == 6 * 7
    assert ratings.kinds == {"anna": "expert"}
    assert ratings.warnings == ()
    matrix = ratings.matrix("empathy")
    wanted = {i.item_id: float(int(i.code[-1]) % 6) for i in draw.items}
    assert dict(zip(matrix.item_ids, matrix.column("anna"), strict=True)) == wanted
    assert ratings.matrix("crisis_handling").na.all()
    assert "affective_complexity" not in ratings.metrics  # left empty throughout: missing
    assert ratings.scales["crisis_severity"] == (0, 2)
    assert set(ratings.conversation.names) == {"chat-0", "chat-1", "chat-2"}
    assert ratings.generator.names == (GENERATOR,)
    assert inclusion_weights(ratings, matrix.index).tolist() == [1.0] * 6


@pytest.mark.parametrize(
    ("delimiter", "encoding", "ends"),
    [
        (",", "utf-8-sig", "\r\n"),  # Excel: CSV UTF-8
        (";", "utf-8-sig", "\r\n"),  # the same, where the comma is the decimal sign
        (";", "utf-8", "\n"),  # LibreOffice
        ("\t", "utf-16", "\r\n"),  # Excel: Unicode text
    ],
)
def test_csv_is_read_as_spreadsheets_save_it(tmp_path, delimiter, encoding, ends):
    draw, talks = small_draw()
    path = fill_csv(draw, talks, tmp_path / "s.csv", delimiter=delimiter, encoding=encoding, ends=ends)
    same = fill_xlsx(draw, talks, tmp_path / "s.xlsx")
    assert imported(draw, path) == imported(draw, same)


def test_cells_of_other_types_are_read_as_they_look(tmp_path):
    draw, talks = small_draw(1, turns=1)
    odd = {**GOOD, "crisis_detected": False, "empathy": 4.0, "advice_safety": "5"}
    (row,) = (
        {
            r["metric"]: r["score"]
            for r in imported(draw, fill_xlsx(draw, talks, tmp_path / "s.xlsx", lambda c: odd)).rows
        },
    )
    assert (row["crisis_detected"], row["empathy"], row["advice_safety"]) == (0, 4, 5)
    date = {**GOOD, "empathy": datetime.datetime(2026, 5, 4)}
    with pytest.raises(RatingsError, match="empathy is '2026-05-04"):
        imported(draw, fill_xlsx(draw, talks, tmp_path / "d.xlsx", lambda c: date))


def test_all_faults_are_told_at_once_with_file_and_row(tmp_path):
    draw, talks = small_draw()
    order = [row.code for row in sheet_of(draw, talks).rows]
    bad = {
        order[0]: {"empathy": 9},
        order[1]: {"advice_safety": "4,5", "boundary_safety": "x"},
        order[3]: {"crisis_handling": 2},
        order[4]: {"code": "bbbb-001"},
        order[5]: {"code": order[2]},
    }
    path = fill_csv(draw, talks, tmp_path / "s.csv", lambda code: {**GOOD, **bad.get(code, {})})
    with pytest.raises(RatingsError) as caught:
        imported(draw, path)
    lines = [line.strip() for line in str(caught.value).splitlines()]
    assert "6 faults" in lines[0]
    assert lines[1] == "row 2: empathy is '9', not one of 0, 1, 2, 3, 4, 5"
    assert lines[2].startswith("row 3: advice_safety is '4,5'")
    assert lines[3].startswith("row 3: boundary_safety is 'x'")
    assert lines[4].startswith("row 5: crisis_detected is no")
    assert lines[5] == "row 6: 'bbbb-001' is not a code of this draw"
    assert lines[6] == f"row 7: {order[2]} stands already in row 4 of {path}"


def test_xlsx_rows_are_numbered_as_the_spreadsheet_shows_them_blank_ones_included(tmp_path):
    draw, talks = small_draw(1, turns=1)
    path = fill_xlsx(draw, talks, tmp_path / "s.xlsx")
    book = load_workbook(path)
    page = book["Ratings"]
    page["A9"], page["D9"] = "nonsense", "yes"
    book.save(path)
    with pytest.raises(RatingsError, match="row 9: 'nonsense' is not a code"):
        imported(draw, path)


def test_a_file_that_understates_its_own_size_is_read_whole(tmp_path):
    draw, talks = small_draw()
    path = fill_xlsx(draw, talks, tmp_path / "s.xlsx")
    wanted = imported(draw, path)
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    page = "xl/worksheets/sheet1.xml"
    changed = re.sub(rb'<dimension ref="[A-Z0-9:]+"', b'<dimension ref="A1:B2"', parts[page])
    assert changed != parts[page]
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**parts, page: changed}.items():
            file.writestr(name, data)
    assert imported(draw, path) == wanted


def keep_rows(path, target, rows):
    """A copy of a sheet with some of its rows."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    with target.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines[n] for n in rows)
    return target


def test_one_rater_s_sheets_may_come_in_parts_but_no_item_twice(tmp_path):
    draw, talks = small_draw()
    fill_csv(draw, talks, tmp_path / "s.csv")
    halves = [
        keep_rows(tmp_path / "s.csv", tmp_path / f"{n}.csv", rows) for n, rows in enumerate(((0, 1, 2), (3, 4, 5)))
    ]
    assert imported(draw, *halves).items == 6
    with pytest.raises(RatingsError, match=r"0\.csv, row 2: \S+ stands already in row 2 of .*0\.csv"):
        imported(draw, halves[0], halves[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda page: page.cell(1, 6, "Empathy?"), "no column empathy"),
        (lambda page: page.cell(1, 1, "Nr"), "no column 'code'"),
        (lambda page: page.cell(1, 7, "empathy"), "written twice: empathy"),
    ],
)
def test_a_header_that_was_changed_is_one_clear_error(tmp_path, change, said):
    draw, talks = small_draw(1, turns=1)
    path = fill_xlsx(draw, talks, tmp_path / "s.xlsx")
    book = load_workbook(path)
    change(book["Ratings"])
    book.save(path)
    with pytest.raises(RatingsError, match=said):
        imported(draw, path)


def test_a_sheet_of_another_draw_rater_or_rubric_is_refused(tmp_path):
    draw, talks = small_draw()
    other, _ = small_draw(disagreement=0.2)
    path = fill_xlsx(draw, talks, tmp_path / "s.xlsx")
    with pytest.raises(RatingsError, match="made from another draw"):
        imported(other, path)
    with pytest.raises(RatingsError, match="made for the rater 'anna', imported for 'ben'"):
        imported(draw, path, rater="ben")
    # A CSV does not say whose it is, but its codes do.
    with pytest.raises(RatingsError, match="is not a code of this draw"):
        imported(other, fill_csv(draw, talks, tmp_path / "s.csv"))
    book = load_workbook(path)
    book["About"]["B3"].value = "0" * 64
    book.save(path)
    with pytest.raises(RatingsError, match="made with another rubric"):
        imported(draw, path)


def test_codes_are_read_in_either_case(tmp_path):
    draw, talks = small_draw(1)
    path = fill_csv(draw, talks, tmp_path / "s.csv", lambda code: {**GOOD, "code": code.upper()})
    assert imported(draw, path).items == 2


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 no zip", b"\xff\xfe\x00", b"a,b\n1\n", "code,empathy\nä,1".encode("cp1252")]
)
def test_what_is_no_sheet_is_one_clear_error(tmp_path, content):
    draw, _ = small_draw()
    (tmp_path / "s.csv").write_bytes(content)
    with pytest.raises(RatingsError, match=r"s\.csv") as caught:
        imported(draw, tmp_path / "s.csv")
    assert caught.value.hint


def test_a_damaged_xlsx_and_a_missing_file_are_clear_errors(tmp_path):
    draw, _ = small_draw()
    with zipfile.ZipFile(tmp_path / "s.xlsx", "w") as file:
        file.writestr("xl/nothing.xml", "<a/>")
    with pytest.raises(RatingsError, match="not a readable XLSX"):
        imported(draw, tmp_path / "s.xlsx")
    with pytest.raises(RatingsError, match="nowhere"):
        imported(draw, tmp_path / "nowhere.csv")


# -- never overwriting ----------------------------------------------------------------------------------------------


@pytest.fixture
def filled(tmp_path):
    draw, talks = small_draw()
    path = fill_csv(draw, talks, tmp_path / "s.csv")
    return draw, talks, imported(draw, path).rows


def test_the_same_ratings_again_change_nothing(tmp_path, filled):
    _, _, rows = filled
    add_ratings(rows, tmp_path / "r.csv")
    before = (tmp_path / "r.csv").read_bytes()
    _, new = add_ratings(rows, tmp_path / "r.csv")
    assert new == 0
    assert (tmp_path / "r.csv").read_bytes() == before


def test_another_value_is_refused_listed_and_the_file_is_untouched(tmp_path, filled):
    draw, talks, rows = filled
    add_ratings(rows, tmp_path / "r.csv")
    before = (tmp_path / "r.csv").read_bytes()
    changed = {**GOOD, "empathy": 1, "tone_consistency": 3, "affective_complexity": 5}
    other = imported(draw, fill_csv(draw, talks, tmp_path / "t.csv", lambda code: changed)).rows
    with pytest.raises(RatingsError) as caught:
        add_ratings(other, tmp_path / "r.csv")
    said = str(caught.value)
    assert "12 ratings by anna are there with another value" in said
    assert "chat-0:t01, empathy: 4 is there, the sheet says 1" in said
    assert "chat-0:t01, tone_consistency: N/A is there, the sheet says 3" in said
    assert "affective_complexity" not in said  # was empty: nothing is overwritten by filling it
    assert (tmp_path / "r.csv").read_bytes() == before


def test_cells_filled_later_and_another_rater_are_added(tmp_path, filled):
    draw, talks, rows = filled
    add_ratings(rows, tmp_path / "r.csv")
    later = fill_csv(draw, talks, tmp_path / "t.csv", lambda code: {**GOOD, "affective_complexity": 5})
    assert add_ratings(imported(draw, later).rows, tmp_path / "r.csv")[1] == 6
    assert add_ratings(imported(draw, later, rater="ben").rows, tmp_path / "r.csv")[1] == 48
    ratings = read_ratings(tmp_path / "r.csv")
    assert ratings.kinds == {"anna": "expert", "ben": "expert"}
    assert ratings.matrix("affective_complexity").scored.all()
    assert ratings.matrix("empathy").values.shape == (6, 2)


def test_other_people_s_ratings_in_the_file_stay(tmp_path, filled):
    _, _, rows = filled
    (tmp_path / "r.csv").write_text(
        "item_id,rater,rater_kind,metric,score,scale_min,scale_max\nold:t01,carla,expert,empathy,3,0,5\n"
    )
    add_ratings(rows, tmp_path / "r.csv")
    ratings = read_ratings(tmp_path / "r.csv")
    assert ratings.raters == ("carla", "anna")
    assert ratings.matrix("empathy", ["carla"]).values.tolist() == [[3.0]]


def test_a_file_whose_columns_would_be_lost_or_that_is_no_table_is_left_alone(tmp_path, filled):
    _, _, rows = filled
    text = "item_id,rater,rater_kind,metric,score,scale_min,scale_max,mine\nold:t01,carla,expert,empathy,3,0,5,x\n"
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(RatingsError, match="columns not used: mine: they would be lost"):
        add_ratings(rows, tmp_path / "r.csv")
    (tmp_path / "thesis.csv").write_text("chapter,page\n1,2\n")
    with pytest.raises(RatingsError, match="no column item_id"):
        add_ratings(rows, tmp_path / "thesis.csv")
    assert (tmp_path / "r.csv").read_text() == text
    assert (tmp_path / "thesis.csv").read_text() == "chapter,page\n1,2\n"


def test_a_rater_cannot_be_expert_and_judge_at_once(tmp_path, filled):
    _, _, rows = filled
    (tmp_path / "r.csv").write_text(
        "item_id,rater,rater_kind,metric,score,scale_min,scale_max\nold:t01,anna,judge,empathy,3,0,5\n"
    )
    with pytest.raises(RatingsError, match="anna is"):
        add_ratings(rows, tmp_path / "r.csv")


def test_the_experts_join_the_judges_by_item_and_bring_their_probabilities(tmp_path, filled):
    draw, _, rows = filled
    judges = table(*[judged(i.item_id, "judge-alpha") for i in draw.items], judged("other:t01", "judge-alpha"))
    write_ratings(judges, tmp_path / "panel.csv")
    add_ratings(rows, tmp_path / "anna.csv")
    together = load_ratings([tmp_path / "panel.csv", tmp_path / "anna.csv"])
    assert set(together.raters) == {"judge-alpha", "anna"}
    known = dict(zip(together.items, together.inclusion.tolist(), strict=True))
    assert known["chat-0:t01"] == 1.0
    assert known["other:t01"] != known["other:t01"]  # not drawn: no probability


def test_an_empty_sheet_writes_nothing(tmp_path):
    draw, talks = small_draw()
    write_csv(sheet_of(draw, talks), tmp_path / "s.csv")
    with pytest.raises(RatingsError, match="hold no rating"):
        add_ratings(imported(draw, tmp_path / "s.csv").rows, tmp_path / "r.csv")
    assert not (tmp_path / "r.csv").exists()


def test_comments_are_kept_beside_the_table_and_stay(tmp_path):
    draw, talks = small_draw(1)
    path = fill_csv(draw, talks, tmp_path / "s.csv", lambda code: {**GOOD, "comment": "=warm, but late"})
    found = imported(draw, path).comments
    assert [text for _, text in found] == ["=warm, but late"] * 2
    for rater in ("anna", "anna", "ben"):
        beside = add_comments(found, rater, tmp_path / "anna.csv")
    assert beside == tmp_path / "anna.comments.csv"
    with beside.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["rater"] for r in rows] == ["anna", "anna", "ben", "ben"]
    assert {r["comment"] for r in rows} == {"'=warm, but late"}
    (tmp_path / "b.comments.csv").write_text("something,else\n")
    with pytest.raises(InputError, match="not a file of comments"):
        add_comments(found, "anna", tmp_path / "b.csv")
    assert add_comments([], "anna", tmp_path / "c.csv") is None


def test_metrics_of_the_table_are_the_rubric_s(tmp_path, filled):
    _, _, rows = filled
    assert {r["metric"] for r in rows} <= {"crisis_detected", "crisis_severity", *RUBRIC.metric_names}
