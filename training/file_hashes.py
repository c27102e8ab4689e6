"""sha256 of files. Of a large one it is remembered as long as the file's size and time stay what they were."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from aipsy_judge.atomic import write_text
from aipsy_judge.cache_folder import cache_folder
from aipsy_judge.errors import InputError
from aipsy_judge.strict_json import dumps, loads

# Reading a gigabyte takes about a second; below this nothing is gained by remembering.
LARGE_BYTES = 256 * 2**20


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file, or of a folder: over its files' names and hashes, hidden ones left out.

    InputError where it cannot be read.
    """
    try:
        if path.is_dir():
            return _folder(path)
        status = path.stat()
        return _remembered(path, status) if status.st_size >= LARGE_BYTES else _read(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error


def folder_hashes(folder: Path) -> dict[str, str]:
    """Relative name -> sha256 of every file in a folder and below, hidden ones left out, sorted."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    named = {p.relative_to(folder).as_posix(): p for p in files}
    return {
        name: file_sha256(path)
        for name, path in named.items()
        if not any(part.startswith(".") for part in name.split("/"))
    }


def data_sha256(data: object) -> str:
    """sha256 (hex) of plain data, whatever the order of its keys."""
    return hashlib.sha256(dumps(data, sort_keys=True).encode()).hexdigest()


def _folder(folder: Path) -> str:
    return data_sha256(folder_hashes(folder))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered(path: Path, status: os.stat_result) -> str:
    """By the file's own path, size, inode and time of change in nanoseconds: a write changes the last."""
    key = str(path.resolve())
    state = [status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]
    memory = cache_folder() / "file_hashes.json"
    known = _known(memory)
    entry = known.get(key)
    if isinstance(entry, Mapping) and entry.get("state") == state:
        return str(entry["sha256"])
    found = _read(path)
    memory.parent.mkdir(parents=True, exist_ok=True)
    write_text(memory, dumps({**_known(memory), key: {"state": state, "sha256": found}}, indent=1) + "\n")
    return found


def _known(memory: Path) -> dict[str, object]:
    """What was remembered; nothing where the file is missing or damaged, for then it is only slower."""
    try:
        data = loads(memory.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
