"""The verbs one after another, as a person uses them: panel, sample, sheet, filled, import, adjudicate, import."""

import json
import sys
from dataclasses import dataclass

import pytest
from anchors_setup import GENERATOR, GOOD, RUBRIC
from openpyxl import load_workbook

from aipsy_judge.anchors import read_draw
from aipsy_judge.cli.main import main
from aipsy_judge.ratings import load_ratings, read_ratings


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    """run("anchors", "sample", ...) -> exit code, standard output, standard error."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["aipsy-judge", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ran(ended.value.code or 0, captured.out, captured.err)

    return call


@pytest.fixture
def talks(tmp_path):
    path = tmp_path / "talks.jsonl"
    lines = []
    for n in range(12):
        messages = [
            {"role": role, "content": f"{text} {n}, {turn}."}
            for turn in range(3)
            for role, text in (("user", "What I say"), ("assistant", "- A reply"))
        ]
        lines.append({"id": f"chat-{n}", "messages": messages, "metadata": {"generator": GENERATOR}})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def fill(path, answers):
    """Fill the open cells of an XLSX: `answers(row number)` -> {column: value}."""
    book = load_workbook(path)
    page = book["Ratings"]
    header = [c.value for c in page[1]]
    for row in range(2, page.max_row + 1):
        for name, value in answers(row).items():
            cell = page.cell(row, header.index(name) + 1)
            if cell.value is None and value != "":
                cell.value = value
    book.save(path)


def test_from_a_panel_to_settled_anchors(run, talks, tmp_path):
    at = tmp_path.joinpath
    assert run("panel", talks, "--judge", "fake", "--out", at("panel")).code == 0
    ran = run("anchors", "sample", at("panel"), "--n", 15, "--seed", 3, "--out", at("draw.json"))
    assert ran.code == 0
    assert "15 items of 36 drawn" in ran.out
    draw = read_draw(at("draw.json"))
    assert draw.rubric == RUBRIC
    assert all(i.content_hash for i in draw.items)
    assert len({i.inclusion for i in draw.items}) > 1

    for rater, empathy in (("anna", 4), ("ben", 1)):
        sheet = at(f"{rater}.xlsx")
        assert (
            run("anchors", "sheet", at("draw.json"), "--transcripts", talks, "--rater", rater, "--out", sheet).code == 0
        )
        fill(
            sheet,
            lambda row, e=empathy: {**GOOD, "empathy": e if row % 2 else 4, "comment": "kind" if row == 2 else ""},
        )
        ran = run("anchors", "import", sheet, "--draw", at("draw.json"), "--rater", rater, "--out", at("experts.csv"))
        assert ran.code == 0, ran.err
        assert "105 ratings" in ran.out
        assert "empathy: " in ran.out
    assert "1 comment" in ran.out

    settle = at("settle.xlsx")
    words = ("--draw", at("draw.json"), "--transcripts", talks, "--out", settle)
    ran = run("anchors", "adjudicate", at("experts.csv"), *words)
    assert ran.code == 0, ran.err
    assert "empathy: 7 of 15 items in dispute" in ran.out  # rows 3, 5, ..., 15 of ben's sheet
    fill(settle, lambda row: {"empathy": 2})
    ran = run(
        "anchors",
        "import",
        settle,
        "--draw",
        at("draw.json"),
        "--rater",
        "chair",
        "--kind",
        "adjudicated",
        "--out",
        at("experts.csv"),
    )
    assert ran.code == 0, ran.err
    experts = read_ratings(at("experts.csv"))
    assert experts.kinds == {"anna": "expert", "ben": "expert", "chair": "adjudicated"}
    together = load_ratings([at("panel"), at("experts.csv")])
    assert set(together.raters) == {"fake", "anna", "ben", "chair"}
    drawn = {i.item_id: i.inclusion for i in draw.items}
    known = dict(zip(together.items, together.inclusion.tolist(), strict=True))
    assert {i: p for i, p in known.items() if p == p} == drawn


def test_nothing_that_somebody_may_have_filled_is_overwritten(run, talks, tmp_path):
    at = tmp_path.joinpath
    run("panel", talks, "--judge", "fake", "--out", at("panel"))
    sample = ("anchors", "sample", at("panel"), "--n", 5, "--out", at("draw.json"))
    assert run(*sample).code == 0
    assert "exists already" in run(*sample).err
    for name in ("s.csv", "s.xlsx"):
        sheet = ("anchors", "sheet", at("draw.json"), "--transcripts", talks, "--out", at(name))
        assert run(*sheet).code == 0
        before = at(name).read_bytes()
        ran = run(*sheet)
        assert (ran.code, "exists already" in ran.err) == (2, True)
        assert at(name).read_bytes() == before
    at("t.wording.txt").write_text("mine")
    assert run("anchors", "sheet", at("draw.json"), "--transcripts", talks, "--out", at("t.csv")).code == 2
    assert at("t.wording.txt").read_text() == "mine"
    assert not at("t.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--share", "rest=0"), "no share of the sample for rest"),
        (("--share", "nowhere=1"), "no stratum 'nowhere'"),
        (("--share", "rest=much"), "'much' is not a number"),
        (("--n", "1"), "too small for"),
        (("--rubric", "empa-turns"), "not by empa"),
    ],
)
def test_a_fault_in_what_is_asked_is_told_before_anything_is_written(run, talks, tmp_path, words, said):
    run("panel", talks, "--judge", "fake", "--out", tmp_path / "panel")
    ran = run("anchors", "sample", tmp_path / "panel", *words, "--out", tmp_path / "draw.json")
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not (tmp_path / "draw.json").exists()


def test_a_table_alone_is_drawn_from_by_the_rubric_that_is_named(run, talks, tmp_path):
    at = tmp_path.joinpath
    run("panel", talks, "--judge", "fake", "--out", at("panel"))
    at("copy.csv").write_bytes(at("panel", "ratings.csv").read_bytes())
    assert run("anchors", "sample", at("copy.csv"), "--n", 9, "--out", at("draw.json")).code == 0
    draw = read_draw(at("draw.json"))
    assert draw.rubric == RUBRIC
    assert {i.content_hash for i in draw.items} == {None}
    ran = run("anchors", "sample", at("copy.csv"), "--rubric", "empa-turns", "--out", at("other.json"))
    assert (ran.code, "none of the metrics" in ran.err) == (2, True)


def test_the_rubric_of_the_draw_is_checked_where_one_is_named(run, talks, tmp_path):
    at = tmp_path.joinpath
    run("panel", talks, "--judge", "fake", "--out", at("panel"))
    run("anchors", "sample", at("panel"), "--n", 5, "--out", at("draw.json"))
    run("anchors", "sheet", at("draw.json"), "--transcripts", talks, "--out", at("s.xlsx"))
    words = ("anchors", "import", at("s.xlsx"), "--draw", at("draw.json"), "--rater", "anna", "--out", at("r.csv"))
    assert "made with another rubric" in run(*words, "--rubric", "empa-turns").err
    assert "hold no rating" in run(*words, "--rubric", "aipsy-judge-v1").err
    assert "the rater has no name" in run(*words[:-4], "--rater", " ", *words[-2:]).err


def test_experts_who_agree_leave_nothing_to_settle(run, talks, tmp_path):
    at = tmp_path.joinpath
    run("panel", talks, "--judge", "fake", "--out", at("panel"))
    run("anchors", "sample", at("panel"), "--n", 5, "--out", at("draw.json"))
    for rater in ("anna", "ben"):
        run("anchors", "sheet", at("draw.json"), "--transcripts", talks, "--rater", rater, "--out", at(f"{rater}.xlsx"))
        fill(at(f"{rater}.xlsx"), lambda row: GOOD)
        out = at(f"{rater}.csv")
        run("anchors", "import", at(f"{rater}.xlsx"), "--draw", at("draw.json"), "--rater", rater, "--out", out)
    words = ("--draw", at("draw.json"), "--transcripts", talks, "--out", at("settle.xlsx"))
    ran = run("anchors", "adjudicate", at("anna.csv"), at("ben.csv"), *words)
    assert (ran.code, "anna and ben agree within 1 points" in ran.err) == (2, True)
    assert not at("settle.xlsx").exists()
