"""What is read of a zip: the samples of an Inspect `.eval`, the chats of a ChatGPT or Claude export, or its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from ..conversation import Conversation
from ..errors import TranscriptError
from .archive import Archive
from .decoding import text_blocks
from .documents import read_text
from .inspect_log import header_metadata
from .json_parser import Parser
from .place import Place, UnknownShape, shown
from .skipping import Skip
from .sources import SUFFIXES
from .text_source import Text

_SAMPLE = re.compile(r"samples/[^/]+\.json")
_CHATS = re.compile(r"(.*/)?conversations([-_]?\d+)?\.json")
_HEADER = "header.json"


def read_zip(file: BinaryIO, name: str, skip: Skip) -> Iterator[Conversation]:
    """The conversations in a zip file, which must be seekable.

    Raises TranscriptError for a damaged file, one that grows beyond bounds, an Inspect log without samples;
    UnknownShape for a zip in which nothing is a transcript.
    """
    archive = Archive(file, name)
    if samples := _natural(n for n in archive.names if _SAMPLE.fullmatch(n)):
        about = _header(archive, name)
        for entry in samples:
            for conversation in _read_entry(archive, entry, name, skip):
                yield replace(conversation, metadata={**conversation.metadata, **about})
    elif _HEADER in archive.names or any(n.startswith("_journal/") for n in archive.names):
        raise TranscriptError("an Inspect log without samples: none was finished", where=name)
    elif chats := _natural(n for n in archive.names if _CHATS.fullmatch(n)):
        # The other files of an export (users, projects, feedback) are not conversations.
        for entry in chats:
            yield from _read_entry(archive, entry, name, skip)
    else:
        yield from _read_files(archive, name, skip)


def _read_files(archive: Archive, name: str, skip: Skip) -> Iterator[Conversation]:
    """A zip of any other files is read as a folder is."""
    read = 0
    for entry in _natural(archive.names):
        if PurePosixPath(entry).suffix.lower() not in SUFFIXES - {".zip", ".eval"}:
            skip(f"{name}, {shown(entry)}", "not opened: its name is not that of a transcript")
            continue
        before = read
        try:
            for conversation in _read_entry(archive, entry, name, skip):
                read += 1
                yield conversation
        except UnknownShape as stray:
            if read > before:  # it began as a transcript: damage, not a stray
                raise
            skip(f"{name}, {shown(entry)}", stray.message)
    if not read:
        raise UnknownShape(
            f"a zip without transcripts among its {len(archive.names)} files",
            where=name,
            hint="A ChatGPT or Claude export holds conversations.json, an Inspect log samples/*.json.",
        )


def _read_entry(archive: Archive, entry: str, name: str, skip: Skip) -> Iterator[Conversation]:
    place = f"{name}, {shown(entry)}"
    with archive.open(entry) as source:
        yield from read_text(Text(text_blocks(source, place), Place(place)), skip)


def _header(archive: Archive, name: str) -> dict[str, Any]:
    if _HEADER not in archive.names:
        return {}
    place = Place(f"{name}, {_HEADER}")
    with archive.open(_HEADER) as source:
        return header_metadata(Parser().parse(Text(text_blocks(source, place.file), place).whole(), place))


def _natural(names: Iterable[str]) -> list[str]:
    """Sorted so that s2 comes before s10."""
    # Splitting at the numbers leaves text at the even places and numbers at the odd ones.
    return sorted(names, key=lambda name: [int(p) if n % 2 else p for n, p in enumerate(re.split(r"(\d+)", name))])
