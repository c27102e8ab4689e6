"""Zip files: exports, damage, and bombs."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from transcript_makers import zstd_zip

from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import archive, read

Write = Callable[..., Path]

TALK = {"messages": [{"role": "user", "content": "Hello"}]}
CHAT = {"uuid": "c1", "chat_messages": [{"sender": "human", "text": "Hi"}]}
SAMPLE = json.dumps({"id": "s", "epoch": 1, "target": "", "messages": TALK["messages"]}).encode()


def packed(entries: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in entries.items():
            file.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return buffer.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_the_conversations_of_an_export_are_read_and_its_other_files_not(write: Write, method: int) -> None:
    entries = {"users.json": [{"email": "x"}], "conversations.json": [CHAT], "projects.json": [], "chat.html": b"<p>"}
    assert [c.id for c in read(write(packed(entries, method)))] == ["c1"]


def test_an_export_in_several_files_is_read_in_order(write: Write) -> None:
    entries = {f"export/conversations-{n:03}.json": [{**CHAT, "uuid": f"c{n}"}] for n in (10, 2, 1)}
    assert [c.id for c in read(write(packed(entries)))] == ["c1", "c2", "c10"]


def test_a_zip_of_other_files_is_read_as_a_folder(write: Write) -> None:
    told: list[tuple[str, str]] = []
    entries = {"b.json": TALK, "a.txt": b"User: Hi", "readme.txt": b"nothing", "x.bin": b"\0"}
    path = write(packed(entries), "talks")
    assert [c.id for c in read(path, on_skip=lambda *what: told.append(what))] == ["talks#1", "talks#2"]
    assert [place.rsplit(", ")[-1] for place, _ in told] == ["readme.txt", "x.bin"]


def test_an_entry_that_goes_on_as_something_else_is_damage_not_a_stray(write: Write) -> None:
    with pytest.raises(TranscriptError, match=r"a\.json, \$\[1\]: not a transcript"):
        read(write(packed({"a.json": [TALK, {"a": 1}]})))


@pytest.mark.parametrize("entries", [{}, {"a.bin": b"x"}, {"a.json": {"a": 1}}])
def test_a_zip_without_transcripts_is_an_error(write: Write, entries: dict[str, Any]) -> None:
    with pytest.raises(TranscriptError, match="a zip without transcripts"):
        read(write(packed(entries)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_zip_cut_short_is_an_error(write: Write, share: float) -> None:
    whole = zstd_zip({"samples/s_epoch_1.json": SAMPLE, "header.json": b"{}"})
    with pytest.raises(TranscriptError, match="damaged zip"):
        read(write(whole[: int(len(whole) * share)]))


@pytest.mark.parametrize(
    "lie",
    [{"declare": len(SAMPLE) - 1}, {"declare": len(SAMPLE) + 1}, {"declare": 0}, {"crc": 1}],
    ids=["longer than declared", "shorter than declared", "declared empty", "wrong checksum"],
)
def test_an_entry_that_is_not_what_it_declares_is_an_error(write: Write, lie: dict[str, int]) -> None:
    with pytest.raises(TranscriptError, match="damaged zip"):
        read(write(zstd_zip({"samples/s_epoch_1.json": SAMPLE}, **lie)))


def test_damaged_zstd_data_is_an_error(write: Write) -> None:
    whole = zstd_zip({"samples/s_epoch_1.json": SAMPLE})
    begin = whole.index(zstandard.FRAME_HEADER)
    with pytest.raises(TranscriptError, match="damaged zip"):
        read(write(whole[:begin] + b"\0\0\0\0" + whole[begin + 4 :]))


def test_an_encrypted_entry_is_an_error_that_says_so(write: Write) -> None:
    with pytest.raises(TranscriptError, match="encrypted"):
        read(write(zstd_zip({"samples/s_epoch_1.json": SAMPLE}, flags=1)))


def test_an_unknown_compression_is_an_error_that_says_so(write: Write) -> None:
    with pytest.raises(TranscriptError, match="cannot be unpacked"):
        read(write(zstd_zip({"samples/s_epoch_1.json": SAMPLE}, method=98)))


def test_a_zip_bomb_by_declaration_is_refused_before_it_is_unpacked(write: Write) -> None:
    huge = zstd_zip({"samples/s_epoch_1.json": SAMPLE}, declare=(1 << 32) - 2)
    with pytest.raises(TranscriptError, match="times its size"):
        read(write(huge))


def test_an_entry_above_the_bound_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRY_BYTES", 10)
    with pytest.raises(TranscriptError, match="declares more than"):
        read(write(packed({"conversations.json": [CHAT]})))


def test_many_entries_above_the_bound_together_are_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ARCHIVE_BYTES", 10)
    with pytest.raises(TranscriptError, match="declares more than"):
        read(write(packed({"conversations.json": [CHAT]})))


def test_a_bomb_that_lies_about_its_size_is_stopped_at_the_declared_size(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = 0
    real_read = archive._Checked.read

    def counting(self: archive._Checked, size: int = -1) -> bytes:
        nonlocal unpacked
        data = real_read(self, size)
        unpacked += len(data)
        return data

    monkeypatch.setattr(archive._Checked, "read", counting)
    bomb = zstd_zip({"samples/s_epoch_1.json": b" " * (64 << 20)}, declare=1000)
    with pytest.raises(TranscriptError, match="damaged zip"):
        read(write(bomb))
    assert unpacked <= 1000


def test_odd_names_of_entries_are_shown_on_one_line_and_break_no_order(write: Write) -> None:
    names = ["\u00b2.json", "1.json", "x\n\x1b[31m\u202e.json", "\u0663.json"]
    path = write(packed({name: {**TALK, "id": n} for n, name in enumerate(names)}))
    conversations = read(path)
    assert sorted(c.id for c in conversations) == ["0", "1", "2", "3"]
    assert all(str(c.source).isprintable() for c in conversations)


def test_a_path_that_climbs_out_of_the_zip_writes_nothing(write: Write, tmp_path: Path) -> None:
    path = write(packed({"../../evil/conversations.json": [CHAT]}), "inner/zip")
    assert [c.id for c in read(path)] == ["c1"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "zip"]
