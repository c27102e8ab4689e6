"""Two raters, what they disagree on, and who settles it."""

import csv

import pytest
from anchors_setup import GENERATOR, GOOD, JUDGES, fill_csv, fill_xlsx, small_draw

from aipsy_judge.anchors import find_disputes, find_texts, import_sheets, make_sheet, write_csv
from aipsy_judge.anchors.fields import SETTLED
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import ratings_from_rows, reference

CRISIS = {"crisis_detected": "yes", "crisis_severity": "direct", "crisis_handling": 2}


@pytest.fixture
def two(tmp_path):
    """A draw of three items, and a function: what the second rater says otherwise -> both raters' ratings."""
    draw, talks = small_draw(3, turns=1)

    def ratings(second, first=None):
        rows = []
        for rater, said in (("anna", first or {}), ("ben", second)):
            path = fill_csv(draw, talks, tmp_path / f"{rater}.csv", lambda c, said=said: {**GOOD, **said.get(c, {})})
            rows += import_sheets(draw, [path], rater).rows
        return ratings_from_rows(rows)

    return draw, talks, ratings


def test_only_what_lies_beyond_the_margin_is_in_dispute(two):
    draw, _, ratings = two
    a, b, c = (i.code for i in draw.items)
    said = ratings({a: {"empathy": 3}, b: {"empathy": 2, "boundary_safety": 1}, c: {"advice_safety": ""}})
    found = find_disputes(draw, said)
    assert list(found.by_item) == [draw.by_code[b].item_id]
    assert found.by_item[draw.by_code[b].item_id].fields == {"empathy", "boundary_safety"}
    assert found.disputed == {"empathy": 1, "boundary_safety": 1}  # two points; N/A against a score
    assert (found.compared["empathy"], found.compared["advice_safety"]) == (3, 2)  # one was left empty
    assert set(find_disputes(draw, said, margin=0.5).by_item) == {draw.by_code[k].item_id for k in (a, b)}
    assert set(find_disputes(draw, said, margin=2).by_item[draw.by_code[b].item_id].fields) == {"boundary_safety"}


def test_a_disputed_flag_opens_what_hangs_on_it(two):
    draw, _, ratings = two
    code = draw.items[0].code
    (dispute,) = find_disputes(draw, ratings({code: CRISIS})).by_item.values()
    assert dispute.fields == {"crisis_detected", "crisis_severity", "crisis_handling"}
    assert sorted(dispute.words.splitlines()[0].split(": ")[1].split(" / ")) == ["no", "yes"]


def test_what_hangs_on_a_disputed_flag_is_open_though_only_one_rater_answered_it(two):
    draw, _, ratings = two
    code = draw.items[0].code
    said = ratings({code: {**CRISIS, "crisis_severity": "", "crisis_handling": ""}})
    (dispute,) = find_disputes(draw, said).by_item.values()
    assert dispute.fields == {"crisis_detected", "crisis_severity", "crisis_handling"}
    assert "no answer" in dispute.words


def test_a_severity_that_differs_is_a_dispute_whatever_the_margin(two):
    draw, _, ratings = two
    code = draw.items[0].code
    said = ratings({code: {**CRISIS, "crisis_severity": "indirect"}}, {code: CRISIS})
    (dispute,) = find_disputes(draw, said, margin=5).by_item.values()
    assert dispute.fields == {"crisis_severity"}


def test_the_sheet_shows_the_disputes_alone_without_a_name_in_it(two, tmp_path):
    draw, talks, ratings = two
    code = draw.items[1].code
    found = find_disputes(draw, ratings({code: {"empathy": 1}}))
    write_csv(make_sheet(draw, find_texts(draw, talks), disputes=found.by_item), tmp_path / "settle.csv")
    text = (tmp_path / "settle.csv").read_text(encoding="utf-8-sig")
    assert not any(name in text for name in ("anna", "ben", *JUDGES, GENERATOR))
    with (tmp_path / "settle.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["code"] == code
    assert row["ratings_to_settle"] in ("empathy: 4 / 1", "empathy: 1 / 4")
    assert row["empathy"] == ""
    assert row["advice_safety"] == row["crisis_detected"] == SETTLED


def test_which_rater_comes_first_varies_from_item_to_item(tmp_path):
    draw, talks = small_draw(20, turns=1)
    rows = []
    for rater, empathy in (("anna", 5), ("ben", 1)):
        path = fill_csv(draw, talks, tmp_path / f"{rater}.csv", lambda c, e=empathy: {**GOOD, "empathy": e})
        rows += import_sheets(draw, [path], rater).rows
    found = find_disputes(draw, ratings_from_rows(rows))
    assert {d.words for d in found.by_item.values()} == {"empathy: 5 / 1", "empathy: 1 / 5"}


def test_what_is_settled_counts_before_both_raters(two, tmp_path):
    draw, talks, ratings = two
    code = draw.items[1].code
    both = ratings({code: {"empathy": 1}})
    found = find_disputes(draw, both)
    path = fill_xlsx(draw, talks, tmp_path / "settle.xlsx", lambda c: {"empathy": 2}, rater="", disputes=found.by_item)
    with pytest.raises(RatingsError, match="a sheet for adjudication"):
        import_sheets(draw, [path], "chair")
    settled = import_sheets(draw, [path], "chair", kind="adjudicated")
    assert [(r["metric"], r["score"], r["rater_kind"]) for r in settled.rows] == [("empathy", 2.0, "adjudicated")]
    together = ratings_from_rows([*both.rows(), *settled.rows])
    right = reference(together, "empathy", together.of_kind("adjudicated", "expert"))
    values = dict(zip(together.items, right.values.tolist(), strict=True))
    assert values[draw.by_code[code].item_id] == 2.0
    assert sorted(values.values()) == [2.0, 4.0, 4.0]


def test_a_sheet_of_ratings_is_not_taken_for_an_adjudication(two, tmp_path):
    draw, talks, _ = two
    with pytest.raises(RatingsError, match="a sheet of ratings"):
        import_sheets(draw, [fill_csv(draw, talks, tmp_path / "s.csv")], "chair", kind="adjudicated")


def test_one_expert_cannot_disagree(two, tmp_path):
    draw, _, ratings = two
    both = ratings({})
    with pytest.raises(RatingsError, match="two experts are needed"):
        find_disputes(draw, both.subset(raters=["anna"]))
    with pytest.raises(RatingsError, match="no rater carl"):
        find_disputes(draw, both, ["anna", "carl"])
    assert find_disputes(draw, both).by_item == {}
