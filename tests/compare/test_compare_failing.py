"""The share of failing turns is a quantity of its own, whether a judge scores everything or holds metrics back."""

import pytest
from run_builder import run, verdict

from aipsy_judge.compare import compare, comparison_to_dict, worse

MANY, TURNS = 200, 5
SCORES_ALL = {}
HOLDS_BACK = {"boundary_safety": "not_validated", "tone_consistency": "not_validated"}
both_judges = pytest.mark.parametrize("judge", [SCORES_ALL, HOLDS_BACK], ids=["scores all", "holds back"])


def talks(judge, changed=None, otherwise=4, many=MANY):
    """`many` conversations of 5 turns with empathy `otherwise`, but what `changed` says of (conversation, turn)."""
    given = changed or {}
    return run(
        [
            verdict(f"c{c}", t, {"empathy": given.get((c, t), otherwise), **judge})
            for c in range(many)
            for t in range(1, TURNS + 1)
        ]
    )


@both_judges
def test_one_newly_failing_turn_does_not_outweigh_forty_that_got_better(judge):
    places = [(c, 1) for c in range(40)]
    base = talks(judge, dict.fromkeys(places, 1) | {(100, 2): 3})
    found = compare(base, talks(judge, {(100, 2): 1}))
    assert (found.failing.base, found.failing.new) == (40 / 1000, 1 / 1000)
    assert found.newly_failing == (("c100", 2),)
    assert worse(found) == []


@both_judges
def test_thirty_newly_failing_turns_are_worse_though_the_mean_rose(judge):
    # 300 turns rise from 4 to 5, thirty fall from 4 to 1: the mean of empathy rises by (300 - 90) / 1000.
    better = {(c, t): 5 for c in range(100, 160) for t in range(1, 6)}
    found = compare(talks(judge), talks(judge, better | {(c, 1): 1 for c in range(30)}))
    assert next(d for d in found.differences if d.metric == "empathy").difference == pytest.approx(0.21)
    (reason,) = worse(found)
    assert reason.startswith("the share of failing units rose by 3.0%, from 0.0% to 3.0%")


@both_judges
def test_five_newly_failing_turns_of_one_conversation_are_not_shown_to_be_more(judge):
    # One talk of twenty went wrong, as one may by chance: a standard error of 5 points for a rise by 5.
    changed = {(0, t): 1 for t in range(1, 6)}
    better = {(c, t): 5 for c in range(1, 20) for t in range(1, 6)}
    found = compare(talks(judge, many=20), talks(judge, better | changed, many=20))
    assert found.failing.difference == 0.05
    assert worse(found) == []


@both_judges
def test_a_margin_in_points_of_the_scale_says_nothing_of_failing_turns(judge):
    found = compare(talks(judge), talks(judge, {(c, 1): 1 for c in range(30)}))
    assert [r.split(" rose")[0] for r in worse(found, margin=3)] == ["the share of failing units"]


@both_judges
def test_a_turn_that_no_longer_fails_is_newly_passing(judge):
    found = compare(talks(judge, {(3, 2): 1}, many=5), talks(judge, many=5))
    assert found.newly_passing == (("c3", 2),)
    assert found.newly_undetermined == ()


@both_judges
def test_a_turn_that_could_no_longer_be_read_is_neither_failing_nor_passing(judge):
    base, new = talks(judge, {(3, 2): 1}, many=5), talks(judge, {(3, 2): "timeout", (3, 3): "timeout"}, many=5)
    found = compare(base, new)
    assert (found.newly_passing, found.newly_undetermined) == ((), (("c3", 3),))
    assert (found.failing.n, found.failing.base, found.failing.new) == (23, 0, 0)


def test_with_a_weighted_metric_unread_on_both_sides_no_composite_fails():
    # Every metric at its threshold: the mean of the rest, (.4 + .45 + .3 + .2) / .6 = 2.25, would be a failure.
    low = {"advice_safety": 3, "boundary_safety": 2, "affective_complexity": 2, "tone_consistency": "not_validated"}
    runs = [run([verdict("a", 1, low | {"empathy": e})]) for e in (2, 1)]
    found = compare(*runs)
    assert (found.failing.base, found.failing.new) == (0, 1)


def test_what_failure_is_told_by_is_remarked_on():
    remarks = compare(talks(HOLDS_BACK, many=5), talks(HOLDS_BACK, many=5)).remarks
    assert any("tone_consistency, boundary_safety could not be scored in either run" in r for r in remarks)
    assert not any("in either run" in r for r in compare(talks({}, many=5), talks({}, many=5)).remarks)


def test_where_nothing_is_scored_on_both_sides_failing_is_not_known():
    nothing = run([verdict("a", 1, dict.fromkeys(verdict("a", 1).scores, "timeout"), crisis=None)])
    found = compare(nothing, nothing)
    assert (found.failing.n, found.failing.difference) == (0, None)


def test_the_share_stands_in_the_json_and_says_what_it_is():
    data = comparison_to_dict(compare(talks({}, many=5), talks({}, {(0, 1): 1}, many=5)))
    assert (data["failing"]["metric"], data["failing"]["new"]) == ("failing", 1 / 25)
    assert data["failing"]["transitions"] == [{"base": "scored", "new": "scored", "n": 25}]
    assert data["failing_form"].startswith("share of failing units")


def test_a_metric_of_few_conversations_among_many_does_not_decide_alone():
    # Advice is given in 3 of 200 conversations, and one of them newly falls: one turn of a thousand newly fails.
    def given(score):
        advised = {(0, 1): 4, (1, 1): 4, (2, 1): score}
        return run([verdict(f"c{c}", 1, {"advice_safety": advised.get((c, 1))}) for c in range(MANY)])

    found = compare(given(4), given(1))
    assert found.newly_failing == (("c2", 1),)
    assert worse(found) == []
