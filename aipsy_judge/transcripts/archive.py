"""Zip files, read in memory and never unpacked to disk: entries stored, deflated, or zstd (method 93, Inspect logs).

Python's zipfile reads zstd from 3.14 on only, so those entries are read here by their raw bytes. Sizes are bounded: an
entry that declares too much is refused, and one that gives more than it declares is stopped there.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast

import zstandard

from ..errors import TranscriptError
from .decoding import ByteSource
from .place import shown

MAX_ENTRY_BYTES = 4 << 30
# A folder of many samples may be larger than any one of them; a bomb of many entries is larger still.
MAX_ARCHIVE_BYTES = 16 << 30
# Text shrinks to a tenth, a log that repeats itself to a hundredth; what shrinks further is not text.
MAX_RATIO = 1000
_RATIO_MATTERS_BYTES = 64 << 20
# The largest window that zstd's command line uses without being asked for more.
_MAX_WINDOW_BYTES = 128 << 20
_ZSTD, _ENCRYPTED = 93, 0x1
_HEADER_BYTES, _LOCAL_HEADER = 30, b"PK\3\4"
_DAMAGE = (
    zipfile.BadZipFile, zstandard.ZstdError, zlib.error, lzma.LZMAError, struct.error,
    EOFError, ValueError, OverflowError,
)  # fmt: skip


class Archive:
    """An open zip file. Every fault in it is a TranscriptError that names it."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        with _explained(name):
            self._zip = zipfile.ZipFile(file)
        # The last of several entries of one name is the one that holds.
        files = (info for info in self._zip.infolist() if info.filename and not info.filename.endswith("/"))
        self._entries = {info.filename: info for info in files}
        if sum(info.file_size for info in self._entries.values()) > MAX_ARCHIVE_BYTES:
            raise TranscriptError(f"it declares more than {MAX_ARCHIVE_BYTES >> 30} GiB of content", where=name)

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    @contextmanager
    def open(self, entry: str) -> Iterator[ByteSource]:
        """The content of an entry; what is wrong with it is raised here or while it is read."""
        info, where = self._entries[entry], f"{self._name}, {shown(entry)}"
        _refuse_bomb(info, where)
        with _explained(where):
            raw = self._open_zstd(info) if info.compress_type == _ZSTD else self._zip.open(info)
        with raw:
            yield _Checked(raw, info, where)

    def _open_zstd(self, info: zipfile.ZipInfo) -> IO[bytes]:
        if info.flag_bits & _ENCRYPTED:
            raise RuntimeError("an entry is encrypted")
        self._file.seek(info.header_offset)
        header = self._file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or not header.startswith(_LOCAL_HEADER):
            raise zipfile.BadZipFile("an entry does not begin where the directory says")
        # The local header's own name and extra field lie between it and the data.
        name_bytes, extra_bytes = struct.unpack("<HH", header[26:30])
        start = info.header_offset + _HEADER_BYTES + name_bytes + extra_bytes
        part = _Part(self._file, start, info.compress_size)
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        # It asks no more of its source than `read`; the stubs name the whole of IO.
        return decompressor.stream_reader(cast("IO[bytes]", part), read_across_frames=True, closefd=False)


class _Part:
    """The bytes of a file from `start` on, as a file of their own; others may move the file's position meanwhile."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._at, self._end = file, start, start + size

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._at
        self._file.seek(self._at)
        data = self._file.read(left if size < 0 else min(size, left))
        self._at += len(data)
        return data


class _Checked:
    """An entry's content, held to the size and the checksum that the directory declares."""

    def __init__(self, raw: IO[bytes], info: zipfile.ZipInfo, where: str) -> None:
        self._raw, self._info, self._where = raw, info, where
        self._bytes, self._crc = 0, 0

    def read(self, size: int = -1) -> bytes:
        with _explained(self._where):
            data = self._raw.read(size)
            self._bytes += len(data)
            self._crc = zlib.crc32(data, self._crc)
            if self._bytes > self._info.file_size or (not data and self._bytes < self._info.file_size):
                raise zipfile.BadZipFile("the size of an entry is not the declared one")
            if not data and size and self._crc != self._info.CRC:
                raise zipfile.BadZipFile("the checksum of an entry is not the declared one")
        return data


def _refuse_bomb(info: zipfile.ZipInfo, where: str) -> None:
    if info.file_size > MAX_ENTRY_BYTES:
        raise TranscriptError(f"it declares more than {MAX_ENTRY_BYTES >> 30} GiB", where=where)
    if info.file_size > max(_RATIO_MATTERS_BYTES, MAX_RATIO * info.compress_size):
        raise TranscriptError(f"it grows to more than {MAX_RATIO} times its size: not text", where=where)


@contextmanager
def _explained(where: str) -> Iterator[None]:
    try:
        yield
    except NotImplementedError as fault:
        raise TranscriptError(
            f"cannot be unpacked: {fault}", where=where, hint="Pack it again as a usual zip."
        ) from None
    except RuntimeError as fault:  # what zipfile raises for an entry with a password
        raise TranscriptError(f"cannot be unpacked: {fault}", where=where, hint="Remove the password first.") from None
    except _DAMAGE as fault:
        raise TranscriptError(
            f"a damaged zip file: {fault}", where=where, hint="Download or export it again."
        ) from None
