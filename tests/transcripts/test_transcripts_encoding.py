"""Encodings, line ends, and files that are no text."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transcript_makers import said

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import decoding, read

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]

WORDS = "It\u2019s a caf\u00e9 \U0001f614"
FORMS = {
    "json": json.dumps({"messages": [{"role": "user", "content": WORDS}]}, ensure_ascii=False),
    "list": json.dumps([[{"role": "user", "content": WORDS}]], ensure_ascii=False, indent=1),
    "csv": f"role,text\nuser,{WORDS}\n",
    "text": f"User: {WORDS}\n",
}
ENCODINGS = {
    "utf-8": (b"", "utf-8"),
    "utf-8-sig": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_unicode_with_or_without_a_byte_order_mark_is_read(read_one: ReadOne, form: str, encoding: str) -> None:
    mark, name = ENCODINGS[encoding]
    assert said(read_one(mark + FORMS[form].encode(name))) == [("user", WORDS)]


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_character_may_be_split_between_two_blocks(
    read_one: ReadOne, encoding: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "BLOCK_BYTES", max(block_bytes, 4))
    mark, name = ENCODINGS[encoding]
    assert said(read_one(mark + FORMS["json"].encode(name))) == [("user", WORDS)]


@pytest.mark.parametrize("form", FORMS)
def test_cp1252_is_one_error_with_the_offset_of_its_first_byte(write: Write, form: str) -> None:
    content = FORMS[form].replace(" \U0001f614", "").encode("cp1252")
    offset = content.index(b"\x92")
    with pytest.raises(TranscriptError, match=rf"talk: not UTF-8 text: byte 0x92 at offset {offset}") as caught:
        read(write(content))
    assert "Save the file as UTF-8" in (caught.value.hint or "")


def test_the_offset_counts_from_the_start_of_the_file_in_any_block(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "BLOCK_BYTES", 16)
    content = b"User: " + "\u00e9".encode() * 50 + b"\xff"
    with pytest.raises(TranscriptError, match=r"byte 0xff at offset 106"):
        read(write(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FORMS["json"].encode("utf-16-le"), "NUL at byte offset 1:"),
        (FORMS["text"].encode("utf-16-be"), "NUL at byte offset 0:"),
        (b"User: caf\xc3\xa9\0", "NUL at byte offset 11:"),
        (codecs.BOM_UTF32_LE + FORMS["json"].encode("utf-32-le"), "UTF-32 is not read"),
        (codecs.BOM_UTF8 + b"User: \xff", "offset 9"),
        (codecs.BOM_UTF16_LE + "User: x".encode("utf-16-le") + b"\0", r"offset 16"),
        (codecs.BOM_UTF16_LE + b"\0\xd8x\0", r"not UTF-16 \(little endian\) text: .* offset 2"),
        (b"User: \xed\xa0\xbd", "offset 6"),
        (b"User: \xf0\x9f\x98", "offset 6"),
    ],
)
def test_other_bytes_are_an_error_with_their_offset(write: Write, content: bytes, message: str) -> None:
    with pytest.raises(TranscriptError, match=message):
        read(write(content))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PAR1\0\0", "a Parquet file"),
        (b"\x1f\x8b\x08\0", "a gzip file"),
        (b"%PDF-1.7", "a PDF file"),
        (b"\x28\xb5\x2f\xfd\0", "a zstd file"),
        (b"SQLite format 3\0", "an SQLite database"),
    ],
)
def test_other_kinds_of_files_are_called_by_their_name(write: Write, content: bytes, what: str) -> None:
    with pytest.raises(TranscriptError, match=what) as caught:
        read(write(content))
    assert caught.value.hint


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r\n \r\n"])
def test_jsonl_with_windows_line_ends_and_blank_lines_is_read(write: Write, end: str) -> None:
    lines: list[Any] = [json.dumps({"id": n, "messages": [{"role": "user", "content": "x"}]}) for n in range(3)]
    assert [c.id for c in read(write("".join(line + end for line in lines)))] == ["0", "1", "2"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\u000b", "\u001c"])
def test_a_line_separator_inside_a_json_string_ends_no_line(write: Write, separator: str) -> None:
    line = '{"messages": [{"role": "user", "content": "a%sb"}]}'
    escaped = separator if ord(separator) > 0x1F else f"\\u{ord(separator):04x}"
    conversations = read(write("\n".join(line % escaped for _ in range(2))))
    assert [c.messages[0].content for c in conversations] == [f"a{separator}b"] * 2
