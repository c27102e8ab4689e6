"""sha256 of what a stage rests on: files, folders, plain data."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aipsy_judge import file_hash
from aipsy_judge.errors import InputError
from aipsy_judge.strict_json import dumps


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file, or of a folder: over its files' names and hashes, hidden ones left out.

    InputError where it cannot be read.
    """
    try:
        return data_sha256(folder_hashes(path)) if path.is_dir() else file_hash.file_sha256(path)
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
