"""The words of a JSON schema: which say nothing about what is valid, which can be kept together, which are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..strict_json import whole_characters
from .refusal import Refusal

# Keywords that say nothing about what is valid, or that are dealt with below.
_SILENT = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "example",
        "$schema",
        "$id",
        "$anchor",
        "$comment",
        "$defs",
        "definitions",
        "deprecated",
        "readOnly",
        "writeOnly",
        "nullable",
        "required",
        "additionalProperties",
        "strict",
    ]
)


def is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, or of one of several; of any where none is named."""
    if kind is None:
        return True
    if isinstance(kind, list):
        return any(is_of(value, k) for k in kind)
    if isinstance(value, bool) or value is None:
        return bool(kind == ("null" if value is None else "boolean"))
    if isinstance(value, str):
        return bool(kind == "string")
    return bool(kind == "number" or (kind == "integer" and value == int(value)))


def sole_of(schemas: Any) -> Mapping[str, Any] | None:
    """The one schema of a list of one, as which pydantic writes a reference with a description."""
    sole = schemas[0] if isinstance(schemas, list) and len(schemas) == 1 else None
    return sole if isinstance(sole, Mapping) else None


def both(base: Mapping[str, Any], beside: Mapping[str, Any], word: str, at: str) -> Mapping[str, Any]:
    """What `word` leads to, and what stands beside `word`; refused where they say different things of one matter."""
    own = {k: v for k, v in beside.items() if k != word}
    clash = next((k for k in own if k in base and k not in _SILENT and base[k] != own[k]), None)
    if clash is not None:
        raise refused(at, f"says {clash[:80]!r} in two ways")
    return {**base, **own}


def count(schema: Mapping[str, Any], word: str, usual: int | None, at: str) -> int | None:
    value = schema.get(word, usual)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0 or value > 10**6):
        raise refused(at, f"has a {word} that is no count")
    return value


def scalar(value: Any, at: str) -> Any:
    if isinstance(value, str):
        return whole(value, at)
    if isinstance(value, int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise refused(at, "allows a value that is neither text, finite number, boolean nor null")


def whole(text: str, at: str) -> str:
    """A text that UTF-8 can hold; half a surrogate pair can be escaped in JSON, and never be written."""
    if whole_characters(text) != text:
        raise refused(at, "has a text that holds half of a character")
    return text


def only(schema: Mapping[str, Any], at: str, *known: str) -> None:
    strange = sorted(set(schema) - _SILENT - set(known))
    if strange:
        raise refused(at, f"says {strange[0][:80]!r}, which cannot be kept")


def refused(at: str, what: str, hint: str | None = None) -> Refusal:
    return Refusal(422, f"The JSON schema cannot be answered: {at[:200]} {what}.", hint=hint)
