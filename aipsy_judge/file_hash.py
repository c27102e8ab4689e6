"""sha256 of files. Of a large one it is remembered as long as nothing of the file's state has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from .cache_folder import recall, remember

# Weights take seconds to minutes; so little is read in the time that looking it up takes.
REMEMBERED_BYTES = 8 * 2**20


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file; of a folder that holds a model, of the names and hashes of all files that have a part in
    what it says. OSError where it cannot be read."""
    if path.is_dir():
        from .model_folder import model_files

        return combined_sha256({p.name: file_sha256(p) for p in model_files(path)})
    if path.stat().st_size < REMEMBERED_BYTES:
        return _read(path)
    key = _key(path)  # before it is read: what is written meanwhile is another state
    known = recall("sha256", str).get(key)
    if known is not None:
        return known
    found = _read(path)
    remember("sha256", {**recall("sha256", str), key: found})
    return found


def combined_sha256(hashes: Mapping[str, str]) -> str:
    """One sha256 for several files: of a line for each, its sha256, two blanks and its name, in the order of names."""
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def remember_sha256(path: Path, sha256: str) -> None:
    """Keep a hash that was computed while the file was written, or checked."""
    remember("sha256", {**recall("sha256", str), _key(path): sha256})


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(path: Path) -> str:
    """Place, size, inode, times in nanoseconds. Whoever sets the time of writing back changes the last of them."""
    state = path.stat()
    return f"{path.resolve()}|{state.st_size}|{state.st_ino}|{state.st_mtime_ns}|{state.st_ctime_ns}"
