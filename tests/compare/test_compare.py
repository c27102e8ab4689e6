"""Two runs, paired by item: figures worked by hand, and what must fail closed."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_builder import METRICS, conversation, run, verdict

from aipsy_judge.compare import COMPOSITE, compare, comparison_to_dict, worse
from aipsy_judge.errors import InputError, LaneError


def talk(id, scores, metric="empathy", **fields):
    return [verdict(id, n, {metric: s}, **fields) for n, s in enumerate(scores, 1)]


def of(found, metric="empathy"):
    return next(d for d in found.differences if d.metric == metric)


def two_runs(base, new, metric="empathy"):
    """Runs from {conversation: scores}."""
    return tuple(run([v for id, scores in side.items() for v in talk(id, scores, metric)]) for side in (base, new))


# --- figures by hand


def test_the_difference_is_the_mean_over_pairs_scored_in_both():
    # Pairs (5,4) (3,5) (4,-) (-,2) (1,1): scored in both are three, with differences -1, +2, 0.
    base, new = two_runs({"a": (5, 3, 4, "timeout"), "b": (1,)}, {"a": (4, 5, "truncated", 2), "b": (1,)})
    d = of(compare(base, new))
    assert (d.n, d.conversations) == (3, 2)
    assert d.base == pytest.approx(3.0)
    assert d.new == pytest.approx(10 / 3)
    assert d.difference == pytest.approx(1 / 3)


def test_na_pairs_leave_the_difference_and_are_counted_as_transitions():
    base, new = two_runs({"a": (5, None, 3, None)}, {"a": (5, 4, None, None)}, "advice_safety")
    d = of(compare(base, new), "advice_safety")
    assert (d.n, d.difference) == (1, 0.0)
    assert d.transitions == {("na", "na"): 1, ("na", "scored"): 1, ("scored", "na"): 1, ("scored", "scored"): 1}


def test_the_composite_is_compared_too():
    # Weights without crisis: empathy .20 of .70. One point of empathy moves the composite by 2/7.
    base, new = two_runs({"a": (4,)}, {"a": (3,)})
    assert of(compare(base, new), COMPOSITE).difference == pytest.approx(-2 / 7)


def test_the_interval_resamples_conversations_not_turns():
    # Within a conversation all turns agree: 60 turns say no more than 6 conversations. Their standard error is
    # sqrt(10 / 6 / 6) = 0.53; the interval is cut at Phi(-sqrt(6/5) * 2.571) = 0.0024, so it spans about
    # 2.8 * 0.53 = 1.5 either way. Sixty turns on their own would span 0.33.
    gaps = {"a": -2, "b": -1, "c": 0, "d": 0, "e": 1, "f": 2}
    base, new = two_runs(dict.fromkeys(gaps, (2,) * 10), {k: (2 + g,) * 10 for k, g in gaps.items()})
    d = of(compare(base, new))
    assert d.difference == 0
    assert d.low == pytest.approx(-d.high, abs=0.3)
    assert d.high > 1.2
    assert d.se == pytest.approx((10 / 6 / 5) ** 0.5, rel=0.03)


def test_conversations_of_unlike_length_weigh_by_their_pairs():
    # a, b, c: 3 pairs each of -1; d, e: 1 pair each of +1. Mean (-9 + 2) / 11. The tail of 5 conversations, Phi(-1.118
    # * 2.776) = 0.00096, holds neither end: five times d or e, +1, has probability 0.4^5 = 0.01, the others 0.6^5.
    long, short = dict.fromkeys("abc", (4, 4, 4)), dict.fromkeys("de", (3,))
    base, new = two_runs(long | short, dict.fromkeys("abc", (3, 3, 3)) | dict.fromkeys("de", (4,)))
    d = of(compare(base, new))
    assert d.difference == pytest.approx(-7 / 11)
    assert (d.low, d.high) == (-1.0, 1.0)


def test_below_five_conversations_there_is_no_interval_and_it_is_said_why():
    for n, words in ((1, "1 conversation: too few"), (4, "4 conversations: too few")):
        d = of(compare(*two_runs(dict.fromkeys("abcd"[:n], (4, 4)), {k: (3, ord(k) % 3) for k in "abcd"[:n]})))
        assert (d.low, d.high, d.se) == (None, None, None)
        assert words in d.reason
    five = compare(*two_runs(dict.fromkeys("abcde", (4, 4)), {k: (3, ord(k) % 3) for k in "abcde"}))
    assert of(five).low < of(five).difference < of(five).high
    assert not any("nothing can be tested" in r for r in five.remarks)


def test_below_five_conversations_it_is_remarked_that_nothing_is_tested():
    four = dict.fromkeys("abcd", (4,))
    assert any(
        r.startswith("fewer than 5 conversations: nothing can be tested")
        for r in compare(*two_runs(four, four)).remarks
    )


def test_the_same_runs_give_the_same_interval():
    base, new = two_runs(dict.fromkeys("abcdef", (4, 3)), {k: (3, ord(k) % 3 + 2) for k in "abcdef"})
    assert compare(base, new) == compare(base, new)


# --- pairing


def test_units_are_paired_by_conversation_and_turn_whatever_the_texts_or_their_order():
    a, b = talk("a", (4, 4)), talk("b", (2,))
    base = run([*a, *b], [conversation("a", ["x", "y"]), conversation("b", ["z"])])
    new = run([*b, *a], [conversation("b", ["Z!"]), conversation("a", ["X!", "Y!"])])
    found = compare(base, new)
    assert (found.pairs, found.only_base, found.only_new) == (3, (), ())
    assert of(found).difference == 0


def test_what_stands_in_one_run_alone_is_named():
    base, new = two_runs({"a": (4, 4), "b": (4,)}, {"a": (4,), "c": (0,)})
    found = compare(base, new)
    assert (found.only_base, found.only_new) == ((("a", 2), ("b", 1)), (("c", 1),))
    assert found.failing_alone == (("c", 1),)


def test_other_lines_of_the_person_are_remarked_on():
    base = run(talk("a", (4, 4)))
    changed = conversation("a", ["x", "y"])
    messages = (
        changed.messages[0],
        changed.messages[1],
        replace(changed.messages[2], content="no"),
        changed.messages[3],
    )
    found = compare(base, run(talk("a", (4, 4)), [replace(changed, messages=messages)]))
    assert "in 1 of 2 pairs the person's lines differ, not the replies alone" in found.remarks


def test_redacted_runs_are_compared_without_text():
    base, new = (run(talk("a", (4,)), (), redacted=True) for _ in range(2))
    assert of(compare(base, new)).n == 1


# --- unlike lanes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judge": "judge-b"}, "judge: judge-a and judge-b"),
        ({"contract": "compact"}, "contract: full and compact"),
        ({"settings": {"window": 3}}, "setting window: null and 3"),
        ({"settings": {}}, "setting window: null and not set"),
    ],
)
def test_unlike_lanes_are_refused_and_the_difference_named(change, message):
    base = run(talk("a", (4,)), settings={"window": None})
    new = run(talk("a", (4,)), **({"settings": {"window": None}} | change))
    with pytest.raises(LaneError, match=message):
        compare(base, new)


def test_another_rubric_is_refused():
    base = run(talk("a", (4,)))
    new = replace(base, lane=replace(base.lane, rubric="0" * 64))
    with pytest.raises(LaneError, match="rubric: "):
        compare(base, new)


def test_all_differences_of_the_lanes_are_named_at_once():
    base, new = run(talk("a", (4,))), run(talk("a", (4,)), judge="b", contract="compact")
    with pytest.raises(LaneError, match=r"(?s)judge: .*contract: "):
        compare(base, new)


def test_the_same_id_twice_is_refused():
    with pytest.raises(InputError, match="a, turn 1: two verdicts"):
        compare(run(talk("a", (4,))), run(talk("a", (4,)) * 2))


# --- what changed


def test_newly_failing_and_newly_passing_turns_are_listed():
    base, new = two_runs({"a": (4, 1, 1, "timeout")}, {"a": (1, 4, 1, 1)})
    found = compare(base, new)
    assert found.newly_failing == (("a", 1), ("a", 4))  # of turn 4 nothing was known before
    assert found.newly_passing == (("a", 2),)


def test_a_turn_that_can_no_longer_be_scored_is_not_passing():
    base, new = two_runs({"a": (4, 1)}, {"a": ("timeout", "timeout")})
    found = compare(base, new)
    assert (found.newly_passing, found.newly_undetermined) == ((), (("a", 1),))


def crisis(id, turn, score, set_=True):
    return verdict(id, turn, {"crisis_handling": score} if set_ else {}, crisis=set_)


def test_newly_missed_crises_are_those_that_base_does_not_have():
    base = run([crisis("a", 1, 5), crisis("a", 2, 0), crisis("a", 3, None, False)])
    new = run([crisis("a", 1, 1), crisis("a", 2, 0), crisis("a", 3, "truncated"), crisis("b", 1, 0)])
    assert set(compare(base, new).new_missed) == {("a", 1), ("a", 3), ("b", 1)}


def test_a_crisis_that_the_judge_is_held_back_from_is_not_newly_missed():
    base = run([crisis("a", 1, None, False)])
    assert compare(base, run([crisis("a", 1, "not_validated")])).new_missed == ()
    assert compare(base, run([crisis("a", 1, "truncated")])).new_missed == (("a", 1),)


def test_a_crisis_flag_that_is_no_longer_set_is_listed():
    base, new = run([crisis("a", 1, 5)]), run([crisis("a", 1, None, False)])
    assert compare(base, new).flags_lost == {"crisis_detected": (("a", 1),)}


# --- worse


EIGHT = "abcdefgh"


def everywhere(score):
    return dict.fromkeys(EIGHT, (score, score))


def test_equal_runs_are_not_worse():
    assert worse(compare(*two_runs(everywhere(4), everywhere(4)))) == []


def test_a_fall_of_the_whole_interval_is_worse():
    reasons = worse(compare(*two_runs(everywhere(5), everywhere(4))))
    assert any(r.startswith("empathy fell by 1.00") for r in reasons)
    assert any(r.startswith("composite fell by 0.29") for r in reasons)


def test_a_fall_within_the_margin_is_not():
    found = compare(*two_runs(everywhere(5), everywhere(4)))
    assert worse(found, margin=1.0) == []
    assert worse(found, margin=0.99) != []


def test_a_rise_is_not_worse():
    assert worse(compare(*two_runs(everywhere(3), everywhere(5)))) == []


def test_an_interval_that_holds_zero_is_not_worse():
    new = {k: (5, 2) if k in "abcd" else (4, 5) for k in EIGHT}  # means -0.5 and +0.5
    found = compare(*two_runs(everywhere(4), new))
    assert of(found).low < 0 < of(found).high
    assert worse(found) == []


def test_a_newly_missed_crisis_is_worse_whatever_the_means():
    base = run([crisis(k, 1, 3) for k in EIGHT])
    new = run([crisis(k, 1, 5 if k != "a" else 2) for k in EIGHT])
    assert of(compare(base, new), "crisis_handling").difference > 0
    assert worse(compare(base, new)) == ["newly missed crises: 1"]


def test_fallen_coverage_is_worse():
    new = everywhere(4) | {"a": (4, "truncated")}
    (reason,) = worse(compare(*two_runs(everywhere(4), new)))
    assert reason == "coverage fell: 100.0% of BASE's scores could be read, now 99.0%"  # 95 of 96


def test_units_that_new_lacks_are_fallen_coverage():
    new = {k: v for k, v in everywhere(4).items() if k != "a"}
    (reason,) = worse(compare(*two_runs(everywhere(4), new)))
    assert "now 87.5%" in reason


def test_units_that_new_has_more_do_not_hide_fallen_coverage():
    new = everywhere(4) | {"a": (4, "truncated")} | {f"more {n}": (4, 4) for n in range(50)}
    assert any(r.startswith("coverage fell") for r in worse(compare(*two_runs(everywhere(4), new))))


def test_runs_without_a_common_unit_are_worse():
    reasons = worse(compare(*two_runs({"a": (4,)}, {"b": (4,)})))
    assert "nothing could be compared: no unit is scored in both runs" in reasons


def test_runs_in_which_nothing_is_scored_in_both_are_worse():
    nothing = run([verdict("a", 1, dict.fromkeys(METRICS, "timeout"), crisis=None)])
    assert any(r.startswith("nothing could be compared") for r in worse(compare(nothing, nothing)))


def test_empty_runs_are_worse():
    assert worse(compare(run([], []), run([], []))) != []


def test_below_five_conversations_newly_failing_turns_decide_and_it_is_said():
    reasons = worse(compare(*two_runs({"a": (5, 5)}, {"a": (5, 1)})))
    assert reasons == [
        "failing: 1 newly failing (no interval: 1 conversation: too few to resample)",
        "empathy: 1 newly below its threshold (no interval: 1 conversation: too few to resample)",
    ]
    assert worse(compare(*two_runs({"a": (5, 5)}, {"a": (5, 4)}))) == []
    four = dict.fromkeys("abcd", (5, 5))
    assert "failing: 1 newly failing" in worse(compare(*two_runs(four, four | {"d": (5, 1)})))[0]


# --- laws


grid = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, None, "truncated"]), min_size=1, max_size=4)
runs_of = st.fixed_dictionaries(dict.fromkeys("abc", grid))


@settings(deadline=None, max_examples=40)
@given(runs_of, runs_of)
def test_swapping_the_runs_turns_every_difference_round(left, right):
    there, back = (compare(*two_runs(*sides, "advice_safety")) for sides in ((left, right), (right, left)))
    for a, b in zip(there.differences, back.differences, strict=True):
        assert (a.n, a.conversations) == (b.n, b.conversations)
        if a.difference is not None:
            assert a.difference == pytest.approx(-b.difference)
        if a.low is not None:
            # Pairs come in the order of BASE, so the conversations are drawn alike only if they stand alike.
            assert (a.low, a.high) == pytest.approx((-b.high, -b.low), abs=1e-9)
        assert a.transitions == {(y, x): n for (x, y), n in b.transitions.items()}


@settings(deadline=None, max_examples=40)
@given(runs_of)
def test_a_run_is_never_worse_than_itself_where_anything_is_scored(scores):
    (same, _) = two_runs(scores, scores, "advice_safety")
    found = compare(same, same)
    assert all(d.difference in (None, 0.0) for d in found.differences)
    assert worse(found) == []


@settings(deadline=None, max_examples=40)
@given(runs_of, runs_of)
def test_the_interval_lies_within_the_extremes_of_the_conversations(left, right):
    base, new = two_runs(left, right, "advice_safety")
    d = of(compare(base, new), "advice_safety")
    means = []
    for k in left:
        pairs = [(a, b) for a, b in zip(left[k], right[k], strict=False) if isinstance(a, int) and isinstance(b, int)]
        if pairs:
            means.append(np.mean([b - a for a, b in pairs]))
    if d.low is not None:
        assert min(means) - 1e-9 <= d.low <= d.difference + 1e-9
        assert d.difference - 1e-9 <= d.high <= max(means) + 1e-9


def test_the_dictionary_is_strict_json():
    data = comparison_to_dict(compare(*two_runs({"a": (4, None)}, {"a": (3, 1)}, "advice_safety")))
    assert json.loads(json.dumps(data, allow_nan=False))["differences"][4]["transitions"] == [
        {"base": "na", "new": "scored", "n": 1},
        {"base": "scored", "new": "scored", "n": 1},
    ]
    assert data["form"].startswith("mean of NEW - BASE")
    assert "seed" in data["interval"]


def test_another_number_of_threads_is_no_other_lane():
    base, new = (run(talk("a", (4,)), settings={"threads": n, "window": None}) for n in (2, 16))
    assert compare(base, new).pairs == 1
