"""JSON as transcripts need it: a repeated key is an error, and every fault names its place."""

from __future__ import annotations

import json
from typing import Any

from ..errors import TranscriptError
from .place import Place

_HINT = "The file must be valid JSON, or JSONL with one JSON value a line."


class _Repeating(dict[str, Any]):
    """An object in which a key stood twice, kept apart so that the path to it can be told afterwards."""

    key = ""


class Parser:
    """Parses JSON values. NaN and Infinity are let through (only metadata can hold them, which drops them)."""

    def __init__(self) -> None:
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object)
        self._has_repeats = False

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        keys = [key for key, _ in pairs]
        marked = _Repeating(plain)
        marked.key = next(key for n, key in enumerate(keys) if key in keys[:n])
        self._has_repeats = True
        return marked

    def parse(self, text: str, place: Place) -> Any:
        """The value that `text` is.

        Raises TranscriptError with line and column where the text is not JSON, with the JSON path where a key
        stands twice in one object (the second would win in silence).
        """
        try:
            value = self._decoder.decode(text)
        except (ValueError, RecursionError) as fault:
            raise explain(fault, place) from None
        self.refuse_repeats(value, place)
        return value

    def parse_at(self, text: str, start: int) -> tuple[Any, int]:
        """The value that begins at `start`, and where it ends. Raises what json raises; see `refuse_repeats`."""
        return self._decoder.raw_decode(text, start)

    def refuse_repeats(self, value: Any, place: Place) -> None:
        if self._has_repeats:
            self._has_repeats = False
            _refuse_repeats(value, place)


def explain(fault: Exception, place: Place, *, first_line: int = 1) -> TranscriptError:
    """The error for what json raised; `first_line` is the line of the file at which the parsed text begins."""
    if isinstance(fault, json.JSONDecodeError):
        if place.line is None:
            place = place.on_line(first_line + fault.lineno - 1)
        return place.error(f"not valid JSON: {fault.msg.lower()} (column {fault.colno})", hint=_HINT)
    if isinstance(fault, RecursionError):
        return place.error("not readable: nested too deeply", hint=_HINT)
    return place.error("not readable: it holds a number of thousands of digits", hint=_HINT)


def _refuse_repeats(value: Any, place: Place) -> None:
    waiting: list[tuple[Any, Place]] = [(value, place)]
    while waiting:
        found, where = waiting.pop()
        if isinstance(found, _Repeating):
            raise where.error(
                f"the key {found.key[:40]!r} stands twice in one object",
                hint="Remove one of the two: which of them holds cannot be told.",
            )
        if isinstance(found, dict):
            waiting.extend((v, where.at(k)) for k, v in found.items() if isinstance(v, dict | list))
        elif isinstance(found, list):
            waiting.extend((v, where.at(n)) for n, v in enumerate(found) if isinstance(v, dict | list))
