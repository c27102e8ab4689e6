"""What a reply says beside its verdict, as plain data: for whoever hands the reply on."""

from __future__ import annotations

import math
from typing import Any

from .found import Found, find_object
from .json_text import Json, JsonObject, NumberText

DEEPEST = 20  # lists and objects in one another; what lies deeper is None


def said_aside(text: str, name: str) -> Any:
    """The value that the reply's one object has under `name`: found and repaired as the verdict is. None where there
    is no such object, or it has none or several. A number that JSON does not know (NaN, 1e999) is None.

    >>> said_aside('Here: {"scores": {}, "mood": {"now": "calm", "sure": 0.5,}}', "mood")
    {'now': 'calm', 'sure': 0.5}
    """
    found = find_object(text)
    values = [v for k, v in found.object.pairs if k == name] if isinstance(found, Found) else []
    return _plain(values[0]) if len(values) == 1 else None


def _plain(value: Json, depth: int = 0) -> Any:
    if isinstance(value, NumberText):
        return _number(value.text)
    if depth == DEEPEST:
        return None
    if isinstance(value, JsonObject):
        return {key: _plain(inner, depth + 1) for key, inner in value.pairs}
    return [_plain(inner, depth + 1) for inner in value] if isinstance(value, list) else value


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        found = float(text)
        return found if math.isfinite(found) else None
