"""An append-only file of JSON lines that survives `kill -9`: synced a line, a torn last line dropped on reading."""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .atomic import sync_folder
from .errors import InputError
from .strict_json import dumps, loads

Take = Callable[[dict[str, Any], int], None]


def read_journal(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """All records, and warnings. See `scan`."""
    records: list[dict[str, Any]] = []
    _, warnings = scan(path, lambda record, _: records.append(record))
    return records, warnings


def scan(path: Path, take: Take) -> tuple[int, list[str]]:
    """Call `take(record, offset)` for each record, one in memory at a time. Gives the length in bytes up to the end of
    the last whole record, and warnings.

    A last line that is no whole JSON object is what a killed process leaves behind: it is dropped with a warning.
    Such a line anywhere else, or a record that `take` refuses (KeyError, TypeError, ValueError), means that the file
    was changed by something else: InputError naming the line.
    """
    end = position = 0
    torn: tuple[int, ValueError] | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            start, position = position, position + len(line)
            if not line.strip():
                continue
            if torn is not None:
                raise _damaged(path, *torn)
            try:
                record = _record(line)
            except ValueError as error:
                torn = (number, error)
                continue
            try:
                take(record, start)
            except (KeyError, TypeError, ValueError) as error:
                raise _damaged(path, number, error) from error
            end = position
    dropped = f"{path}:{torn[0]}: a line cut short was dropped; what it held is judged again" if torn else None
    return end, [dropped] if dropped else []


def _record(line: bytes) -> dict[str, Any]:
    record = loads(line)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    return record


def _damaged(path: Path, number: int, error: Exception) -> InputError:
    what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    return InputError(
        f"a damaged line: {what}",
        where=f"{path}:{number}",
        hint="Only the last line can be cut short by a crash; this one was changed. Remove it to judge it again.",
    )


class Journal:
    """A journal open for appending. Each `append` is on the disk when it returns. Mode 0600, one writer at a time."""

    def __init__(self, path: Path, take: Take = lambda record, offset: None) -> None:
        """Opens or makes the file, scans what it holds, and cuts off a torn last line.

        Raises InputError where another process writes it, or a line in the middle is damaged.
        """
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _lock(self._handle, path)
            os.chmod(path, 0o600)
            end, self.warnings = scan(path, take)
            self._mend(end)
            self._reader = path.open("rb")
        except BaseException:
            os.close(self._handle)
            raise
        sync_folder(path.parent)

    def append(self, record: Mapping[str, Any]) -> int:
        """Write one line and wait until it is on the disk; its offset.

        InputError where the disk is full or fails; the file then ends with the last whole line, ready for the next.
        """
        offset = os.lseek(self._handle, 0, os.SEEK_END)
        data = (dumps(record) + "\n").encode("utf-8")
        try:
            while data:  # a write may be partial, e.g. where a signal comes in between
                data = data[os.write(self._handle, data) :]
            os.fsync(self._handle)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, offset)
            raise InputError(f"cannot be written: {error.strerror or error}", where=str(self.path)) from error
        return offset

    def read(self, offset: int) -> dict[str, Any]:
        """The record at an offset."""
        self._reader.seek(offset)
        return _record(self._reader.readline())

    def close(self) -> None:
        self._reader.close()
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _mend(self, end: int) -> None:
        os.ftruncate(self._handle, end)
        os.lseek(self._handle, max(0, end - 1), os.SEEK_SET)
        if end and os.read(self._handle, 1) != b"\n":
            os.write(self._handle, b"\n")


class Shelf:
    """The same without a file: records in this process's memory, compressed."""

    def __init__(self) -> None:
        self._records: list[bytes] = []

    def append(self, record: Mapping[str, Any]) -> int:
        """Keep a record; its number."""
        self._records.append(zlib.compress(dumps(record).encode("utf-8"), 1))
        return len(self._records) - 1

    def read(self, offset: int) -> dict[str, Any]:
        """The record of a number."""
        return _record(zlib.decompress(self._records[offset]))

    def close(self) -> None:
        self._records = []


def _lock(handle: int, path: Path) -> None:
    """Refuse a second writer. The system frees the lock however its holder ends."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(
            "another process is writing this run", where=str(path), hint="Wait for it, or use another folder."
        ) from error
