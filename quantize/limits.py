"""The limits that figures are held to (limits.yaml), and the checks that come of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aipsy_judge.errors import InputError
from aipsy_judge.manifest import Check
from aipsy_judge.strict_yaml import load_yaml

LIMITS = Path(__file__).parent / "limits.yaml"


class Limit(BaseModel):
    """The least or the most that a figure may be, and why. lacking: what it means if the figure cannot be had."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    least: Annotated[float, Field(allow_inf_nan=False)] | None = None
    most: Annotated[float, Field(allow_inf_nan=False)] | None = None
    why: Annotated[str, Field(min_length=1)]
    lacking: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> Limit:
        if (self.least is None) == (self.most is None):
            raise ValueError("wants either `least` or `most`")
        return self


@dataclass(frozen=True, slots=True)
class Limits:
    """A limit a figure, and the hash of the file that they stand in."""

    by_figure: Mapping[str, Limit]
    sha256: str


def load_limits(path: Path = LIMITS) -> Limits:
    """The limits in a file. Raises InputError with all that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
        data = load_yaml(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read as limits: {error}", where=str(path)) from error
    if not isinstance(data, Mapping) or not data:
        raise InputError("no limits: a mapping of figures was expected", where=str(path))
    return Limits(_parse(data, path), hashlib.sha256(text.encode()).hexdigest())


def _parse(data: Mapping[str, Any], path: Path) -> dict[str, Limit]:
    found, faults = {}, []
    for name, row in data.items():
        try:
            found[str(name)] = Limit.model_validate(row)
        except ValidationError as error:
            faults += [f"{'.'.join(map(str, (name, *e['loc'])))}: {e['msg']}" for e in error.errors()]
    if faults:
        raise InputError("; ".join(faults), where=str(path))
    return found


def checks(figures: Mapping[str, float | None], limits: Limits) -> tuple[Check, ...]:
    """A check for every limit, in the file's order. A figure that could not be had fails.

    Raises InputError for a limit on something that is not measured: it would be thought to hold.
    """
    strange = sorted(set(limits.by_figure) - set(figures))
    if strange:
        raise InputError(
            f"a limit on {', '.join(strange)}, which is not measured", hint=f"Figures: {', '.join(sorted(figures))}."
        )
    return tuple(_check(name, figures[name], limit) for name, limit in limits.by_figure.items())


def _check(name: str, value: float | None, limit: Limit) -> Check:
    high_enough = value is not None and (limit.least is None or value >= limit.least)
    low_enough = value is not None and (limit.most is None or value <= limit.most)
    return Check(figure=name, value=value, least=limit.least, most=limit.most, passed=high_enough and low_enough)
