"""Laws of the reader over made-up replies, and the real replies of a benchmark's judge."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reply_samples import CALM, RUBRIC, SIX, read

from aipsy_judge.backends.fake import FakeAnswer, answer_text, drawn_answer
from aipsy_judge.backends.protocol import Reply
from aipsy_judge.reply import read_reply
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.strict_json import dumps
from aipsy_judge.verdict import NotApplicable, Scored, Unscored, score_to_dict

REAL = Path(__file__).parents[3] / "shared" / "data" / "aipsy_bench" / "judge_raw.jsonl"

KEYS = st.sampled_from([*SIX, *CALM, "scores", "rationale", "reasoning", "Empathy", "other"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-9, 99)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["N/A", "4", "none", "direct", "7/20", "true", "5.0", "\ud83d", "</think>", "{", '"', "\\"])
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=8))
NOISE = st.text(alphabet=st.sampled_from(list('{}[]":,\\nu04 \n\u200b`~<>/think|channel')), max_size=60)
FINISHES = st.sampled_from(["stop", "length", "content_filter", None, "odd"])


def check(parsed):
    """What holds of everything read: complete, on the scale, writable as strict JSON."""
    assert tuple(parsed.scores) == RUBRIC.metric_names
    assert tuple(parsed.flags) == ("crisis_detected",)
    for metric in RUBRIC.metrics:
        score = parsed.scores[metric.name]
        if isinstance(score, Scored):
            assert math.isfinite(score.value)
            assert metric.scale.minimum <= score.value <= metric.scale.maximum
        if isinstance(score, NotApplicable):
            assert metric.may_be_na
    flag, handling = parsed.flags["crisis_detected"], parsed.scores["crisis_handling"]
    assert not (isinstance(handling, Scored) and flag.value is not True)
    assert not (isinstance(handling, NotApplicable) and flag.value is not False)
    assert (flag.value is None) <= (flag.unscored is not None)
    dumps([*map(score_to_dict, parsed.scores.values()), parsed.rationale, parsed.notes]).encode()


@given(st.text() | NOISE, FINISHES, st.none() | st.text(max_size=5))
def test_any_text_is_read_without_an_error_and_without_a_wrong_number(text, finish, thinking):
    parsed = read_reply(Reply(text, finish, thinking), RUBRIC, prompt=["You are a judge. " * 9])
    check(parsed)
    if finish != "stop":
        assert parsed.failure is not None


@given(VALUES, NOISE, NOISE)
def test_any_json_amid_any_noise_is_read_without_a_wrong_number(value, before, after):
    text = before + json.dumps(value) + after
    check(read(text))
    check(read(text, "length"))


@given(st.dictionaries(st.sampled_from([*SIX, *CALM]), LEAVES), st.booleans())
def test_an_object_of_our_own_keys_is_read_key_by_key(answer, nested):
    parsed = read({"scores": answer} if nested else answer)
    check(parsed)
    for name in SIX:
        if name not in answer:
            assert isinstance(parsed.scores[name], Unscored)


@given(st.integers(0, 10_000), st.text(max_size=200), st.sampled_from(["{}", "```json\n{}\n```", "<think>a</think>{}"]))
def test_a_written_answer_is_read_back_as_it_was(seed, rationale, wrapper):
    drawn = drawn_answer(RUBRIC, str(seed))
    text = answer_text(RUBRIC, FakeAnswer(drawn.scores, drawn.flags, rationale))
    parsed = read_reply(Reply(wrapper.replace("{}", text), "stop"), RUBRIC)
    for name, score in drawn.scores.items():
        match score:
            case Scored(value):
                assert parsed.scores[name] == Scored(value)
            case NotApplicable(forced_by):
                assert parsed.scores[name] == NotApplicable(forced_by)
    flag, said = parsed.flags["crisis_detected"], drawn.flags["crisis_detected"]
    assert (flag.value, flag.severity, flag.unscored) == (said.value, said.severity, None)
    assert parsed.rationale == (rationale.strip() or None)


@given(st.integers(0, 10_000), st.integers(1, 2_000))
def test_no_beginning_of_an_answer_yields_a_number(seed, cut):
    text = answer_text(RUBRIC, drawn_answer(RUBRIC, str(seed)))
    parsed = read_reply(Reply(text[: cut % len(text)], "stop"), RUBRIC)
    assert parsed.failure is not None


def test_endless_blanks_and_long_replies_are_read_in_time():
    answer = json.dumps({**CALM, **SIX})
    for text in ["```" + "\n" * 50_000, "{" + " " * 50_000, answer + " " * 50_000, '{"' + '\\"' * 50_000]:
        check(read(text))
        check(read(text, "length"))


def test_a_rubric_of_other_scales_without_flags_is_read_alike():
    base = load_rubric().metrics[0].model_dump()
    ten = {**base, "scale": {"minimum": 1, "maximum": 10}, "critical": None, "weight": None, "anchors": {1: "bad"}}
    names = [f"quality_{i}" for i in range(19)]
    rubric = Rubric.model_validate(
        {
            "name": "nineteen",
            "version": "1",
            "unit": "conversation",
            "introduction": "Rate.",
            "metrics": [{**ten, "name": n} for n in names],
        }
    )
    parsed = read_reply(Reply(json.dumps({n: i for i, n in enumerate(names)}), "stop"), rubric)
    assert parsed.flags == {}
    said = [s.value if isinstance(s, Scored) else s.reason for s in parsed.scores.values()]
    assert said == ["out_of_range", *range(1, 11), *["out_of_range"] * 8]


@pytest.mark.skipif(not REAL.exists(), reason="the benchmark's raw replies (shared/data/aipsy_bench) are not here")
def test_the_twenty_real_replies_of_a_frontier_judge_are_read_without_a_loss():
    rows = [json.loads(line) for line in REAL.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 20
    scored = not_applicable = 0
    for row in rows:
        parsed = read(row["raw"])
        said = json.loads(row["raw"])
        for name, score in parsed.scores.items():
            raw = said["scores"][name]
            if raw == "N/A":
                assert isinstance(score, NotApplicable)
            else:
                assert score == Scored(float(raw))
            scored, not_applicable = scored + (raw != "N/A"), not_applicable + (raw == "N/A")
        assert parsed.flags["crisis_detected"].value is said["scores"]["crisis_detected"]
        assert parsed.flags["crisis_detected"].severity == said["scores"]["crisis_severity"]
        assert parsed.rationale == said["reasoning"].strip()
        assert parsed.notes == ()
    assert (scored, not_applicable) == (93, 27)
