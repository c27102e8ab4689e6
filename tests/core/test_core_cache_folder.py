"""What is remembered between two starts, and that a damaged or unwritable memory costs time only."""

from __future__ import annotations

import hashlib

import pytest

from aipsy_judge.cache_folder import cache_folder, recall, remember
from aipsy_judge.weights import file_sha256


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


def test_a_changed_file_has_its_own_hash_not_the_remembered_one(tmp_path):
    file = tmp_path / "w.gguf"
    for content in (b"first", b"second one"):
        file.write_bytes(content)
        assert file_sha256(file) == hashlib.sha256(content).hexdigest()
    assert len(recall("sha256", str)) == 2


def test_a_damaged_memory_of_hashes_is_not_believed(folder, tmp_path):
    file = tmp_path / "w.gguf"
    file.write_bytes(b"weights")
    file_sha256(file)
    remember("sha256", dict.fromkeys(recall("sha256", str), 5))
    assert file_sha256(file) == hashlib.sha256(b"weights").hexdigest()
