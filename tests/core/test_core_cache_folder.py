"""What is remembered between two starts, and that a damaged or unwritable memory costs time only."""

from __future__ import annotations

import hashlib
import os

import pytest

from aipsy_judge import file_hash
from aipsy_judge.cache_folder import cache_folder, recall, remember
from aipsy_judge.file_hash import file_sha256


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(path))
    return path


def test_what_is_remembered_is_recalled_and_nothing_else_lies_in_the_folder(folder):
    remember("a", {"x": True, "y": False})
    assert recall("a", bool) == {"x": True, "y": False}
    assert recall("b", bool) == {}
    assert [p.name for p in folder.iterdir()] == ["a.json"]


@pytest.mark.parametrize("damage", [b"", b"[1]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"x": 1, "y": null, "z": "0"}'])
def test_a_damaged_memory_recalls_nothing_of_another_kind(folder, damage):
    folder.mkdir()
    (folder / "a.json").write_bytes(damage)
    assert recall("a", bool) == {}


def test_a_folder_that_cannot_be_made_is_no_error(folder):
    folder.write_text("a file stands where the folder should")
    remember("a", {"x": True})
    assert recall("a", bool) == {}


def test_the_folder_is_the_one_named_else_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("AIPSY_JUDGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "aipsy-judge"


@pytest.fixture
def reads(monkeypatch):
    """Every file that is read to be hashed; all are large enough to be remembered."""
    found, read = [], file_hash._read
    monkeypatch.setattr(file_hash, "REMEMBERED_BYTES", 1)
    monkeypatch.setattr(file_hash, "_read", lambda path: found.append(path) or read(path))
    return found


def test_a_hash_is_computed_once_until_the_file_changes(tmp_path, reads):
    file = tmp_path / "w.gguf"
    for content in (b"first", b"second one"):
        file.write_bytes(content)
        for _ in range(2):
            assert file_sha256(file) == hashlib.sha256(content).hexdigest()
    assert reads == [file, file]


def test_a_change_that_keeps_size_and_time_of_writing_is_seen(tmp_path, reads):
    file = tmp_path / "w.gguf"
    file.write_bytes(b"one")
    written = file.stat().st_mtime_ns
    assert file_sha256(file) == hashlib.sha256(b"one").hexdigest()
    file.write_bytes(b"two")
    os.utime(file, ns=(written, written))
    assert file_sha256(file) == hashlib.sha256(b"two").hexdigest()
    other = tmp_path / "other"
    other.write_bytes(b"six")
    os.utime(other, ns=(written, written))
    os.replace(other, file)
    assert file_sha256(file) == hashlib.sha256(b"six").hexdigest()


def test_what_changes_while_it_is_read_is_not_remembered_as_it_then_is(tmp_path, reads, monkeypatch):
    file, read = tmp_path / "w.gguf", file_hash._read

    def changed_meanwhile(path):
        found = read(path)
        file.write_bytes(b"longer than before")
        return found

    file.write_bytes(b"before")
    with monkeypatch.context() as patched:
        patched.setattr(file_hash, "_read", changed_meanwhile)
        file_sha256(file)
    assert file_sha256(file) == hashlib.sha256(b"longer than before").hexdigest()


def test_a_small_file_is_read_each_time_and_fills_no_memory(folder, tmp_path):
    file = tmp_path / "w.json"
    file.write_bytes(b"{}")
    assert file_sha256(file) == hashlib.sha256(b"{}").hexdigest()
    assert not folder.exists()


def test_a_damaged_memory_of_hashes_is_not_believed(folder, tmp_path, reads):
    file = tmp_path / "w.gguf"
    file.write_bytes(b"weights")
    file_sha256(file)
    remember("sha256", dict.fromkeys(recall("sha256", str), 5))
    assert file_sha256(file) == hashlib.sha256(b"weights").hexdigest()
    (folder / "sha256.json").write_text("{broken", encoding="utf-8")
    assert file_sha256(file) == hashlib.sha256(b"weights").hexdigest()
    assert reads == [file, file, file]
