"""Files that are there whole or not at all, and for the owner's eyes only: verdicts speak of private talks."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from .errors import InputError


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8 to a file beside `path`, sync it, and put it in place in one step. Mode 0600.

    A link is followed; a device or pipe (/dev/stdout) is written to directly. InputError where it cannot be written;
    `path` is untouched then.
    """
    write_pieces(path, [text.encode("utf-8")])


def write_bytes(path: str | Path, data: bytes) -> None:
    """The same for what is not text."""
    write_pieces(path, [data])


def write_pieces(path: str | Path, pieces: Iterable[bytes]) -> None:
    """The same for what comes in pieces. Where making one fails, `path` is untouched too."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(pieces)
        else:
            _replace(target, pieces)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", where=str(path)) from error


def check_writable(path: str | Path) -> None:
    """Raise InputError now if `path` could not be written later: hours of judging must not end in a typing error."""
    target = Path(os.path.realpath(path))
    try:
        is_folder = target.is_dir()
    except OSError as error:  # a name that is too long for the file system
        raise InputError(f"cannot be written: {error.strerror or error}", where=str(path)) from error
    if is_folder:
        raise InputError("is a folder, a file was expected", where=str(path))
    if not target.parent.is_dir():
        raise InputError("its folder does not exist", where=str(path), hint=f"mkdir -p {target.parent}")
    if not os.access(target if target.exists() and not target.is_file() else target.parent, os.W_OK):
        raise InputError("no right to write there", where=str(path))


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent)  # 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a new name in `folder` survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
