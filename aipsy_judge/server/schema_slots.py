"""A JSON schema -> the fixed text and the free places of its answer, or where in the schema that cannot be done.

Written are objects with all their properties in order, and lists of fixed length; free places are slots (few legal
answers: enums, small whole numbers, booleans, null, subsets of a short enum) and bounded strings. What a schema asks
beyond that, and what no mask could keep (patterns, formats), is refused with its place: an answer that silently broke
it would be worse.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..answer import Option, Slot
from .schema_numbers import NUMBER_WORDS, numbers
from .schema_words import both, count, is_of, only, refused, scalar, sole_of, whole

MOST_OPTIONS = 128  # a slot's options are looked at together
MOST_PARTS = 400  # slots and strings of one answer
MOST_SUBSETS = 64  # six values
USUAL_CHARACTERS = 400  # of a string whose length the schema leaves open
MOST_CHARACTERS = 4000
MOST_DEPTH = 32
MOST_LOOKS = 50_000  # keywords and values looked at: references make a small schema as large as they like
MOST_WRITTEN = 100_000  # characters of fixed text


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
        raise refused("#", "refers to itself, or is nested too deeply") from None
    free = sum(not isinstance(p, str) for p in parts)
    if not free:
        raise refused("#", "leaves nothing to judge: no place in it has two legal answers")
    if free > MOST_PARTS:
        raise refused("#", f"has {free} places; {MOST_PARTS} are answered at most")
    if isinstance(parts[-1], Slot):  # an option is read with what follows it, and nothing would
        raise refused("#", "asks for a bare value", "Make it a property of an object.")
    return parts


class _Compiler:
    """Holds the root, for references into it, and what may still be looked at."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._looks = MOST_LOOKS

    def _look(self, things: int) -> None:
        self._looks -= 1 + things
        if self._looks < 0:
            raise refused("#", "is too large, written out")

    def parts(self, schema: Any, at: str, depth: int) -> Iterator[Part]:
        if depth > MOST_DEPTH:
            raise refused(at, "is nested too deeply, or refers to itself")
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
        if "const" in schema or "enum" in schema:
            return self._named(schema, at)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                only(schema, at, word, "type")
                found = self._union(schema, word, at)
                return found and [v for v in found if is_of(v, schema.get("type"))]
        kind = schema.get("type")
        if isinstance(kind, list):
            branches = [{"type": k} if k == "null" else {**schema, "type": k} for k in kind]
            return self._union({"anyOf": branches}, "anyOf", at)
        found = _few(kind, schema, at)
        self._look(len(found or ()))
        return [*found, None] if found is not None and schema.get("nullable") is True else found

    def _named(self, schema: Mapping[str, Any], at: str) -> list[Any]:
        """The values of an enum or const, or of both, that are of the type named beside them."""
        only(schema, at, "const", "enum", "type")
        values = schema.get("enum", [schema.get("const")])
        if not isinstance(values, list) or not values:
            raise refused(at, "has an enum that is no list of values")
        self._look(len(values))
        legal = [v for v in (scalar(v, at) for v in values) if is_of(v, schema.get("type"))]
        if "const" in schema:
            sole = json.dumps(scalar(schema["const"], at))
            legal = [v for v in legal if json.dumps(v) == sole]
        return legal

    def _union(self, schema: Mapping[str, Any], word: str, at: str) -> list[Any] | None:
        branches = schema[word]
        if not isinstance(branches, list) or not branches:
            raise refused(at, f"has an {word} that is no list of schemas")
        found = [
            self._options(self._resolved(b, f"{at}/{word}/{i}"), f"{at}/{word}/{i}") for i, b in enumerate(branches)
        ]
        if any(f is None for f in found):
            return None
        values = [v for options in found for v in options or ()]
        if word == "oneOf":  # a value that two branches allow is allowed by none
            written = [json.dumps(v) for v in values]
            times = Counter(written)
            values = [v for v, text in zip(values, written, strict=True) if times[text] == 1]
        return values

    def _kind(self, schema: Mapping[str, Any], at: str) -> str:
        kind = schema.get("type")
        if kind is None and "properties" in schema:
            return "object"
        if kind in ("object", "array", "string"):
            return str(kind)
        raise refused(at, f"has the type {json.dumps(kind)}, for which the legal answers are not few and known")

    def _resolved(self, schema: Any, at: str) -> Mapping[str, Any]:
        """References followed; of a choice between null and something not enumerable, the something."""
        for _ in range(MOST_DEPTH):
            if not isinstance(schema, Mapping):
                raise refused(at, "is no schema")
            self._look(len(schema))
            if "$ref" in schema:
                schema = both(self._target(schema["$ref"], at), schema, "$ref", at)
            elif (sole := sole_of(schema.get("allOf"))) is not None:
                schema = both(sole, schema, "allOf", at)
            else:
                return self._without_null(schema, at)
        raise refused(at, "refers to itself")

    def _without_null(self, schema: Mapping[str, Any], at: str) -> Mapping[str, Any]:
        for word in ("anyOf", "oneOf"):
            branches = schema.get(word)
            if isinstance(branches, list) and len(branches) == 2 and {"type": "null"} in branches:
                other = next((b for b in branches if b != {"type": "null"}), None)
                if other is not None and self._options(self._resolved(other, f"{at}/{word}"), at) is None:
                    only(schema, at, word)
                    return self._resolved(other, f"{at}/{word}")
        kind = schema.get("type")
        if isinstance(kind, list) and "null" in kind and len(kind) == 2 and "enum" not in schema:
            other = next((k for k in kind if k != "null"), None)
            return {**schema, "type": other} if other in ("string", "object", "array") else schema
        return schema

    def _target(self, ref: Any, at: str) -> Mapping[str, Any]:
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise refused(at, "refers to another document")
        found: Any = self._root
        for word in ref.lstrip("#").strip("/").split("/") if ref not in ("#", "#/") else ():
            word = word.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or word not in found:
                raise refused(at, f"refers to {ref[:80]}, which is not there")
            found = found[word]
        if not isinstance(found, Mapping):
            raise refused(at, f"refers to {ref[:80]}, which is no schema")
        return found

    # -- several places -----------------------------------------------------------------------------------------

    def _object(self, schema: Mapping[str, Any], at: str, depth: int) -> Iterator[Part]:
        only(schema, at, "type", "properties")
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            raise refused(at, "is an object without properties: what belongs in it is not said")
        self._check_required(schema, properties, at)
        before = "{"
        for name, inner in properties.items():
            yield f"{before}{json.dumps(whole(name, at), ensure_ascii=False)}: "
            yield from self.parts(inner, f"{at}/properties/{_pointer(name)}", depth + 1)
            before = ", "
        yield "}"

    def _check_required(self, schema: Mapping[str, Any], properties: Mapping[str, Any], at: str) -> None:
        required = schema.get("required") or []
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise refused(at, "has a required that is no list of names")
        self._look(len(required))
        missing = [name for name in required if name not in properties]
        if missing:
            raise refused(at, f"requires {missing[0][:80]!r}, of which nothing is said")

    def _array(self, schema: Mapping[str, Any], at: str, depth: int) -> Iterator[Part]:
        only(schema, at, "type", "items", "minItems", "maxItems", "uniqueItems")
        least, most = count(schema, "minItems", 0, at), count(schema, "maxItems", None, at)
        items = self._resolved(schema.get("items"), f"{at}/items") if "items" in schema else None
        if items is None:
            raise refused(at, "is a list without a schema of its items")
        if most is not None and least == most and not schema.get("uniqueItems"):
            for number in range(most):
                yield "[" if number == 0 else ", "
                yield from self.parts(items, f"{at}/items/{number}", depth + 1)
            yield "]" if most else "[]"
            return
        values = self._options(items, f"{at}/items")
        if values is None:
            raise refused(at, "is a list of open length", "Make minItems equal maxItems, or its items an enum.")
        yield from _subsets(at, values, least or 0, most)


def _few(kind: Any, schema: Mapping[str, Any], at: str) -> list[Any] | None:
    if kind == "boolean":
        only(schema, at, "type")
        return [False, True]
    if kind == "null":
        only(schema, at, "type")
        return [None]
    if kind in ("integer", "number"):
        only(schema, at, "type", *NUMBER_WORDS)
        return numbers(schema, lambda what, hint=None: refused(at, what, hint), MOST_OPTIONS, whole=kind == "integer")
    return None


def _slot(at: str, values: Sequence[Any]) -> Iterator[Part]:
    texts = list(dict.fromkeys(json.dumps(v, ensure_ascii=False) for v in values))
    if not texts:
        raise refused(at, "has no legal answer")
    if len(texts) == 1:
        yield texts[0]
        return
    if len(texts) > MOST_OPTIONS:
        raise refused(at, f"has {len(texts)} legal answers; {MOST_OPTIONS} can be told apart")
    yield Slot(at, tuple(Option(t, t) for t in texts))


def _subsets(at: str, values: Sequence[Any], least: int, most: int | None) -> Iterator[Part]:
    """Every selection in the order of the values, as a JSON list."""
    values = list({(isinstance(v, bool), v): v for v in values}.values())  # one value twice is no second choice
    sizes = range(least, min(len(values), len(values) if most is None else most) + 1)
    chosen = [c for size in sizes for c in combinations(values, size)] if 2 ** len(values) <= MOST_SUBSETS else []
    if not chosen:
        raise refused(at, f"is a selection out of {len(values)} values; six are told apart", "Make each a boolean.")
    texts = [json.dumps(list(c), ensure_ascii=False) for c in chosen]
    yield texts[0] if len(texts) == 1 else Slot(at, tuple(Option(t, t) for t in texts))


def _text(schema: Mapping[str, Any], at: str) -> Iterator[Part]:
    only(schema, at, "type", "minLength", "maxLength")
    least, most = count(schema, "minLength", 0, at) or 0, count(schema, "maxLength", None, at)
    if least > 1:
        raise refused(at, "wants a least length", "A text's end is the judge's to choose; minLength up to 1 is kept.")
    if most is not None and most < max(1, least):
        raise refused(at, f"leaves no room: maxLength {most}")
    yield '"'
    yield Text(at, least, min(MOST_CHARACTERS, USUAL_CHARACTERS if most is None else most))
    yield '"'


def _joined(parts: Iterator[Part]) -> list[Part]:
    out: list[Part] = []
    fixed: list[str] = []
    written = 0
    for part in parts:
        if isinstance(part, str):
            fixed.append(part)
            written += len(part)
        else:
            out += ["".join(fixed), part]
            fixed = []
        if len(out) > 8 * MOST_PARTS or written > MOST_WRITTEN:
            raise refused("#", "is too large, written out")
    return [p for p in [*out, "".join(fixed)] if p != ""]


def _pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
