"""Strict JSON: NaN is an error that names its place, half an emoji does not stop a write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aipsy_judge.strict_json import dumps, loads, without_nan


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused_by_its_place(value):
    with pytest.raises(ValueError, match=r"not finite: scores\.empathy\[1\]"):
        dumps({"scores": {"empathy": [1.0, value]}})


@pytest.mark.parametrize("text", ['{"a": NaN}', "[Infinity]", "[-Infinity]", '{"a": 1, "a": 2}', b'"\xff"'])
def test_what_is_not_strict_json_is_not_read(text):
    with pytest.raises(ValueError):
        loads(text)


def test_half_an_emoji_becomes_the_replacement_character_and_a_pair_becomes_whole():
    text = dumps({"rationale": "half \ud83d, low \udcb2, pair \ud83d\ude14"})
    assert json.loads(text)["rationale"] == "half �, low �, pair 😔"
    assert text.encode("utf-8").decode("utf-8") == text


@given(st.text(st.characters(), max_size=20))
def test_whatever_text_is_written_is_valid_utf8_and_reads_back(text):
    written = dumps({"t": text}).encode("utf-8")
    assert loads(written)["t"] == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_metadata_with_nan_is_kept_with_null_in_its_place():
    assert without_nan({"a": [1.5, float("nan")], 2: (None, True)}) == {"a": [1.5, None], "2": [None, True]}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_what_is_nested_beyond_all_measure_is_an_error_like_any_other(text: str) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        loads(text)
