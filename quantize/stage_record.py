"""What a training run recorded of a stage, NAME/stage.json: what it rested on, what came out, what it was made with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.errors import InputError
from aipsy_judge.strict_json import dumps, loads

STAGE = "stage.json"


@dataclass(frozen=True, slots=True)
class StageRecord:
    """inputs: sha256 by label; outputs: sha256 by file, from the stage's folder on; made: commit, versions, time."""

    path: Path
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    made: Mapping[str, Any]

    def folder_sha256(self, name: str) -> str:
        """Of a folder among the outputs, as a stage that rests on it records it (training/file_hashes.py)."""
        files = {k.removeprefix(f"{name}/"): v for k, v in self.outputs.items() if k.startswith(f"{name}/")}
        return hashlib.sha256(dumps(files, sort_keys=True).encode()).hexdigest()


def read_stage(folder: Path) -> StageRecord:
    """The record in the folder of a stage. Raises InputError where there is none or it was edited."""
    path = folder / STAGE
    if not path.is_file():
        raise InputError(
            f"the stage {folder.name} has not been made", where=str(folder), hint="python -m training.run RECIPE"
        )
    data = read_object(path)
    key = part(data, "key", path)
    return StageRecord(path, part(key, "inputs", path), part(data, "outputs", path), part(data, "made", path))


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object. Raises InputError where there is none."""
    try:
        data = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise InputError("an object was expected", where=str(path))
    return data


def part(data: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    """The object under `key`, empty where there is none. Raises InputError where it is something else."""
    found = data.get(key) or {}
    if not isinstance(found, Mapping):
        raise InputError(f"{key}: an object was expected", where=str(path))
    return found
