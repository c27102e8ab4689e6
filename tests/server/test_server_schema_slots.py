"""A client's JSON schema as slots: whatever is chosen at them, the answer is valid under the schema."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aipsy_judge.answer import Slot
from aipsy_judge.server.refusal import Refusal
from aipsy_judge.server.schema_slots import MOST_SUBSETS, Text, compile_schema

LEVEL = {"type": "integer", "minimum": 0, "maximum": 3}
SCALARS = st.one_of(st.text(max_size=5), st.integers(-5, 5), st.booleans(), st.none(), st.sampled_from([0.5, 1.5]))
NAMES = st.text(min_size=1, max_size=6)


def leaves():
    bounds = st.tuples(st.integers(-9, 9), st.integers(0, 9))
    return st.one_of(
        st.lists(SCALARS, min_size=1, max_size=5).map(lambda v: {"enum": v}),
        SCALARS.map(lambda v: {"const": v}),
        st.just({"type": "boolean"}),
        bounds.map(lambda b: {"type": "integer", "minimum": b[0], "maximum": b[0] + b[1]}),
        bounds.map(lambda b: {"type": "integer", "exclusiveMinimum": b[0] - 1, "exclusiveMaximum": b[0] + b[1] + 1}),
        bounds.map(lambda b: {"type": "number", "minimum": b[0], "maximum": b[0] + b[1], "multipleOf": 0.5}),
        st.integers(1, 9).map(lambda n: {"type": "string", "minLength": 1, "maxLength": n}),
        st.just({"type": ["integer", "null"], "minimum": 1, "maximum": 2}),
        st.just({"anyOf": [LEVEL, {"type": "null"}]}),
        st.just({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        st.just({"$ref": "#/$defs/level"}),
        st.just(
            {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 1, "maxItems": 2}
        ),
    )


def nested(inner):
    return st.one_of(
        st.dictionaries(NAMES, inner, min_size=1, max_size=4).map(
            lambda p: {"type": "object", "properties": p, "required": list(p), "additionalProperties": False}
        ),
        st.tuples(inner, st.integers(0, 3)).map(
            lambda t: {"type": "array", "items": t[0], "minItems": t[1], "maxItems": t[1]}
        ),
    )


ANY_ROOT = st.recursive(leaves(), nested, max_leaves=8)
SCHEMAS = ANY_ROOT.map(
    lambda inner: {"type": "object", "properties": {"x": inner, "sure": {"type": "boolean"}}, "$defs": {"level": LEVEL}}
)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, st.data())
def test_every_answer_that_can_be_chosen_is_valid_under_the_schema(schema, data):
    written, parts = "", compile_schema(schema)
    # Between two free places there is text, and a slot is never last: an option is read with what follows it.
    assert all(isinstance(p, str) or isinstance(q, str) for p, q in pairwise(["", *parts, ""]))
    assert isinstance(parts[-1], str)
    for part in parts:
        match part:
            case str():
                written += part
            case Slot():
                written += data.draw(st.sampled_from(part.options)).text
            case Text():
                text = data.draw(
                    st.text(st.characters(exclude_categories=["C"]), min_size=part.least, max_size=part.most)
                )
                written += json.dumps(text, ensure_ascii=False)[1:-1]
    jsonschema.validate(json.loads(written), schema)


@settings(max_examples=100, deadline=None)
@given(ANY_ROOT)
def test_a_root_of_any_kind_becomes_an_answer_with_an_end_of_its_own_or_is_refused(root):
    said = "#"
    try:
        parts = compile_schema({**root, "$defs": {"level": LEVEL}})
        assert isinstance(parts[-1], str)
        assert any(not isinstance(p, str) for p in parts)
    except Refusal as refused:
        said = refused.message
    assert "#" in said


@pytest.mark.parametrize(
    "root",
    [
        {"enum": ["a", "b"]},
        {"type": "boolean"},
        LEVEL,
        {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5},
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
        {"anyOf": [LEVEL, {"type": "null"}]},
    ],
)
def test_a_bare_value_as_the_whole_answer_is_refused_with_what_to_do(root):
    with pytest.raises(Refusal, match=r"answered: # .*bare value") as refused:
        compile_schema(root)
    assert (refused.value.status, refused.value.hint is not None) == (422, True)
    assert compile_schema({"type": "object", "properties": {"x": root}})


def test_a_bare_text_has_an_end_of_its_own_and_is_answered():
    assert compile_schema({"type": "string", "maxLength": 9}) == ['"', Text("#", 0, 9), '"']


def test_the_answer_is_written_as_models_write_json():
    schema = {"type": "object", "properties": {"level": {"enum": [1, 2]}, "why": {"type": "string", "maxLength": 20}}}
    one, two = ('{"level": ', "1"), ("2",)
    parts = compile_schema(schema)
    assert parts[0] == one[0]
    assert [o.text for o in parts[1].options] == [one[1], two[0]]
    assert parts[2:] == [', "why": "', Text("#/properties/why", 0, 20), '"}']


def test_nineteen_metrics_over_a_whole_transcript_become_nineteen_slots():
    metric = {"type": "integer", "minimum": 0, "maximum": 10}
    schema = {"type": "object", "properties": {f"metric_{n}": metric for n in range(19)}}
    assert [len(p.options) for p in compile_schema(schema) if isinstance(p, Slot)] == [11] * 19


def test_a_form_of_levels_each_with_evidence_and_reason_keeps_its_texts_in_place():
    properties = {}
    for axis in "CAP":
        for number in (1, 2, 3):
            properties |= {
                f"{axis}.{number}_level": LEVEL,
                f"{axis}.{number}_evidence": {"type": "string"},
                f"{axis}.{number}_reasoning": {"type": "string"},
            }
    kinds = [
        type(p).__name__ for p in compile_schema({"type": "object", "properties": properties}) if not isinstance(p, str)
    ]
    assert kinds == ["Slot", "Text", "Text"] * 9


def test_what_pydantic_makes_of_an_ordinary_model_is_answered():
    from typing import Annotated, Literal

    from pydantic import BaseModel, Field

    class Inner(BaseModel):
        """Two kinds of place."""

        level: Annotated[int, Field(ge=0, le=3)]
        note: str | None = None

    class Outer(BaseModel):
        """References, literals, an optional level."""

        kind: Literal["calm", "tense"]
        inner: Inner
        other: Annotated[int, Field(ge=1, le=5)] | None

    parts = compile_schema(Outer.model_json_schema())
    names = [p.name for p in parts if not isinstance(p, str)]
    assert names == [
        "#/properties/kind",
        "#/properties/inner/properties/level",
        "#/properties/inner/properties/note",
        "#/properties/other",
    ]
    assert [o.text for o in parts[-2].options] == ["1", "2", "3", "4", "5", "null"]


def within(schema):
    return {"type": "object", "properties": {"x": schema, "sure": {"type": "boolean"}}}


@pytest.mark.parametrize(
    ("schema", "place", "why"),
    [
        (within({"type": "string", "pattern": "^a"}), "#/properties/x", "pattern"),
        (within({"type": "string", "format": "date"}), "#/properties/x", "format"),
        (within({"type": "integer"}), "#/properties/x", "without bounds"),
        (within({"type": "integer", "minimum": 0, "maximum": 10**9}), "#/properties/x", "more than"),
        (within({"type": "number", "minimum": 0, "maximum": 1}), "#/properties/x", "fraction"),
        (within({"type": "integer", "minimum": 3, "maximum": 2}), "#/properties/x", "no legal number"),
        (within({"type": "integer", "minimum": "0", "maximum": 2}), "#/properties/x", "no number"),
        (within({"type": "array", "items": {"type": "string"}}), "#/properties/x", "open length"),
        (within({"type": "array"}), "#/properties/x", "without a schema"),
        (within({"type": "object"}), "#/properties/x", "without properties"),
        (within({"type": "object", "properties": {"y": True}}), "#/properties/x/properties/y", "no schema"),
        (within({"$ref": "#/$defs/none"}), "#/properties/x", "not there"),
        (within({"$ref": "https://example.org/s.json"}), "#/properties/x", "another document"),
        (within({"$ref": "#"}), "#", "refers to itself"),
        (within({"$ref": "#/properties/x"}), "#/properties/x", "refers to itself"),
        (within({"not": {"type": "null"}}), "#/properties/x", "not few and known"),
        (within({"enum": []}), "#/properties/x", "no list of values"),
        (within({"enum": [{}]}), "#/properties/x", "neither text"),
        (within({"enum": [1e999, 1]}), "#/properties/x", "finite"),
        (within({"type": "integer", "enum": [1e999, 1]}), "#/properties/x", "finite"),
        (within({"type": "integer", "minimum": 10**400, "maximum": 10**400 + 1}), "#/properties/x", "usual size"),
        (within({"type": "number", "minimum": float("nan"), "maximum": 1}), "#/properties/x", "usual size"),
        (within({"enum": ["\ud800", "a"]}), "#/properties/x", "half of a character"),
        (within({"type": "object", "properties": {"\ud800": LEVEL}}), "#/properties/x", "half of a character"),
        (within({"const": 1, "type": "string"}), "#/properties/x", "no legal answer"),
        (within({"const": 1, "not": {"const": 1}}), "#/properties/x", "not"),
        (within({"anyOf": [{"enum": ["a"]}, {"enum": ["b"]}], "not": {"const": "a"}}), "#/properties/x", "not"),
        (within({"anyOf": [{"type": "string"}, {"type": "null"}], "pattern": "a"}), "#/properties/x", "pattern"),
        (within({"allOf": [LEVEL], "maximum": 5}), "#/properties/x", "two ways"),
        (within({"type": "array", "items": {"enum": ["a", "a"]}, "minItems": 2}), "#/properties/x", "selection"),
        (within({"properties": {"y": LEVEL}, "required": 5}), "#/properties/x", "no list of names"),
        (within({"properties": {"y": LEVEL}, "required": [[1]]}), "#/properties/x", "no list of names"),
        (within({"enum": ["a"], "minLength": 3}), "#/properties/x", "minLength"),
        (within({"type": "string", "minLength": 5}), "#/properties/x", "least length"),
        (within({"type": "array", "items": {"enum": list(range(MOST_SUBSETS))}}), "#/properties/x", "selection"),
        (within({"enum": list(range(200))}), "#/properties/x", "200 legal answers"),
        ({"type": "object", "properties": {"x": {"const": 1}}}, "#", "nothing to judge"),
        ({}, "#", "not few and known"),
        ({"type": "object", "properties": {f"p{n}": {"type": "boolean"} for n in range(500)}}, "#", "places"),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["b"]}, "#", "requires"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_with_its_place(schema, place, why):
    with pytest.raises(Refusal, match=why) as refused:
        compile_schema(schema)
    assert refused.value.status == 422
    assert f"answered: {place} " in refused.value.message or place == "#"


@pytest.mark.parametrize(
    ("bounds", "legal"),
    [
        ({"minimum": 1, "maximum": 1, "multipleOf": 1e-30}, ["1"]),
        ({"minimum": 10**15, "maximum": 10**15, "multipleOf": 5e-324}, ["1000000000000000"]),
        ({"minimum": 0.1, "maximum": 0.3, "multipleOf": 0.1}, ["0.1", "0.2", "0.3"]),
        ({"minimum": -0.5, "exclusiveMaximum": 0.5, "multipleOf": 0.25}, ["-0.5", "-0.25", "0", "0.25"]),
        ({"exclusiveMinimum": 1, "maximum": 1 + 2**-52, "multipleOf": 1e-17}, ["1.0000000000000002"]),
    ],
)
def test_steps_are_multiples_as_they_are_written_however_small(bounds, legal):
    (fixed, *parts) = compile_schema(within({"type": "number", **bounds}))
    found = [o.text for o in parts[0].options] if len(legal) > 1 else [fixed.partition(": ")[2].partition(",")[0]]
    assert found == legal


@pytest.mark.parametrize(
    "bounds",
    [
        {"minimum": 1, "maximum": 2, "multipleOf": 1e-30},
        {"minimum": -(10**15), "maximum": 10**15, "multipleOf": 5e-324},
        {"exclusiveMinimum": 1, "exclusiveMaximum": 1.5, "multipleOf": 1e-300},
    ],
)
def test_steps_too_many_to_be_told_apart_are_refused_before_any_is_made(bounds):
    with pytest.raises(Refusal, match="more than"):
        compile_schema(within({"type": "number", **bounds}))


def test_of_whole_numbers_only_whole_steps_are_counted():
    parts = compile_schema(within({"type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 0.01}))
    assert [o.text for o in parts[1].options] == [str(n) for n in range(101)]


def _doubling(word):
    """Thirty definitions, each twice the one behind it: a kilobyte that stands for a billion places."""
    names = [f"d{n}" for n in range(31)]
    two = {a: [{"$ref": f"#/$defs/{b}"}] * 2 for a, b in pairwise(names)}
    made = {
        a: {"anyOf": b} if word == "anyOf" else {"properties": dict(zip("xy", b, strict=True))} for a, b in two.items()
    }
    return {**within({"$ref": "#/$defs/d0"}), "$defs": {**made, "d30": {"const": 1}}}


def _nested(times, schema):
    for _ in range(times):
        schema = {"anyOf": [schema, {"type": "null"}]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        _doubling("anyOf"),
        _doubling("properties"),
        within(_nested(30, {"type": "string"})),
        within({"type": "array", "minItems": 10**6, "maxItems": 10**6, "items": {"const": 1}}),
        within({"oneOf": [{"enum": [str(n) for n in range(10**5)]}] * 2}),
        within({"type": "array", "minItems": 9, "maxItems": 9, "items": {"const": "a" * 10**5}}),
    ],
)
def test_a_small_schema_that_stands_for_a_huge_answer_is_refused_at_once(schema):
    begun = time.process_time()
    with pytest.raises(Refusal, match="too large"):
        compile_schema(schema)
    assert time.process_time() - begun < 3


KEYWORDS = (
    *("type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "required", "nullable", "x"),
    *("minimum", "maximum", "multipleOf", "minItems", "maxItems", "minLength", "maxLength", "uniqueItems"),
    "exclusiveMinimum",
)
JSON = st.recursive(
    st.one_of(SCALARS, st.sampled_from(["object", "string", "integer", "#", "#/x", "array"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=15,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["type", "properties", "anyOf", "$ref", "enum", "allOf"]), JSON, max_size=4))
def test_no_schema_whatever_does_anything_but_become_parts_or_be_refused(schema):
    status = 422
    try:
        assert compile_schema(schema)
    except Refusal as refused:
        status = refused.status
    assert status == 422
