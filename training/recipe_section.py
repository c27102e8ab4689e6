"""What a section of the recipe is, and the types of its values: strict, frozen, with YAML's slips understood."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _listed(value: Any) -> Any:
    """One file may be written without the brackets of a list."""
    return [value] if isinstance(value, str) else value


def _number(value: Any) -> Any:
    """YAML 1.1 takes 2e-4 (no dot) for text; whoever writes it means the number."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", value):
        return float(value)
    return value


Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_listed), Field(strict=False)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Text = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """A mapping of the recipe: unknown keys are faults, types are strict, nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
