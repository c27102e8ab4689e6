"""iter_conversations: one conversation after another, from files, folders and standard input, each id once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from typing import BinaryIO

from ..conversation import Conversation
from ..errors import TranscriptError
from ..strict_json import whole_characters
from .archive import MAX_ARCHIVE_BYTES
from .decoding import ByteSource, filled, text_blocks
from .documents import read_text
from .exports import read_zip
from .place import Place, UnknownShape, shown
from .skipping import Skip, ignore
from .sources import PathLike, Source, sources
from .text_source import Text

Paths = PathLike | Iterable[PathLike]

_ZIP = (b"PK\3\4", b"PK\5\6")
# How files begin that are often taken for transcripts, and what to do with them.
_FOREIGN = {
    b"PAR1": ("a Parquet file", "Export it as JSONL or CSV."),
    b"\x1f\x8b": ("a gzip file", "Unpack it first (gunzip), or pipe it in: gunzip -c FILE | ... -"),
    b"\x28\xb5\x2f\xfd": ("a zstd file", "Unpack it first (unzstd)."),
    b"%PDF": ("a PDF file", "Export the conversation as text or JSON."),
    b"SQLi": ("an SQLite database", "Export the conversations as JSONL or CSV."),
}
_MAGIC_BYTES = 4


def iter_conversations(paths: Paths, *, on_skip: Skip = ignore) -> Iterator[Conversation]:
    """The conversations of one or several files, folders or standard input (`-`), one after another, in order.

    A folder is read with its subfolders, in the order of the names; files in it that hold no transcript are passed
    over. The format of a file is told by its content. JSONL, and JSON that is a list, is read element by element: what
    is held in memory is one conversation, and 16 bytes an id. A conversation without an id is called after its file and
    its number in it (`chats.jsonl#3`).

    `on_skip(place, reason)` hears of what is passed over: strays in folders, empty chats in exports.

    Raises TranscriptError, naming file and place, for what cannot be read, for an id that comes twice, and for a file
    or folder without any conversation. It may come after conversations were given already: who wants to know before
    anything is done with the first reads all of them once and keeps none.
    """
    given: list[PathLike] = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise TranscriptError("no file or folder was named")
    ids = _Ids()
    passed_over: list[tuple[str, str]] = []

    def skip(place: str, reason: str) -> None:
        if len(passed_over) < 3:
            passed_over.append((place, reason))
        on_skip(place, reason)

    for source in sources(given, skip):
        for number, conversation in enumerate(_read_source(source, skip), start=1):
            named = (
                conversation
                if conversation.id
                else replace(conversation, id=whole_characters(f"{source.label}#{number}"))
            )
            ids.add(named, source, number)
            yield named
    if not ids:
        raise _nothing(given, passed_over)


class _Ids:
    """The ids met so far, by their hashes, with the source and the number of the conversation that has it."""

    def __init__(self) -> None:
        self._met: dict[bytes, int] = {}
        self._sources: list[str] = []

    def __len__(self) -> int:
        return len(self._met)

    def add(self, conversation: Conversation, source: Source, number: int) -> None:
        if not self._sources or self._sources[-1] != source.name:
            self._sources.append(source.name)
        key = blake2b(conversation.id.encode(), digest_size=16).digest()
        # One small number an id, source and number together, so that a hundred thousand ids cost a few megabytes.
        here = (len(self._sources) - 1) << 40 | number
        first = self._met.setdefault(key, here)
        if first != here:
            raise TranscriptError(
                f"the id {conversation.id[:60]!r} stands here and at conversation {first & (1 << 40) - 1} "
                f"of {self._sources[first >> 40]}",
                where=conversation.source,
                hint="Give every conversation an id of its own, or score the files one at a time.",
            )


def _nothing(given: list[PathLike], passed_over: list[tuple[str, str]]) -> TranscriptError:
    reasons = "; ".join(f"{place}: {reason}" for place, reason in passed_over)
    return TranscriptError(
        "no conversation to read" + (f" ({reasons})" if reasons else ": nothing in it looks like a transcript"),
        where=", ".join(shown(os.fspath(path)) for path in given[:3]),
        hint="Give a transcript file, or a folder that holds some.",
    )


def _read_source(source: Source, skip: Skip) -> Iterator[Conversation]:
    """The conversations of a source. A stray in a folder is passed over; whatever fails otherwise names the source."""
    begun = False
    try:
        with source.open() as file:
            for conversation in _read_file(file, source.name, skip):
                begun = True
                yield conversation
    except UnknownShape as stray:
        # What begins as a transcript and goes on as something else is damaged, wherever it lies.
        if begun or not source.found_in_folder:
            raise
        skip(source.name, stray.message)
    except OSError as fault:
        raise TranscriptError(f"cannot be read: {fault.strerror or fault}", where=source.name) from None
    except RecursionError:
        raise TranscriptError("not readable: nested too deeply", where=source.name) from None


def _read_file(file: BinaryIO, name: str, skip: Skip) -> Iterator[Conversation]:
    magic = filled(file, _MAGIC_BYTES)
    if magic.startswith(_ZIP):
        with _seekable(file, magic, name) as archive:
            yield from read_zip(archive, name, skip)
        return
    for begin, (what, hint) in _FOREIGN.items():
        if magic.startswith(begin):
            raise UnknownShape(f"{what} is not read", where=name, hint=hint)
    yield from read_text(Text(text_blocks(_Rejoined(magic, file), name), Place(name)), skip)


class _Rejoined:
    """A file whose first bytes were read already: a pipe cannot be wound back."""

    def __init__(self, head: bytes, file: ByteSource) -> None:
        self._head, self._file = head, file

    def read(self, size: int = -1) -> bytes:
        head, self._head = self._head, b""
        return head or self._file.read(size)


@contextmanager
def _seekable(file: BinaryIO, magic: bytes, name: str) -> Iterator[BinaryIO]:
    """The zip file itself, or a copy of a pipe: the directory of a zip stands at its end."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        for block in chain([magic], iter(lambda: file.read(1 << 20), b"")):
            copy.write(block)
            if copy.tell() > MAX_ARCHIVE_BYTES:
                raise TranscriptError("a zip file of more than 16 GiB", where=name)
        yield copy
