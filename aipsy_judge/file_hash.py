"""sha256 of large files, each computed once: weights take minutes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from .cache_folder import recall, remember


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file; remembered by path, size and time of change."""
    known = recall("sha256", str).get(_key(path))
    if known is not None:
        return known
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    remember_sha256(path, found)
    return found


def remember_sha256(path: Path, sha256: str) -> None:
    """Keep a hash that was computed while the file was written."""
    remember("sha256", {**recall("sha256", str), _key(path): sha256})


def _key(path: Path) -> str:
    stat = path.stat()
    return f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
