"""JSON as the standard has it: no NaN, valid UTF-8, one record a line wherever lines are split."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

# Legal inside a JSON string, yet taken for the end of a line by some readers.
_LINE_SEPARATORS = {ord(c): f"\\u{ord(c):04x}" for c in "\u0085\u2028\u2029"}


def dumps(data: Any, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """`data` as strict JSON text that encodes to UTF-8; half surrogate pairs become U+FFFD.

    ValueError, naming the place, where a number is NaN or infinite: it would have to be null, and only whoever made
    it knows why.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys)
    except ValueError as error:
        raise ValueError(f"not finite: {', '.join(_not_finite(data)) or error}") from error
    return whole_characters(text).translate(_LINE_SEPARATORS)


def loads(text: str | bytes) -> Any:
    """The inverse of `dumps`. ValueError on NaN, Infinity, a key written twice, text that is not UTF-8, or lists and
    objects nested deeper than Python can follow."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def whole_characters(text: str) -> str:
    r"""`text` without half surrogate pairs, which UTF-8 cannot hold: a pair is joined, a lone half becomes U+FFFD.

    >>> whole_characters("\ud83d\ude14 \ud83d!") == "\U0001f614 \ufffd!"
    True
    """
    if not re.search("[\ud800-\udfff]", text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_nan(data: Any) -> Any:
    """Foreign data (a transcript's metadata) with null for every NaN or infinity, and text for what JSON lacks."""
    match data:
        case float():
            return data if math.isfinite(data) else None
        case None | bool() | int() | str():
            return data
        case Mapping():
            return {str(k): without_nan(v) for k, v in data.items()}
        case list() | tuple():
            return [without_nan(v) for v in data]
        case _:
            return str(data)


def _not_finite(data: Any, path: str = "") -> list[str]:
    if isinstance(data, float) and not math.isfinite(data):
        return [path]
    if isinstance(data, Mapping):
        return [p for k, v in data.items() for p in _not_finite(v, f"{path}.{k}" if path else str(k))]
    if isinstance(data, list | tuple):
        return [p for i, v in enumerate(data) for p in _not_finite(v, f"{path}[{i}]")]
    return []


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key is written twice")
    return data
