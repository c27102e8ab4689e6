"""What a pull has put on this machine, written down beside it, so that `remove` takes away that and nothing else."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..atomic import write_text
from ..cache_folder import cache_folder
from ..errors import InputError

RECORD = "pulled.json"


class PulledFile(BaseModel):
    """A file that a pull made, beside the record."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    bytes: int
    sha256: str


class Record(BaseModel):
    """pulled.json in a judge's folder. revision: the hub's commit."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    judge: str
    repository: str
    revision: str
    files: tuple[PulledFile, ...]


@dataclass(frozen=True, slots=True)
class Removal:
    """files: what would be deleted; kept: what else lies in the judge's folder, and stays."""

    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    kept: tuple[Path, ...]
    size_bytes: int


def pulled_folder(name: str) -> Path:
    """Where a pulled judge lies."""
    return cache_folder() / "judges" / name


def staging_folder(name: str) -> Path:
    """Where a pull that is not done yet keeps what it has."""
    return cache_folder() / "judges" / f".{name}.part"


def write_record(folder: Path, record: Record) -> None:
    """Write it, whole or not at all."""
    write_text(folder / RECORD, json.dumps(record.model_dump(mode="json"), indent=1))


def read_record(folder: Path) -> Record | None:
    """The record of a folder; None where pull made none. Raises InputError for one that is not understood."""
    path = folder / RECORD
    try:
        record = Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise InputError("the record of what was pulled cannot be read", where=str(path)) from error
    for file in record.files:
        if Path(file.name).name != file.name or file.name in ("", ".", ".."):
            raise InputError(f"the record names {file.name!r}, which is not a plain file name", where=str(path))
    return record


def plan_removal(name: str) -> Removal:
    """What `remove` would delete: what the record names, the record, and the rest of a pull that was broken off."""
    folder, staging = pulled_folder(name), staging_folder(name)
    record = read_record(folder)
    files = [folder / f.name for f in record.files] + [folder / RECORD] if record is not None else []
    if staging.is_dir():
        files += [p for p in sorted(staging.iterdir()) if p.is_file()]
    files = [p for p in files if p.is_file() or p.is_symlink()]
    rest = sorted(p for p in folder.iterdir() if p not in files) if folder.is_dir() else []
    size = sum(p.lstat().st_size for p in files)
    return Removal((staging, folder), tuple(files), tuple(rest), size)


def remove(plan: Removal) -> None:
    """Delete the files of a plan, the record last, and the folders where nothing else is left in them."""
    for path in sorted(plan.files, key=lambda p: p.name == RECORD):
        path.unlink(missing_ok=True)
    for folder in plan.folders:
        with contextlib.suppress(OSError):  # not empty, or not there
            folder.rmdir()
