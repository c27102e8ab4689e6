"""The JSON schema of an answer, from the rubric, for servers that constrain their output by one.

Only keywords are used that every converter in use honours (llama.cpp's silently ignores minimum, maximum and more):
type, properties, required, additionalProperties, enum, anyOf, maxLength. What cannot be said with them, that a flag,
its severity and its metric agree, is checked when the reply is read, as is everything else: a server may ignore the
schema and answer 200.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from .rubric import FlagSpec, Metric, Rubric

# Two or three sentences; llama.cpp refuses repetitions above 2,000 in a grammar.
RATIONALE_CHARACTERS = 1000


def answer_schema(
    rubric: Rubric, *, rationale: bool = True, rationale_characters: int | None = RATIONALE_CHARACTERS
) -> dict[str, Any]:
    """One flat object: flags, then metrics, the rationale last; the order is the order of writing.

    N/A is null, allowed only where the rubric lets the metric be N/A. `rationale_characters` None sets no limit.
    """
    properties: dict[str, Any] = {}
    for flag in rubric.flags:
        properties |= _flag_properties(flag)
    for metric in rubric.metrics:
        properties[metric.name] = _metric_property(metric)
    if rationale:
        limit = {} if rationale_characters is None else {"maxLength": rationale_characters}
        properties["rationale"] = {"type": "string", **limit}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def without_lengths(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without maxLength, which some providers refuse in strict mode."""
    return {
        **schema,
        "properties": {
            name: {k: v for k, v in what.items() if k != "maxLength"} for name, what in schema["properties"].items()
        },
    }


def conforms(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether `text` is what a server bound by an `answer_schema` would have written.

    It tells a server that constrains from one that only happens to answer in JSON; it is no test of the content.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(data, dict) or list(data) != list(schema["properties"]):
        return False
    return all(_fits(data[name], what) for name, what in schema["properties"].items())


def _flag_properties(flag: FlagSpec) -> dict[str, Any]:
    properties: dict[str, Any] = {flag.name: {"type": "string", "enum": ["no", "yes"]}}
    if flag.severity is not None:
        properties[flag.severity.name] = {"type": "string", "enum": list(flag.severity.levels)}
    return properties


def _metric_property(metric: Metric) -> dict[str, Any]:
    whole = {"type": "integer", "enum": list(metric.scale.values)}
    # Not {"type": ["integer", "null"], "enum": ...}: llama-cpp-python then drops the enum without a word.
    return {"anyOf": [whole, {"type": "null"}]} if metric.may_be_na else whole


def _fits(value: Any, what: Mapping[str, Any]) -> bool:
    if "anyOf" in what:
        return any(_fits(value, one) for one in what["anyOf"])
    kinds: dict[str, type] = {"string": str, "integer": int, "null": type(None)}
    if type(value) is not kinds[what["type"]]:
        return False
    if isinstance(value, str) and len(value) > what.get("maxLength", math.inf):
        return False
    return "enum" not in what or value in what["enum"]
