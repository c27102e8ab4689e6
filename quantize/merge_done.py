"""A merge that is there already: taken for done where it is the one that is asked for, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import sync_folder
from aipsy_judge.errors import InputError, JudgeError
from aipsy_judge.file_hash import file_sha256

from .beside_weights import beside
from .checkpoint import INDEX, Checkpoint, read_json
from .merge_state import RECORD, STATE
from .new_file import check_new


def merge_done(out: Path, base: Checkpoint, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """What merged.json in `out` says, if that is what merging `asked` came to, whole; None where `out` is not there.

    asked: the entries of merged.json that are known before merging. Every file is hashed. Raises InputError where
    something else is there.
    """
    if not (out / RECORD).is_file():
        check_new(out)
        return None
    try:
        record = read_json(out / RECORD)
        same = _says(record, asked) and _is_whole(out, base, record)
    except (JudgeError, OSError, KeyError, TypeError):  # edited, or files are gone
        same = False
    if not same:
        raise InputError(
            "is there already and holds another merge, or was changed",
            where=str(out),
            hint="Name another one, or remove it.",
        )
    finish(out)
    return record


def finish(out: Path) -> None:
    """The record of what is done goes last: until then a killed merge is known for what it is, and goes on."""
    (out / STATE).unlink(missing_ok=True)
    sync_folder(out)
    sync_folder(out.parent)


def _says(record: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    as_read = json.loads(json.dumps(asked))
    return bool({key: record.get(key) for key in as_read} == as_read)


def _is_whole(out: Path, base: Checkpoint, record: Mapping[str, Any]) -> bool:
    files, copied = {row["name"]: row["sha256"] for row in record["files"]}, dict(record["copied"])
    index = [base.folder / INDEX] if (base.folder / INDEX).is_file() else []
    return (
        files.keys() == {f.path.name for f in base.files}
        and copied == _hashes(beside(base.folder))
        and all(file_sha256(out / name) == sha256 for name, sha256 in (files | copied | _hashes(index)).items())
    )


def _hashes(paths: Iterable[Path]) -> dict[str, str]:
    return {p.name: file_sha256(p) for p in paths}
