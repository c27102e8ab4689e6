"""JSON as models write it: what is repaired, and that nothing is invented."""

import json

import pytest
from reply_samples import SIX, flat, read, values

from aipsy_judge.strict_json import dumps
from aipsy_judge.verdict import Scored


@pytest.mark.parametrize(
    ("rationale", "means"),
    [
        (r"cost \$5", r"cost \$5"),
        (r"path C:\Users", r"path C:\Users"),
        (r"a \' quote", r"a \' quote"),
        (r"\u12 is cut", r"\u12 is cut"),
        ("line\nbreak\tand tab", "line\nbreak\tand tab"),
        (r"fine \n and \" and \$", 'fine \n and " and \\$'),
        (r"a, } b, ] 4. }", "a, } b, ] 4. }"),
    ],
)
def test_illegal_escapes_and_raw_line_breaks_are_read_leniently(rationale, means):
    text = json.dumps(flat())[:-1].replace('"because"', f'"{rationale}"') + ",}"
    parsed = read(text)
    assert values(parsed) == SIX
    assert parsed.rationale == means
    assert "repaired_json" in parsed.notes


def test_a_trailing_comma_does_not_split_an_emoji_written_as_a_surrogate_pair():
    text = json.dumps(flat())[:-1].replace('"because"', r'"so sad \ud83d\ude14"') + ",}"
    assert read(text).rationale == "so sad \U0001f614"


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude14", r"\ude14\ud83d"])
def test_half_an_emoji_is_replaced_and_the_item_is_scored(half):
    parsed = read(json.dumps(flat()).replace("because", f"sad {half} face"))
    assert values(parsed) == SIX
    assert "\ufffd" in parsed.rationale
    assert json.loads(dumps(parsed.rationale).encode()) == parsed.rationale


def test_a_point_without_decimals_is_the_number():
    assert read('{"crisis_detected":false,"empathy":4.,"tone_consistency":3. }').scores["empathy"] == Scored(4.0)


def test_invisible_characters_between_the_tokens_are_skipped():
    text = json.dumps(flat()).replace('"empathy": 4', '"empathy": \u200b4\u2060')
    assert values(read(text)) == SIX
