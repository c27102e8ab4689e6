"""How a judge was made, read from the folder of its training run: what the training itself recorded, not what a later
program did in that folder."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError

from aipsy_judge.errors import InputError
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.manifest import Made
from aipsy_judge.strict_yaml import load_yaml

from .exported import TRAINING
from .stage_record import StageRecord, part, read_object, read_stage

RECIPE = "recipe.resolved.yaml"
TARGETS, TARGETS_FILE, TEMPERATURES = "targets", "targets.jsonl", "temperatures.json"


def made_by(run: Path | None) -> Made:
    """Recipe, commit, versions and data hashes of a training; of no run, the date alone. Raises InputError.

    recipe_sha256 is of the recipe as it was when the training was made, where the training recorded that.
    """
    today = datetime.datetime.now(tz=datetime.UTC).date()
    if run is None:
        return Made(date=today)
    text, trained = _text(run / RECIPE), read_stage(run / TRAINING)
    versions = part(trained.made, "versions", trained.path)
    try:
        return Made(
            date=_date(trained.made.get("created"), trained.path) or today,
            recipe=_name(text, run / RECIPE),
            recipe_sha256=trained.made.get("recipe_sha256") or hashlib.sha256(text.encode()).hexdigest(),
            data=_data(run, trained),
            commit=trained.made.get("commit"),
            versions={str(k): str(v) for k, v in versions.items()},
        )
    except ValidationError as error:
        fault = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}", where=str(trained.path)) from error


def fitted_temperatures(run: Path | None) -> dict[str, float]:
    """Temperature per slot that the run's training fitted on its validation data; none where it fitted none."""
    if run is None:
        return {}
    path, wanted = run / TRAINING / TEMPERATURES, read_stage(run / TRAINING).outputs.get(TEMPERATURES)
    if (file_sha256(path) if path.is_file() else None) != wanted:
        raise InputError(
            "is not what the training made",
            where=str(path),
            hint="Name temperatures of your own in the description, or train again: python -m training.run RECIPE",
        )
    if wanted is None:
        return {}
    told = read_object(path)
    found = told.get("temperatures", told)
    if not isinstance(found, Mapping) or not all(isinstance(t, int | float) for t in found.values()):
        raise InputError("no temperatures: a number a slot was expected", where=str(path))
    return {str(name): float(t) for name, t in found.items()}


def _data(run: Path, trained: StageRecord) -> dict[str, str]:
    """What the training's targets rest on: conversations, ratings, correction. Where the targets were made anew since,
    what the training itself rests on."""
    targets = read_stage(run / TARGETS) if (run / TARGETS).is_dir() else None
    same = targets is not None and targets.outputs.get(TARGETS_FILE) == trained.inputs.get(TARGETS, "")
    inputs = targets.inputs if targets is not None and same else trained.inputs
    return {str(label): str(digest) for label, digest in inputs.items()}


def _name(text: str, path: Path) -> str:
    try:
        data = load_yaml(text)
    except yaml.YAMLError as error:
        raise InputError(f"not valid YAML: {error}", where=str(path)) from error
    return str(data.get("name", path.parent.name)) if isinstance(data, Mapping) else path.parent.name


def _date(text: object, path: Path) -> datetime.date | None:
    try:
        return datetime.datetime.fromisoformat(text).date() if isinstance(text, str) else None
    except ValueError as error:
        raise InputError(f"created: {error}", where=str(path)) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
