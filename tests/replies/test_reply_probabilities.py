"""Log probabilities of a server: read only where one token decides, else left alone."""

import math

import pytest
from reply_samples import RUBRIC, SIX

from aipsy_judge.backends.protocol import Reply
from aipsy_judge.reply import read_reply
from aipsy_judge.reply.probabilities import with_readings
from aipsy_judge.verdict import Unscored

HEAD = '{"crisis_detected":"'
REST = (
    '","crisis_severity":"none","empathy":4,"tone_consistency":3,"crisis_handling":null,"advice_safety":5,'
    '"boundary_safety":null,"affective_complexity":1,"rationale":"\\"empathy\\":4"}'
)


def token(text, probability=1.0, **others):
    """A token with its alternatives by name: p0=0.1 is the token "0"."""
    known = {"pnull": "null", "pno": "no", "pyes": "yes", "pword": " I"}
    top = [(text, probability)] + [(known.get(k, k[1:]), p) for k, p in others.items()]
    return entry(text, probability, top)


def entry(text, probability, top):
    def one(t, p):
        return {"token": t, "logprob": math.log(p), "bytes": list(t.encode())}

    return {**one(text, probability), "top_logprobs": [one(t, p) for t, p in top]}


def tokens():
    """The reply above, cut so that some values stand alone and some carry what is before or after them."""
    return [
        token(HEAD),
        token("no", 0.7, pyes=0.2, pword=0.1),
        token('","crisis_severity":"none","empathy":'),
        token("4", 0.5, p3=0.3, p5=0.1, pword=0.1),
        token(',"tone_consistency'),
        entry('":3', 0.6, [('":3', 0.6), ('":', 0.1), ('":null', 0.3)]),
        token(',"crisis_handling":'),
        token("null", 1.0, p4=0.0001),
        token(',"advice_safety":'),
        entry("5,", 0.5, [("5,", 0.5), ("4,", 0.25), ("n", 0.25)]),
        token('"boundary_safety":'),
        token("null", 0.4, p2=0.6),
        token(',"affective_complexity":'),
        token("1"),
        token(',"rationale":"\\"empathy\\":4"}'),
    ]


def read(content, text=None):
    text = HEAD + "no" + REST if text is None else text
    reply = Reply(text, "stop", raw={"logprobs": {"content": content}})
    parsed = read_reply(reply, RUBRIC)
    scores, flags = with_readings(reply, RUBRIC, parsed.scores, parsed.flags)
    return parsed, scores, flags


def test_a_value_that_is_one_token_gets_its_distribution():
    _, scores, _ = read(tokens())
    reading = scores["empathy"].reading
    assert reading.legal_mass == pytest.approx(0.9)
    assert reading.distribution == pytest.approx(
        {"0": 0, "1": 0, "2": 0, "3": 0.3 / 0.9, "4": 0.5 / 0.9, "5": 0.1 / 0.9}
    )
    assert reading.confidence == pytest.approx(0.5 / 0.9)
    assert reading.expected == pytest.approx((3 * 0.3 + 4 * 0.5 + 5 * 0.1) / 0.9)
    assert (reading.p_na, reading.near_tie) == (0, False)


def test_a_token_that_carries_its_neighbours_is_read_too():
    _, scores, _ = read(tokens())
    tone = scores["tone_consistency"].reading
    assert (tone.p_na, tone.confidence, tone.legal_mass) == pytest.approx((1 / 3, 2 / 3, 0.9))
    advice = scores["advice_safety"].reading
    assert (advice.p_na, advice.expected) == pytest.approx((0.25, (5 * 0.5 + 4 * 0.25) / 0.75))


def test_na_has_its_probability_and_a_near_tie_is_marked():
    _, scores, _ = read(tokens())
    reading = scores["boundary_safety"].reading
    assert (reading.p_na, reading.confidence, reading.expected) == pytest.approx((0.4, 0.4, 2))
    assert reading.near_tie


def test_a_flag_has_the_probability_of_yes():
    _, _, flags = read(tokens())
    flag = flags["crisis_detected"]
    assert flag.probability == pytest.approx(0.2 / 0.9)
    assert flag.legal_mass == pytest.approx(0.9)
    assert flag.distribution == pytest.approx({"false": 0.7 / 0.9, "true": 0.2 / 0.9})


def test_what_one_token_does_not_tell_has_no_reading():
    parsed, scores, _ = read(tokens())
    assert scores["affective_complexity"].reading is None  # no alternatives were sent
    assert scores["crisis_handling"].reading is None  # not applicable because of the flag, not by choice
    assert parsed.scores["empathy"].reading is None  # the parsed reply itself is not changed


def broken():
    content = tokens()
    yield "tokens that do not spell the reply", content[:-1]
    yield "no list", {"a": 1}
    yield "none", None
    yield "empty", []
    for name, value in [
        ("nan", math.nan),
        ("above one", 0.7),
        ("text", "x"),
        ("missing", None),
    ]:
        bad = tokens()
        bad[3]["top_logprobs"][1]["logprob"] = value
        yield name, bad
    yield "other shapes", ["x", 7, None]


@pytest.mark.parametrize("content", [c for _, c in broken()], ids=[n for n, _ in broken()])
def test_log_probabilities_of_another_shape_change_nothing(content):
    parsed, scores, flags = read(content)
    assert (scores, flags) == (parsed.scores, parsed.flags)
    assert {n: getattr(s, "value", None) for n, s in scores.items() if n != "boundary_safety"} == {
        n: v for n, v in SIX.items() if n != "boundary_safety"
    }


def test_what_could_not_be_scored_gets_no_reading():
    content = tokens()
    content[3] = token("7", 0.9, p4=0.1)
    text = HEAD + "no" + REST.replace('"empathy":4,', '"empathy":7,')
    _, scores, _ = read(content, text)
    assert scores["empathy"] == Unscored("out_of_range", "7")
