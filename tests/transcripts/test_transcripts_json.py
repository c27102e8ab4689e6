"""JSON and JSONL: places of faults, repeated keys, and lists read element by element."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import decoding, json_source, read, text_source
from aipsy_judge.transcripts.json_source import array_elements
from aipsy_judge.transcripts.place import Place
from aipsy_judge.transcripts.text_source import Text

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]

GOOD = '{"messages": [{"role": "user", "content": "x"}]}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"{GOOD}\n{GOOD}\n" + '{"messages": [}\n', r"line 3: not valid JSON: .*\(column 15\)"),
        (f"{GOOD}\n\n" + GOOD[:-4] + "\n", r"line 3: not valid JSON"),
        (f"{GOOD}\n{GOOD} {GOOD}\n", r"line 2: not valid JSON: extra data \(column 50\)"),
        (f"[{GOOD},\n {GOOD},\n" + ' {"messages": tru}]', r"line 3: not valid JSON: expecting value \(column 15\)"),
        (f"[{GOOD},\n{GOOD}", r"line 2: not valid JSON: expecting ',' \(column 49\)"),
        (f"[{GOOD},]", r"line 1: not valid JSON: expecting value \(column 51\)"),
        (f"[{GOOD}\n{GOOD}]", r"line 2: not valid JSON: expecting ',' \(column 1\)"),
        (f"[{GOOD}] x", r"line 1: not valid JSON: extra data"),
        ('{\n "messages": [\n  {"role": "user" "content": "x"}]}', r"line 3: not valid JSON: .*\(column 19\)"),
        ("{'messages': []}", r"line 1: not valid JSON"),
        ('{"messages": [{"role": "user", "content": "a\nb"}]}', r"line 1: not valid JSON: invalid control character"),
        (GOOD[:-2], r"line 1: not valid JSON"),
        ("{", r"line 1: not valid JSON"),
        ("[", r"line 1: not valid JSON"),
    ],
)
@pytest.mark.parametrize("block_bytes", [4, 16, 1 << 20])
def test_what_is_not_json_names_line_and_column(
    write: Write, text: str, place: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "BLOCK_BYTES", block_bytes)
    with pytest.raises(TranscriptError, match=r"talk\.json, " + place):
        read(write(text, "talk.json"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"id": 1, "id": 2, "messages": []}', r"talk: the key 'id'"),
        ('{"messages": [{"role": "user", "content": "x", "content": "y"}]}', r"\$\.messages\[0\]: the key 'content'"),
        (f"[{GOOD}, " + '{"messages": [], "meta": {"a b": {"k": 1, "k": 1}}}]', r"\$\[1\]\.meta\['a b'\]: the key 'k'"),
        (f"{GOOD}\n" + '{"messages": [{"role": "user", "role": "assistant", "content": ""}]}', r"line 2, \$\.messages"),
    ],
)
def test_a_key_that_stands_twice_in_one_object_is_an_error_with_its_path(write: Write, text: str, place: str) -> None:
    with pytest.raises(TranscriptError, match=place):
        read(write(text))


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000, '[{"messages": ' + "[" * 3000 + "]" * 3000 + "}]"])
def test_deep_nesting_is_an_error_not_a_crash(write: Write, deep: str) -> None:
    with pytest.raises(TranscriptError):
        read(write(deep))


@pytest.mark.parametrize("form", ["%s", "[%s]", "%s\n%s"])
def test_a_number_of_thousands_of_digits_is_an_error_not_a_crash(write: Write, form: str) -> None:
    value = '{"messages": [{"role": "user", "content": %s}]}' % ("9" * 5000)
    with pytest.raises(TranscriptError):
        read(write(form.replace("%s", value)))


def test_a_value_above_the_limit_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "BLOCK_BYTES", 16)
    monkeypatch.setattr(text_source, "MAX_VALUE_CHARS", 100)
    long = json.dumps({"messages": [{"role": "user", "content": "x" * 200}]})
    for text in (long, f"[{long}]", f"{GOOD}\n{long}\n"):
        with pytest.raises(TranscriptError, match="more than"):
            read(write(text))


def test_a_jsonl_whose_first_line_is_beyond_the_look_ahead_is_an_error_not_one_conversation(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "BLOCK_BYTES", 16)
    monkeypatch.setattr(text_source, "_LOOK_AHEAD_CHARS", 32)
    with pytest.raises(TranscriptError, match="extra data"):
        read(write(f"{GOOD}\n{GOOD}\n"))


_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=80)
@given(st.lists(_values, max_size=6), st.integers(1, 9), st.sampled_from([None, 1]), st.booleans())
def test_the_elements_of_a_list_are_the_same_wherever_the_blocks_end(
    values: list[object], chars: int, indent: int | None, ascii: bool
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=ascii)
    blocks = iter([text[n : n + chars] for n in range(0, len(text), chars)])
    found = list(array_elements(Text(blocks, Place("talk"))))
    assert [json.dumps(value) for value, _ in found] == [json.dumps(value) for value in values]
    assert [str(place) for _, place in found] == [f"talk, $[{n}]" for n in range(len(values))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(st.integers(0, 3), st.integers(1, 60), st.text(max_size=2), st.integers(1, 9))
def test_a_fault_has_the_same_place_wherever_the_blocks_end(lines: int, cut: int, extra: str, chars: int) -> None:
    text = "[" + f"{GOOD},\n" * lines + GOOD[:cut] + extra + "]"
    outcomes = set()
    for size in (chars, len(text)):
        blocks = iter([text[n : n + size] for n in range(0, len(text), size)])
        try:
            outcomes.add(repr(list(array_elements(Text(blocks, Place("talk"))))))
        except TranscriptError as error:
            outcomes.add(str(error))
    assert len(outcomes) == 1


def test_a_long_element_is_parsed_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    parses = 0
    parse_at = json_source.Parser.parse_at

    def counting(self: json_source.Parser, text: str, start: int) -> tuple[object, int]:
        nonlocal parses
        parses += 1
        return parse_at(self, text, start)

    monkeypatch.setattr(json_source.Parser, "parse_at", counting)
    text = json.dumps(["x" * 100_000])
    blocks = iter([text[n : n + 10] for n in range(0, len(text), 10)])
    assert len(list(array_elements(Text(blocks, Place("talk"))))) == 1
    assert parses < 30  # the part that is parsed doubles each time; 10,000 blocks would mean as many parses otherwise
