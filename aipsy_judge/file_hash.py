"""sha256 of large files, each computed once: weights take minutes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from .cache_folder import recall, remember


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file, remembered by path, size and time of change; of a folder that holds a model, of the
    names and hashes of all files that have a part in what it says."""
    if path.is_dir():
        from .model_folder import model_files

        return combined_sha256({p.name: file_sha256(p) for p in model_files(path)})
    known = recall("sha256", str).get(_key(path))
    if known is not None:
        return known
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    remember_sha256(path, found)
    return found


def combined_sha256(hashes: Mapping[str, str]) -> str:
    """One sha256 for several files: of a line for each, its sha256, two blanks and its name, in the order of names."""
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def remember_sha256(path: Path, sha256: str) -> None:
    """Keep a hash that was computed while the file was written."""
    remember("sha256", {**recall("sha256", str), _key(path): sha256})


def _key(path: Path) -> str:
    stat = path.stat()
    return f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
