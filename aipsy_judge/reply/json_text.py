"""JSON as models write it: read strictly first, then with a few repairs that cannot change what was said.

The repairs: an illegal backslash stands for itself, raw line breaks may stand in strings, a comma may trail, `4.` is
4.0, invisible format characters between tokens are dropped. Nothing is closed, quoted or completed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberText:
    """A JSON number as it was written ("4", "3.5", "NaN"): what it is worth is decided where it is read."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object with all its pairs, so that a key written twice is seen."""

    pairs: tuple[tuple[str, Json], ...]


Json = None | bool | str | NumberText | list["Json"] | JsonObject

_DECODER = json.JSONDecoder(
    object_pairs_hook=lambda pairs: JsonObject(tuple(pairs)),
    parse_int=NumberText,
    parse_float=NumberText,
    parse_constant=NumberText,
)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=lambda pairs: JsonObject(tuple(pairs)),
    parse_int=NumberText,
    parse_float=NumberText,
    parse_constant=NumberText,
    strict=False,
)
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STRING_OR_BRACE = re.compile(_STRING.pattern + r'|["{}]', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_BARE_POINT = re.compile(r"(?<=\d)\.(?=\s*(?:[,}\]]|$))")


def decode_object(text: str) -> tuple[JsonObject, bool] | None:
    """The object that `text` is, and whether it had to be repaired; None where it is no JSON object."""
    for attempt, repaired in ((text, False), (None, True)):
        try:
            decoder = _LENIENT if repaired else _DECODER
            found = decoder.decode(repair(text) if attempt is None else attempt)
        except (ValueError, RecursionError):
            continue
        return (found, repaired) if isinstance(found, JsonObject) else None
    return None


def repair(text: str) -> str:
    """`text` with the repairs named above, string by string."""
    parts: list[str] = []
    end = 0
    for string in _STRING.finditer(text):
        parts += [_repair_structure(text[end : string.start()]), _ESCAPE.sub(_own_backslash, string.group())]
        end = string.end()
    return "".join([*parts, _repair_structure(text[end:])])


def object_end(text: str, start: int) -> int | str:
    """Where the object that opens at `start` ends; else what kept it open: "brace" or "string"."""
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text, start):
        if token.group() == '"':
            return "string"
        depth += (token.group() == "{") - (token.group() == "}")
        if depth == 0:
            return token.end()
    return "brace"


def without_format_characters(text: str) -> str:
    """`text` without zero-width and other invisible format characters (Unicode category Cf)."""
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def _own_backslash(match: re.Match[str]) -> str:
    return "\\\\" if match.group() == "\\" else match.group()


def _repair_structure(text: str) -> str:
    return _BARE_POINT.sub(".0", _TRAILING_COMMA.sub("", without_format_characters(text)))
