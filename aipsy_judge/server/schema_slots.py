"""A JSON schema -> the fixed text and the free places of its answer, or where in the schema that cannot be done.

Written are objects with all their properties in order, and lists of fixed length; free places are slots (few legal
answers: enums, small whole numbers, booleans, null, subsets of a short enum) and bounded strings. What a schema asks
beyond that, and what no mask could keep (patterns, formats), is refused with its place: an answer that silently broke
it would be worse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..answer import Option, Slot
from .refusal import Refusal
from .schema_numbers import NUMBER_WORDS, numbers

MOST_OPTIONS = 128  # a slot's options are looked at together
MOST_PARTS = 400  # slots and strings of one answer
MOST_SUBSETS = 64  # six values
USUAL_CHARACTERS = 400  # of a string whose length the schema leaves open
MOST_CHARACTERS = 4000
MOST_DEPTH = 32

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


@dataclass(frozen=True, slots=True)
class Text:
    """A place for free text of `least` to `most` characters."""

    name: str
    least: int
    most: int


Part = str | Slot | Text


def compile_schema(schema: Mapping[str, Any]) -> list[Part]:
    """The parts in order, fixed text joined. Raises Refusal(422) naming the place (a JSON pointer)."""
    try:
        parts = _joined(_Compiler(schema).parts(schema, "#", 0))
    except RecursionError:
        raise _refused("#", "refers to itself, or is nested too deeply") from None
    free = sum(not isinstance(p, str) for p in parts)
    if not free:
        raise _refused("#", "leaves nothing to judge: no place in it has two legal answers")
    if free > MOST_PARTS:
        raise _refused("#", f"has {free} places; {MOST_PARTS} are answered at most")
    return parts


class _Compiler:
    """Holds the root, for references into it."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def parts(self, schema: Any, at: str, depth: int) -> Iterator[Part]:
        if depth > MOST_DEPTH:
            raise _refused(at, "is nested too deeply, or refers to itself")
        schema = self._resolved(schema, at)
        options = self._options(schema, at)
        if options is not None:
            yield from _slot(at, options)
            return
        kind = self._kind(schema, at)
        if kind == "object":
            yield from self._object(schema, at, depth)
        elif kind == "array":
            yield from self._array(schema, at, depth)
        else:
            yield from _text(schema, at)

    # -- one place ----------------------------------------------------------------------------------------------

    def _options(self, schema: Mapping[str, Any], at: str) -> list[Any] | None:
        """The legal values where they are few and known, else None."""
        if "const" in schema:
            return [_scalar(schema["const"], at)]
        if "enum" in schema:
            _only(schema, at, "enum", "type")
            values = schema["enum"]
            if not isinstance(values, list) or not values:
                raise _refused(at, "has an enum that is no list of values")
            return [v for v in (_scalar(v, at) for v in values) if _is_of(v, schema.get("type"))]
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._union(schema, word, at)
        kind = schema.get("type")
        if isinstance(kind, list):
            branches = [{"type": k} if k == "null" else {**schema, "type": k} for k in kind]
            return self._union({"anyOf": branches}, "anyOf", at)
        found = _few(kind, schema, at)
        return [*found, None] if found is not None and schema.get("nullable") is True else found

    def _union(self, schema: Mapping[str, Any], word: str, at: str) -> list[Any] | None:
        branches = schema[word]
        if not isinstance(branches, list) or not branches:
            raise _refused(at, f"has an {word} that is no list of schemas")
        found = [
            self._options(self._resolved(b, f"{at}/{word}/{i}"), f"{at}/{word}/{i}") for i, b in enumerate(branches)
        ]
        if any(f is None for f in found):
            return None
        values = [v for options in found for v in options or ()]
        if word == "oneOf":  # a value that two branches allow is allowed by none
            written = [json.dumps(v) for v in values]
            values = [v for v, text in zip(values, written, strict=True) if written.count(text) == 1]
        return values

    def _kind(self, schema: Mapping[str, Any], at: str) -> str:
        kind = schema.get("type")
        if kind is None and "properties" in schema:
            return "object"
        if kind in ("object", "array", "string"):
            return str(kind)
        raise _refused(at, f"has the type {json.dumps(kind)}, for which the legal answers are not few and known")

    def _resolved(self, schema: Any, at: str) -> Mapping[str, Any]:
        """References followed; of a choice between null and something not enumerable, the something."""
        for _ in range(MOST_DEPTH):
            if not isinstance(schema, Mapping):
                raise _refused(at, "is no schema")
            if "$ref" in schema:
                schema = {**self._target(schema["$ref"], at), **{k: v for k, v in schema.items() if k != "$ref"}}
            elif _sole(schema.get("allOf")) is not None:
                schema = {**(_sole(schema["allOf"]) or {}), **{k: v for k, v in schema.items() if k != "allOf"}}
            else:
                return self._without_null(schema, at)
        raise _refused(at, "refers to itself")

    def _without_null(self, schema: Mapping[str, Any], at: str) -> Mapping[str, Any]:
        for word in ("anyOf", "oneOf"):
            branches = schema.get(word)
            if isinstance(branches, list) and len(branches) == 2 and {"type": "null"} in branches:
                other = next((b for b in branches if b != {"type": "null"}), None)
                if other is not None and self._options(self._resolved(other, f"{at}/{word}"), at) is None:
                    return self._resolved(other, f"{at}/{word}")
        kind = schema.get("type")
        if isinstance(kind, list) and "null" in kind and len(kind) == 2 and "enum" not in schema:
            other = next((k for k in kind if k != "null"), None)
            return {**schema, "type": other} if other in ("string", "object", "array") else schema
        return schema

    def _target(self, ref: Any, at: str) -> Mapping[str, Any]:
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise _refused(at, "refers to another document")
        found: Any = self._root
        for word in ref.lstrip("#").strip("/").split("/") if ref not in ("#", "#/") else ():
            word = word.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or word not in found:
                raise _refused(at, f"refers to {ref[:80]}, which is not there")
            found = found[word]
        if not isinstance(found, Mapping):
            raise _refused(at, f"refers to {ref[:80]}, which is no schema")
        return found

    # -- several places -----------------------------------------------------------------------------------------

    def _object(self, schema: Mapping[str, Any], at: str, depth: int) -> Iterator[Part]:
        _only(schema, at, "type", "properties")
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            raise _refused(at, "is an object without properties: what belongs in it is not said")
        missing = [r for r in schema.get("required") or () if r not in properties]
        if missing:
            raise _refused(at, f"requires {missing[0]!r}, of which nothing is said")
        before = "{"
        for name, inner in properties.items():
            yield f"{before}{json.dumps(name, ensure_ascii=False)}: "
            yield from self.parts(inner, f"{at}/properties/{_pointer(name)}", depth + 1)
            before = ", "
        yield "}"

    def _array(self, schema: Mapping[str, Any], at: str, depth: int) -> Iterator[Part]:
        _only(schema, at, "type", "items", "minItems", "maxItems", "uniqueItems")
        least, most = _count(schema, "minItems", 0, at), _count(schema, "maxItems", None, at)
        items = self._resolved(schema.get("items"), f"{at}/items") if "items" in schema else None
        if items is None:
            raise _refused(at, "is a list without a schema of its items")
        if most is not None and least == most and not schema.get("uniqueItems"):
            for number in range(most):
                yield "[" if number == 0 else ", "
                yield from self.parts(items, f"{at}/items/{number}", depth + 1)
            yield "]" if most else "[]"
            return
        values = self._options(items, f"{at}/items")
        if values is None:
            raise _refused(at, "is a list of open length", "Make minItems equal maxItems, or its items an enum.")
        yield from _subsets(at, values, least or 0, most)


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, or of one of several; of any where none is named."""
    if kind is None:
        return True
    if isinstance(kind, list):
        return any(_is_of(value, k) for k in kind)
    if isinstance(value, bool) or value is None:
        return bool(kind == ("null" if value is None else "boolean"))
    if isinstance(value, str):
        return bool(kind == "string")
    return bool(kind == "number" or (kind == "integer" and value == int(value)))


def _sole(schemas: Any) -> Mapping[str, Any] | None:
    """The one schema of a list of one, as which pydantic writes a reference with a description."""
    sole = schemas[0] if isinstance(schemas, list) and len(schemas) == 1 else None
    return sole if isinstance(sole, Mapping) else None


def _few(kind: Any, schema: Mapping[str, Any], at: str) -> list[Any] | None:
    if kind == "boolean":
        _only(schema, at, "type")
        return [False, True]
    if kind == "null":
        _only(schema, at, "type")
        return [None]
    if kind in ("integer", "number"):
        _only(schema, at, "type", *NUMBER_WORDS)
        return numbers(schema, lambda what, hint=None: _refused(at, what, hint), MOST_OPTIONS, whole=kind == "integer")
    return None


def _slot(at: str, values: Sequence[Any]) -> Iterator[Part]:
    texts = list(dict.fromkeys(json.dumps(v, ensure_ascii=False) for v in values))
    if not texts:
        raise _refused(at, "has no legal answer")
    if len(texts) == 1:
        yield texts[0]
        return
    if len(texts) > MOST_OPTIONS:
        raise _refused(at, f"has {len(texts)} legal answers; {MOST_OPTIONS} can be told apart")
    yield Slot(at, tuple(Option(t, t) for t in texts))


def _subsets(at: str, values: Sequence[Any], least: int, most: int | None) -> Iterator[Part]:
    """Every selection in the order of the values, as a JSON list."""
    sizes = range(least, min(len(values), len(values) if most is None else most) + 1)
    chosen = [c for size in sizes for c in combinations(values, size)] if 2 ** len(values) <= MOST_SUBSETS else []
    if not chosen:
        raise _refused(at, f"is a selection out of {len(values)} values; six are told apart", "Make each a boolean.")
    texts = [json.dumps(list(c), ensure_ascii=False) for c in chosen]
    yield texts[0] if len(texts) == 1 else Slot(at, tuple(Option(t, t) for t in texts))


def _text(schema: Mapping[str, Any], at: str) -> Iterator[Part]:
    _only(schema, at, "type", "minLength", "maxLength")
    least, most = _count(schema, "minLength", 0, at) or 0, _count(schema, "maxLength", None, at)
    if least > 1:
        raise _refused(at, "wants a least length", "A text's end is the judge's to choose; minLength up to 1 is kept.")
    if most is not None and most < max(1, least):
        raise _refused(at, f"leaves no room: maxLength {most}")
    yield '"'
    yield Text(at, least, min(MOST_CHARACTERS, USUAL_CHARACTERS if most is None else most))
    yield '"'


def _count(schema: Mapping[str, Any], word: str, usual: int | None, at: str) -> int | None:
    value = schema.get(word, usual)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0 or value > 10**6):
        raise _refused(at, f"has a {word} that is no count")
    return value


def _scalar(value: Any, at: str) -> Any:
    if isinstance(value, str | int | float | None):
        return value
    raise _refused(at, "allows a value that is neither text, number, boolean nor null")


def _only(schema: Mapping[str, Any], at: str, *known: str) -> None:
    strange = sorted(set(schema) - _SILENT - set(known))
    if strange:
        raise _refused(at, f"says {strange[0]!r}, which cannot be kept")


def _joined(parts: Iterator[Part]) -> list[Part]:
    out: list[Part] = []
    for part in parts:
        if len(out) > 8 * MOST_PARTS:
            raise _refused("#", "is too large")
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        else:
            out.append(part)
    return out


def _pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _refused(at: str, what: str, hint: str | None = None) -> Refusal:
    return Refusal(422, f"The JSON schema cannot be answered: {at[:200]} {what}.", hint=hint)
