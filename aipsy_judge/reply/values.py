"""One value of a reply -> a score, a yes/no, a level. Never clamped, never rescaled, never read in part."""

from __future__ import annotations

import math
import re

from ..rubric import Metric, Severity
from ..verdict import NotApplicable, Score, Scored, Unscored
from .json_text import Json, JsonObject, NumberText, without_format_characters

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?")
# A number on a scale of its own: converting it would be a guess.
_OTHER_SCALE = re.compile(r"-?[0-9]+(?:\.[0-9]*)?\s*(?:%|/\s*[0-9]+(?:\.[0-9]*)?)")
_NA_WORDS = {"n/a", "na", "n.a.", "not applicable", "none"}
_YES_NO = {"true": True, "false": False, "yes": True, "no": False}
_EDGES = " \t\r\n.,;:!\"'`*"


def read_score(value: Json, metric: Metric) -> Score:
    """A number within the scale (whole or decimal, also in quotes), or N/A where the rubric allows it."""
    if value is None:
        return _not_applicable(metric, "null")
    if isinstance(value, NumberText):
        return _on_scale(value.text, metric)
    if not isinstance(value, str):
        return Unscored("not_a_number", shown(value))
    text = without_format_characters(value).strip()
    if text.casefold() in _NA_WORDS:
        return _not_applicable(metric, text)
    if _NUMBER.fullmatch(text):
        return _on_scale(text, metric)
    if _OTHER_SCALE.fullmatch(text):
        return Unscored("out_of_range", shown(value))
    return Unscored("not_a_number" if text else "missing", shown(value))


def read_flag(value: Json) -> bool | Unscored:
    """true or false, also as a word (true, false, yes, no). Numbers and other words are no answer."""
    if isinstance(value, bool):
        return value
    if value is None:
        return Unscored("missing", "null")
    if isinstance(value, str):
        word = without_format_characters(value).strip(_EDGES).casefold()
        if word in _YES_NO:
            return _YES_NO[word]
    return Unscored("unparseable", f"neither true nor false: {shown(value)}")


def read_severity(value: Json, severity: Severity) -> str | Unscored:
    """One of the rubric's levels: the exact word, in any case, with punctuation around it."""
    if isinstance(value, str):
        word = without_format_characters(value).strip(_EDGES).casefold()
        if word in severity.levels:
            return word
    return Unscored("unparseable", f"{severity.name} is none of {', '.join(severity.levels)}: {shown(value)}")


def shown(value: Json) -> str:
    """A value as the reply had it, short, for the detail of an Unscored."""
    match value:
        case None:
            text = "null"
        case bool():
            text = str(value).lower()
        case NumberText():
            text = value.text
        case str():
            text = f'"{value}"'
        case JsonObject():
            text = "an object"
        case _:
            text = "a list"
    return text if len(text) <= 80 else text[:79] + "…"


def _on_scale(text: str, metric: Metric) -> Score:
    number = float(text)
    # First of all: every comparison with NaN is false, so NaN would pass any bound.
    if not math.isfinite(number):
        return Unscored("not_a_number", text[:80])
    if not metric.scale.minimum <= number <= metric.scale.maximum:
        return Unscored("out_of_range", text[:80])
    return Scored(number + 0.0)  # -0 becomes 0


def _not_applicable(metric: Metric, text: str) -> Score:
    if metric.may_be_na:
        return NotApplicable()
    return Unscored("not_applicable_not_allowed", text)
