"""Files, folders and standard input."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transcript_makers import said, zstd_zip

from aipsy_judge.errors import EXIT_INPUT, TranscriptError
from aipsy_judge.transcripts import FORMATS, iter_conversations, read
from aipsy_judge.transcripts.sources import Source

Write = Callable[..., Path]

TALK = {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}


class Pipe(io.RawIOBase):
    """Bytes that cannot be wound back and come in short reads, as a pipe's do."""

    def __init__(self, content: bytes) -> None:
        self._rest = io.BytesIO(content)

    def read(self, size: int = -1) -> bytes:
        return self._rest.read(3 if size < 0 else min(size, 3))

    def readable(self) -> bool:
        return True


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def feed(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Pipe(content)}))

    return feed


@pytest.mark.parametrize("name", ["talk.json", "talk.txt", "talk.csv", "talk.eval", "talk"])
def test_the_format_is_told_by_the_content_not_by_the_name(write: Write, name: str) -> None:
    for content in (TALK, "User: Hello\nAI: Hi\n", "role,text\nuser,Hello\nassistant,Hi\n"):
        [conversation] = read(write(content, name))
        assert said(conversation) == [("user", "Hello"), ("assistant", "Hi")]


def test_a_folder_is_read_with_its_subfolders_in_the_order_of_the_names(write: Write, tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "y/c.jsonl", "x/d.json", ".hidden/e.json", "x/.f.json"):
        write(TALK, f"talks/{name}")
    assert [c.id for c in read(tmp_path / "talks")] == ["a.json#1", "b.json#1", "x/d.json#1", "y/c.jsonl#1"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff\n.json")).write_text(json.dumps(TALK))
    [conversation] = read(tmp_path)
    assert conversation.id == "a\ufffd\n.json#1"
    assert str(conversation.source).isprintable()


def test_strays_in_a_folder_are_passed_over_and_told(write: Write, tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    for name, content in {
        "a.json": TALK,
        "package.json": {"name": "x"},
        "notes.txt": "Buy milk.",
        "ratings.csv": "item,score\na,1\n",
        "model.gguf": b"GGUF\0\xff",
        "picture.png": b"\x89PNG",
    }.items():
        write(content, f"talks/{name}")
    assert len(read(tmp_path / "talks", on_skip=lambda *what: told.append(what))) == 1
    assert sorted(Path(place.split(",")[0]).name for place, _ in told) == [
        "model.gguf",
        "notes.txt",
        "package.json",
        "picture.png",
        "ratings.csv",
    ]


@pytest.mark.parametrize("content", ['{"messages": [', b"User: \xff", {"messages": []}, {"messages": [{"role": "x"}]}])
def test_a_damaged_transcript_in_a_folder_is_an_error_not_a_stray(write: Write, tmp_path: Path, content: Any) -> None:
    write(TALK, "talks/a.json")
    write(content, "talks/b.json")
    with pytest.raises(TranscriptError, match=r"b\.json"):
        read(tmp_path / "talks")


def test_a_file_that_begins_as_a_transcript_and_goes_on_as_something_else_is_no_stray(
    write: Write, tmp_path: Path
) -> None:
    write([TALK, {"a": 1}], "talks/a.json")
    with pytest.raises(TranscriptError, match=r"a\.json, \$\[1\]: not a transcript"):
        read(tmp_path / "talks")


def test_a_folder_without_transcripts_is_an_error_that_says_what_it_saw(write: Write, tmp_path: Path) -> None:
    write("Buy milk.", "talks/notes.txt")
    with pytest.raises(TranscriptError, match=r"no conversation to read \(.*notes\.txt: not a transcript"):
        read(tmp_path / "talks")


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="nothing in it looks like a transcript"):
        read(tmp_path)


def test_a_stray_that_is_named_itself_is_an_error(write: Write) -> None:
    with pytest.raises(TranscriptError, match="not a transcript"):
        read([write(TALK, "a.json"), write("Buy milk.", "notes.txt")])


def test_several_paths_are_read_in_the_order_given(write: Write, tmp_path: Path) -> None:
    write(TALK, "folder/x.json")
    paths = [write(TALK, "b.json"), tmp_path / "folder", write(TALK, "a.json")]
    assert [c.id for c in read(paths)] == ["b.json#1", "folder/x.json#1", "a.json#1"]


def test_two_files_of_one_name_get_ids_of_their_own(write: Write) -> None:
    one, two = write(TALK, "x/talk.json"), write(TALK, "y/talk.json")
    assert [c.id for c in read([one, two])] == [f"{one.as_posix()}#1", f"{two.as_posix()}#1"]


def test_a_file_that_is_given_twice_is_an_error(write: Write, tmp_path: Path) -> None:
    path = write(TALK, "talks/talk.json")
    for twice in ([path, path], [tmp_path / "talks", path]):
        with pytest.raises(TranscriptError, match="given twice"):
            read(twice)


def test_no_path_is_an_error() -> None:
    with pytest.raises(TranscriptError, match="no file or folder"):
        read([])


def test_a_missing_file_is_one_error_with_the_exit_code_of_bad_input(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"gone\.json: no such file or folder") as caught:
        read(tmp_path / "gone.json")
    assert caught.value.exit_code == EXIT_INPUT == 2


def test_a_file_that_may_not_be_read_is_an_error(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Source) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Source, "open", refuse)
    with pytest.raises(TranscriptError, match=r"talk: cannot be read: Permission denied"):
        read(write(TALK))


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfUser: Hello\nAI: Hi\n",
        b'{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}',
        b"role,text\nuser,Hello\nassistant,Hi\n",
        zstd_zip(
            {
                "samples/s.json": b'{"id": 1, "epoch": 1, "target": "", "messages": '
                b'[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}'
            }
        ),
    ],
)
def test_standard_input_is_read_from_a_pipe(stdin: Callable[[bytes], None], content: bytes) -> None:
    stdin(content)
    [conversation] = read("-")
    assert said(conversation) == [("user", "Hello"), ("assistant", "Hi")]
    assert "standard input" in str(conversation.source)


def test_an_id_of_standard_input_is_stable(stdin: Callable[[bytes], None]) -> None:
    stdin(b"User: Hello\n")
    assert read("-")[0].id == "stdin#1"


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff"])
def test_a_fault_in_standard_input_names_it(stdin: Callable[[bytes], None], content: bytes) -> None:
    stdin(content)
    with pytest.raises(TranscriptError, match="standard input"):
        read("-")


def test_conversations_come_before_the_end_of_the_file_is_read(write: Write) -> None:
    line = '{"messages": [{"role": "user", "content": "x"}]}\n'
    found: Iterator[Any] = iter_conversations(write(line * 2 + "damage"))
    assert [next(found).id, next(found).id] == ["talk#1", "talk#2"]
    with pytest.raises(TranscriptError, match="line 3"):
        next(found)


def test_the_formats_are_listed_for_help_texts() -> None:
    assert all(name and line and "\n" not in line and len(line) < 90 for name, line in FORMATS)
