"""A judge's weights come into its folder as files of their own name, also where they were links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_folder import write_small_folder
from small_gguf import write_small_gguf

from quantize.placing import place_file, place_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "judge"
    made.mkdir()
    return made


def linked_as_in_a_hubs_cache(file: Path) -> Path:
    """What the file held is moved to blobs/, a relative link is left in its place."""
    blob = file.parent.parent / "blobs" / f"{file.name}-blob"
    blob.parent.mkdir(exist_ok=True)
    file.rename(blob)
    file.symlink_to(os.path.relpath(blob, file.parent))
    return blob


def test_a_file_that_a_hubs_cache_holds_as_a_link_is_placed_as_a_file(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    blob = linked_as_in_a_hubs_cache(write_small_gguf(tmp_path / "snapshot" / "small.gguf"))
    row, placed = place_file("model", str(tmp_path / "snapshot" / "small.gguf"), folder)
    assert (placed, row.bytes) == (folder / "small.gguf", blob.stat().st_size)
    assert not placed.is_symlink()
    assert placed.samefile(blob)


def test_a_folder_that_a_hubs_cache_holds_as_links_is_placed_as_files(tmp_path: Path, folder: Path) -> None:
    source = write_small_folder(tmp_path / "snapshot")
    names = sorted(p.name for p in source.iterdir())
    for name in names:
        linked_as_in_a_hubs_cache(source / name)
    rows, _ = place_model(str(source), folder)
    assert sorted(r.name for r in rows) == sorted(p.name for p in folder.iterdir()) == names
    assert not [p for p in folder.iterdir() if p.is_symlink()]


def test_a_link_that_was_left_in_the_folder_gives_way_to_the_file(tmp_path: Path, folder: Path) -> None:
    file = write_small_gguf(tmp_path / "small.gguf")
    (folder / "small.gguf").symlink_to(file)
    _, placed = place_file("model", str(file), folder)
    assert not placed.is_symlink()
    assert placed.samefile(file)
