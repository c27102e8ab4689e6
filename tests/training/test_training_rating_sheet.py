"""Blind sheets of the corpus and the answers to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import InputError, RatingsError
from aipsy_judge.ratings import read_ratings
from aipsy_judge.rubric import load_rubric
from aipsy_judge.transcripts import read
from training.alternatives import with_alternatives
from training.rating_sheet import command, read_answers, sheet

HEAD = (
    "item,crisis_severity,empathy,tone_consistency,crisis_handling,advice_safety,boundary_safety,affective_complexity"
)
GOOD = ["c1.t1,none,4,NA,NA,NA,NA,3", "c1.t2,direct,3,4,5,NA,NA,NA", "c1.t2a1,direct,1,4,0,2,NA,1"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    turns = ["hi", "Hello.", "it is bad", "How bad?"]
    messages = [{"role": "user" if i % 2 == 0 else "assistant", "content": t} for i, t in enumerate(turns)]
    others = [{"turn": 2, "quality": "cold", "content": "Noted."}]
    path = tmp_path / "conversations.jsonl"
    line = {"id": "c1", "situation": "s1", "messages": messages, "alternatives": others, "qualities": ["adequate"] * 2}
    path.write_text(json.dumps(line) + "\n")
    return path


def corpus(path: Path) -> list[Conversation]:
    return list(with_alternatives(read(path), [path]))


def answered(path: Path, *rows: str) -> Path:
    answers = path.with_name("answers.csv")
    answers.write_text("\n".join([HEAD, *rows]) + "\n")
    return answers


def test_a_sheet_shows_every_reply_in_its_place_and_no_intention(file: Path) -> None:
    text = sheet(corpus(file))
    assert text.index("[REPLY c1.t2] How bad?") < text.index("[OTHER REPLY c1.t2a1, instead of c1.t2] Noted.")
    assert not any(word in text for word in ("cold", "adequate", "s1"))


def test_answers_become_a_ratings_table_that_reads_back(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "ratings.csv"
    arguments = [
        "read",
        str(answered(file, *GOOD)),
        str(file),
        "--out",
        str(out),
        "--rater",
        "plain",
        "--kind",
        "judge",
    ]
    command(arguments, standalone_mode=False)
    table = read_ratings(out)
    assert set(table.items) == {"c1:t01", "c1:t02", "c1.t2a1:t02"}
    handling = table.matrix("crisis_handling")
    assert handling.values[:, 0].tolist()[1:] == [5, 0]
    assert handling.na[:, 0].tolist() == [True, False, False]
    assert {table.scenario[i] for i in range(3)} == {"s1"}


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (GOOD[:2], "1 items are not answered: c1.t2a1"),
        ([*GOOD, GOOD[0]], "answered twice"),
        ([*GOOD[:2], "c1.t2a1,direct,1,4,NA,2,NA,1"], "scored if and only if crisis_detected"),
        ([*GOOD[:2], "c1.t2a1,none,1,4,3,2,NA,1"], "scored if and only if crisis_detected"),
        ([*GOOD[:2], "c1.t2a1,direct,6,4,0,2,NA,1"], "empathy is '6'"),
        ([*GOOD[:2], "c1.t2a1,direct,NA,4,0,2,NA,1"], "empathy is 'NA'"),
        ([*GOOD, "c9.t1,none,4,NA,NA,NA,NA,3"], "no such item"),
    ],
)
def test_answers_that_are_wrong_are_refused_with_their_row(file: Path, rows: list[str], fault: str) -> None:
    with pytest.raises(RatingsError, match=fault):
        read_answers(answered(file, *rows), corpus(file), load_rubric(), "plain", "judge", some=False)


def read_by_program(answers: Path, conversations: Path, out: Path, rater: str = "plain") -> None:
    words = ["read", str(answers), str(conversations), "--out", str(out), "--rater", rater, "--kind", "judge", "--some"]
    command(words, standalone_mode=False)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_answers_saved_by_a_spreadsheet_are_read(file: Path, encoding: str) -> None:
    answers = file.with_name("answers.csv")
    answers.write_text("\n".join([HEAD, *GOOD]) + "\n", encoding=encoding)
    assert len(read_answers(answers, corpus(file), load_rubric(), "plain", "judge", some=False)) == 3 * 8


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "empty"),
        (HEAD.encode() + b"\n", "no answers"),
        (HEAD.encode() + b"\nc1.t1,\xe4", "not UTF-8"),
        (HEAD.encode() + b"\n" + b"c" * 200_000 + b",none\n", "not valid CSV"),
        (HEAD.replace("item", "items").encode() + f"\n{GOOD[0]}\n".encode(), "no column item"),
        (HEAD.encode() + f",empathy\n{GOOD[0]},1\n".encode(), "written twice"),
        (HEAD.encode() + f"\n{GOOD[0]},1\n".encode(), "9 cells where the header has 8"),
    ],
)
def test_a_file_that_is_no_table_of_answers_makes_no_ratings(file: Path, content: bytes, fault: str) -> None:
    answers, out = file.with_name("answers.csv"), file.with_name("ratings.csv")
    answers.write_bytes(content)
    with pytest.raises(RatingsError, match=fault):
        read_by_program(answers, file, out)
    assert not out.exists()


def test_a_rater_of_any_name_stands_in_one_cell(file: Path) -> None:
    out = file.with_name("ratings.csv")
    read_by_program(answered(file, *GOOD), file, out, rater='Doe, "J"')
    assert read_ratings(out).raters == ('Doe, "J"',)
    with pytest.raises(InputError, match="is empty"):
        read_by_program(answered(file, *GOOD), file, out, rater=" ")


def test_alternatives_are_found_in_utf_16_too(file: Path) -> None:
    file.write_text(file.read_text(), encoding="utf-16")
    assert [c.id for c in corpus(file)] == ["c1", "c1.t2a1"]


def test_expanded_transcripts_hold_every_reply_and_nothing_else(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "transcripts.jsonl"
    command(["expand", str(file), "--out", str(out)], standalone_mode=False)
    found = read(out)
    assert [(c.id, c.messages[-1].content) for c in found] == [("c1", "How bad?"), ("c1.t2a1", "Noted.")]
    assert "cold" not in out.read_text()
