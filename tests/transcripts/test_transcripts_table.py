"""CSV and its kin."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from transcript_makers import said

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import read

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_a_message_by_any_delimiter_and_line_end(read_one: ReadOne, delimiter: str, end: str) -> None:
    rows = [["role", "text"], ["user", "Hello"], ["assistant", '"Hi, there;\n""you"""']]
    text = end.join(delimiter.join(row) for row in rows) + end
    assert said(read_one(text)) == [("user", "Hello"), ("assistant", 'Hi, there;\n"you"')]


@pytest.mark.parametrize(
    "header",
    ["Conversation ID,Turn,Role,Text", "conversation_id,turn_index,speaker,content", "SESSION-ID,order,sender,message"],
)
def test_columns_go_by_their_usual_names(write: Write, header: str) -> None:
    path = write(f"{header}\nb,1,human,x\na,1,human,y\na,2,AI,z\n")
    assert [(c.id, said(c)) for c in read(path)] == [
        ("b", [("user", "x")]),
        ("a", [("user", "y"), ("assistant", "z")]),
    ]


def test_rows_out_of_order_are_put_in_the_order_of_their_turns_with_a_warning(read_one: ReadOne) -> None:
    conversation = read_one("conversation,turn,role,text\na,10,assistant,last\na,9,user,middle\na,1,user,first\n")
    assert [m.content for m in conversation.messages] == ["first", "middle", "last"]
    assert "order" in conversation.warnings[0]


def test_rows_that_share_a_turn_keep_their_order(read_one: ReadOne) -> None:
    conversation = read_one("conversation,turn,role,text\na,1,user,q\na,1,assistant,r\na,2,user,s\n")
    assert [m.content for m in conversation.messages] == ["q", "r", "s"]
    assert conversation.warnings == ()


def test_a_prompt_with_its_response_is_a_conversation_a_row(write: Write) -> None:
    conversations = read(write("Prompt,Response,rating\na,b,3\nc,d,4\n", "pairs"))
    assert [(c.id, said(c)) for c in conversations] == [
        ("pairs#1", [("user", "a"), ("assistant", "b")]),
        ("pairs#2", [("user", "c"), ("assistant", "d")]),
    ]


def test_pairs_of_one_conversation_follow_each_other(read_one: ReadOne) -> None:
    conversation = read_one("conversation_id,turn,system_prompt,question,answer\nx,1,Be kind.,a,b\nx,2,Be kind.,c,d\n")
    assert [m.content for m in conversation.messages] == ["Be kind.", "a", "b", "c", "d"]


def test_other_columns_are_not_read(read_one: ReadOne) -> None:
    conversation = read_one("role,text,email\nuser,Hello,SECRET\n")
    assert "SECRET" not in repr(conversation)


def test_an_empty_cell_is_an_empty_turn(read_one: ReadOne) -> None:
    assert [t.message.content for t in read_one("role,text\nuser,Hello\nassistant,\n").turns] == [""]


def test_a_cell_may_be_longer_than_the_csv_module_allows_at_first(read_one: ReadOne) -> None:
    assert len(read_one(f"role,text\nuser,{'x' * 200_000}\n").messages[0].content) == 200_000


def test_reading_a_table_leaves_the_limit_of_the_process_as_it_was(read_one: ReadOne, write: Write) -> None:
    before = csv.field_size_limit()
    read_one("role,text\nuser,Hello\nassistant,Hi\n")
    with pytest.raises(TranscriptError):
        list(read(write('role,text\nuser,"Hello\n')))
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("role,text\nuser,Hello, you\n", r"line 2: a row of 3 fields under a header of 2"),
        ("role,text\nuser\n", r"line 2: a row of 1 fields under a header of 2"),
        ('role,text\nuser,"Hello" you\n', r"line 2: not a valid table"),
        ('role,text\nuser,"Hello\n', r"not a valid table"),
        ("role,text\nnarrator,Hello\n", r"line 2, \$\.role: unknown role 'narrator'"),
        ("conversation_id,role,text\n,user,Hello\n", r"line 2: a row without the id"),
        ("turn,role,text\none,user,Hello\n", r"line 2: the turn of a row must be a number"),
        ("turn,role,text\nnan,user,Hello\n", r"line 2: the turn of a row must be a number"),
        ("role,text,content\nuser,a,b\n", r"two columns could be the text: 'text', 'content'"),
        ("role,text,text\nuser,a,b\n", r"two columns could be the text"),
        ("role,text\n", r"a table without rows"),
        ("conversation,turn,role,text,rater\na,1,user,x,r1\na,1,user,x,r2\n", r"line 3: the same message stands twice"),
    ],
)
def test_a_faulty_table_is_an_error_that_names_the_line(write: Write, table: str, message: str) -> None:
    with pytest.raises(TranscriptError, match=message):
        read(write(table))


@pytest.mark.parametrize("header", ["a,b", "role,score", "item_id,rater,metric,score", "text", "prompt,score"])
def test_a_table_of_something_else_is_no_transcript(write: Write, header: str) -> None:
    with pytest.raises(TranscriptError, match="not a transcript"):
        read(write(f"{header}\nx,y\n"))
