"""Pack: a deficit space and the two rubrics that fill it, as YAML data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import RubricError
from ..strict_yaml import load_yaml
from .space import Axis, Indicator, Space

DEFAULT_PACK = "empa"

_Id = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.]{0,31}$")]
_Score = Annotated[float, Field(allow_inf_nan=False)]


class _AxisData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: _Id
    title: str
    indicators: Annotated[dict[_Id, Annotated[float, Field(lt=0, allow_inf_nan=False)]], Field(min_length=1)]
    progress: dict[int, _Score]
    harm: dict[int, _Score]

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        for name, scores, sign in (("progress", self.progress, 1), ("harm", self.harm, -1)):
            if sorted(sign * level for level in scores) != list(range(len(scores))) or len(scores) < 2:
                raise ValueError(f"{self.id}: {name} needs every level from 0 to {sign} or further, without a gap")
            if scores[0] != 0 or any(sign * score < 0 for score in scores.values()):
                raise ValueError(f"{self.id}: {name} scores start at 0 and never change their sign")
        return self


class _PackData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: str
    licence: str | None = None
    source: str | None = None
    start_rubric: str
    turn_rubric: str
    top_level: Annotated[int, Field(ge=1)]
    axes: Annotated[list[_AxisData], Field(min_length=1)]

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        ids = [i for a in self.axes for i in (a.id, *a.indicators)]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"ids used twice: {', '.join(twice)}")
        return self


@dataclass(frozen=True)
class Pack:
    """A space, the names (or paths) of its rubrics, and the sha256 over the content."""

    name: str
    version: str
    hash: str
    space: Space
    start_rubric: str
    turn_rubric: str


def load_pack(name_or_path: str | Path = DEFAULT_PACK) -> Pack:
    """A shipped pack by name, or a YAML file by path. RubricError with every fault at once."""
    shipped = resources.files("aipsy_judge") / "data" / "epm" / f"{name_or_path}.yaml"
    try:
        text = shipped.read_text("utf-8") if shipped.is_file() else Path(name_or_path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RubricError(
            f"no pack can be read here: {error}", where=str(name_or_path), hint=f"The shipped pack is {DEFAULT_PACK}."
        ) from error
    return parse_pack(text, where=str(name_or_path))


def parse_pack(text: str, *, where: str) -> Pack:
    """A pack from YAML text. RubricError with every fault at once."""
    try:
        data = _PackData.model_validate(load_yaml(text))
    except yaml.YAMLError as error:
        raise RubricError(f"not valid YAML: {error}", where=where) from error
    except ValidationError as error:
        faults = [f"  {'.'.join(map(str, e['loc'])) or 'pack'}: {e['msg']}" for e in error.errors()]
        raise RubricError("not a valid pack:\n" + "\n".join(faults), where=where) from error
    return Pack(
        name=data.name,
        version=data.version,
        hash=_hash(data.model_dump(mode="json")),
        space=Space(axes=tuple(_axis(a) for a in data.axes), top_level=data.top_level),
        start_rubric=data.start_rubric,
        turn_rubric=data.turn_rubric,
    )


def _axis(data: _AxisData) -> Axis:
    return Axis(
        id=data.id,
        title=data.title,
        indicators=tuple(Indicator(i, worth) for i, worth in data.indicators.items()),
        progress=dict(data.progress),
        harm=dict(data.harm),
    )


def _hash(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
