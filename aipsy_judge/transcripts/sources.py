"""Where transcripts come from: files, folders (all of their files that may be transcripts), standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import TranscriptError
from .place import shown
from .skipping import Skip

PathLike = str | os.PathLike[str]
STDIN = "-"
# In a folder, a file of another name is not opened: logs, pictures and weights lie beside transcripts. What a file that
# is opened holds is told by its content alone.
SUFFIXES = frozenset((".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".md", ".eval", ".zip"))


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. `label` is its part of the ids of conversations that have none; it does not change when the
    folder is moved. One found in a folder may turn out to be no transcript."""

    path: str
    label: str
    found_in_folder: bool = False

    @property
    def name(self) -> str:
        return "standard input" if self.path == STDIN else shown(self.path)

    def open(self) -> AbstractContextManager[BinaryIO]:
        if self.path == STDIN:
            return nullcontext(sys.stdin.buffer)
        return open(self.path, "rb")


def sources(paths: list[PathLike], skip: Skip) -> Iterator[Source]:
    """The files behind `paths`, folders in the order of their files' names.

    Raises TranscriptError when a path does not exist, or names a file that another path names too.
    """
    seen: dict[str, str] = {}
    for source in _labelled([os.fspath(path) for path in paths], skip):
        real = source.path if source.path == STDIN else os.path.realpath(source.path)
        if real in seen:
            raise TranscriptError(f"given twice, also as {seen[real]}", where=source.name)
        seen[real] = source.name
        yield source


def _labelled(paths: list[str], skip: Skip) -> Iterator[Source]:
    names = [Path(path).name for path in paths]
    for path, name in zip(paths, names, strict=True):
        # Two files of one name in two folders: only the path tells them apart.
        label = name if names.count(name) == 1 else Path(path).as_posix()
        if path == STDIN:
            yield Source(path, "stdin")
        elif os.path.isdir(path):
            yield from _in_folder(path, f"{label}/" if len(paths) > 1 else "", skip)
        elif not os.path.exists(path):
            raise TranscriptError("no such file or folder", where=shown(path))
        else:
            yield Source(path, label)


def _in_folder(folder: str, label: str, skip: Skip) -> Iterator[Source]:
    for root, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (os.path.join(root, name) for name in sorted(files) if not name.startswith(".")):
            if Path(path).suffix.lower() in SUFFIXES and os.path.isfile(path):
                yield Source(path, label + Path(path).relative_to(folder).as_posix(), found_in_folder=True)
            else:
                skip(shown(path), "not opened: its name is not that of a transcript")


def _refuse(fault: OSError) -> None:
    raise fault
