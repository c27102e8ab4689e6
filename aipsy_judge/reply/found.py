"""The one JSON object of a reply: found whole, or not at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..verdict import Unscored
from .json_text import JsonObject, decode_object, object_end, without_format_characters
from .thought import thought_ends, without_thought

_BLANKS = " \t\r\n"
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*\w*")


@dataclass(frozen=True, slots=True)
class Found:
    """The object, the text it was read from, the visible text around it, and what had to be done to get it."""

    object: JsonObject
    source: str
    around: str
    notes: tuple[str, ...]


def find_object(text: str) -> Found | Unscored:
    """The reply's only JSON object.

    Thinking is removed first, a fence or a sentence around the object does no harm. Two objects, or any brace beside
    the one object, leave open which is the verdict: Unscored("unparseable").
    """
    # Where all of the reply, or all after a mark, is one object, any thinking mark inside it is a quotation.
    for start in (0, *thought_ends(text)):
        bare = _unfenced(text[start:])
        if bare.startswith("{") and object_end(bare, 0) == len(bare):
            return _decode(bare, "", ("thought_removed",) if start else ())
    visible, thought = without_thought(text)
    if thought and not without_format_characters(visible).strip():
        return Unscored("thinking_exhausted", "the reply holds thinking and no answer")
    return _only_object(_unfenced(visible), ("thought_removed",) if thought else ())


def _unfenced(text: str) -> str:
    text = text.strip().strip("\ufeff\u200b").strip()
    fence = _FENCE.match(text)
    if fence is None:
        return text
    return text[fence.end() :].rstrip(text[0] + _BLANKS).lstrip()


def _only_object(text: str, notes: tuple[str, ...]) -> Found | Unscored:
    start = text.find("{")
    if start < 0:
        return Unscored("no_verdict", "the reply holds no JSON object")
    end = object_end(text, start)
    if isinstance(end, str):
        # An odd quote in a text that ends as an object does: broken, not cut off.
        broken = end == "string" and text.rstrip("`~" + _BLANKS).endswith("}")
        return (
            Unscored("unparseable", "not valid JSON") if broken else Unscored("truncated", "the object is not closed")
        )
    around = text[:start] + text[end:]
    if "{" in around or "}" in around:
        return Unscored("unparseable", "more than one JSON object, or stray braces")
    return _decode(text[start:end], around, notes)


def _decode(source: str, around: str, notes: tuple[str, ...]) -> Found | Unscored:
    decoded = decode_object(source)
    if decoded is None:
        return Unscored("unparseable", "not valid JSON")
    found, repaired = decoded
    return Found(found, source, around, (*notes, "repaired_json") if repaired else notes)
