"""How a judge was made, read from the folder of its training run."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from aipsy_judge.errors import InputError
from aipsy_judge.manifest import Made
from aipsy_judge.strict_json import loads
from aipsy_judge.strict_yaml import load_yaml

RECIPE, PROVENANCE, STAGE = "recipe.resolved.yaml", "provenance.json", "stage.json"
TEMPERATURES = Path("sft") / "temperatures.json"


def made_by(run: Path | None) -> Made:
    """Recipe, commit, versions and data hashes of a training run; of no run, the date alone. Raises InputError."""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    if run is None:
        return Made(date=today)
    text = _text(run / RECIPE)
    told = _json(run / PROVENANCE)
    return Made(
        date=_date(told.get("created"), run / PROVENANCE) or today,
        recipe=_name(text, run / RECIPE),
        recipe_sha256=hashlib.sha256(text.encode()).hexdigest(),
        data=_data(run),
        commit=told.get("commit"),
        versions={str(k): str(v) for k, v in _mapping(told, "versions", run / PROVENANCE).items()},
    )


def fitted_temperatures(run: Path | None) -> dict[str, float]:
    """Temperature per slot that the run fitted on its validation data; none where it fitted none."""
    if run is None or not (run / TEMPERATURES).is_file():
        return {}
    told = _json(run / TEMPERATURES)
    found = told.get("temperatures", told)
    if not isinstance(found, Mapping) or not all(isinstance(t, int | float) for t in found.values()):
        raise InputError("no temperatures: a number a slot was expected", where=str(run / TEMPERATURES))
    return {str(name): float(t) for name, t in found.items()}


def _data(run: Path) -> dict[str, str]:
    """What the run's targets rest on: conversations, ratings, correction."""
    path = run / "targets" / STAGE
    if not path.is_file():
        return {}
    inputs = _mapping(_mapping(_json(path), "key", path), "inputs", path)
    return {str(label): str(digest) for label, digest in inputs.items()}


def _name(text: str, path: Path) -> str:
    try:
        data = load_yaml(text)
    except yaml.YAMLError as error:
        raise InputError(f"not valid YAML: {error}", where=str(path)) from error
    return str(data.get("name", path.parent.name)) if isinstance(data, Mapping) else path.parent.name


def _mapping(data: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    found = data.get(key) or {}
    if not isinstance(found, Mapping):
        raise InputError(f"{key}: an object was expected", where=str(path))
    return found


def _date(text: object, path: Path) -> datetime.date | None:
    try:
        return datetime.datetime.fromisoformat(text).date() if isinstance(text, str) else None
    except ValueError as error:
        raise InputError(f"created: {error}", where=str(path)) from error


def _json(path: Path) -> dict[str, Any]:
    try:
        data = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise InputError("an object was expected", where=str(path))
    return data


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
