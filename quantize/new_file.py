"""A file that is there whole or not at all, under a name that was free."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from aipsy_judge.atomic import sync_folder
from aipsy_judge.errors import InputError


@dataclass(frozen=True, slots=True)
class Made:
    """A written file of weights: its type (Q8_0, F16, ...), size in bytes and sha256."""

    path: Path
    type: str
    size_bytes: int
    sha256: str


def check_new(out: Path) -> None:
    """Raise InputError if `out` is there already, or its folder is not."""
    if out.exists():
        raise InputError("is there already", where=str(out), hint="Name another one, or remove it.")
    if not out.parent.is_dir():
        raise InputError("its folder does not exist", where=str(out), hint=f"mkdir -p {out.parent}")


def keep(made: Path, out: Path, kind: str) -> Made:
    """Give the finished file `made` its name `out`, synced. It must lie on the same disk."""
    with made.open("rb") as file:
        os.fsync(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    made.rename(out)
    sync_folder(out.parent)
    return Made(out, kind, out.stat().st_size, sha256)
