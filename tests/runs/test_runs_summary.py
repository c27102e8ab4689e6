"""Summaries: means over what is scored alone, and beside each mean the worst turn. Values worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_builder import run as run_of
from run_builder import verdict

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.reading_list import conversation_order, reading_list
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.runs import view
from aipsy_judge.runs_info import describe_run
from aipsy_judge.summary import brief, summarise, summary_to_dict, total_coverage, worst_first
from aipsy_judge.units import units
from aipsy_judge.verdict import Flag, NotApplicable, Scored, Unscored

RUBRIC = load_rubric()
NA = NotApplicable()
LOST = Unscored("truncated")
HELD = {name: Unscored("not_validated") for name in ("tone_consistency", "boundary_safety")}  # as the judge mini


def said(crisis=False, rest=4, **scores):
    """An answer with `rest` for every metric but those named; a number is a score."""
    values = dict.fromkeys(RUBRIC.metric_names, rest) | ({} if crisis else {"crisis_handling": NA}) | scores
    scored = {n: Scored(float(v)) if isinstance(v, int | float) else v for n, v in values.items()}
    flag = Flag(crisis, "direct" if crisis else "none") if crisis is not None else Flag(None, unscored=LOST)
    return FakeAnswer(scored, {"crisis_detected": flag})


def summary(*answers, rubric=RUBRIC, id="c"):
    messages = tuple(Message("assistant", str(n)) for n in range(len(answers)))
    judge = FakeJudge(rubric, answer=lambda conversation, turn: answers[turn.number - 1])
    conversation = Conversation(id, messages)
    run = view(describe_run(judge, rationale="never"), [conversation], judge.score(conversation))
    (found,) = summarise(rubric, units(run))
    return found


def metric(found, name):
    return next(m for m in found.metrics if m.metric == name)


def test_a_mean_is_over_the_scored_turns_alone():
    found = summary(said(empathy=2), said(empathy=5), said(empathy=NA), said(empathy=LOST))
    empathy = metric(found, "empathy")
    assert (empathy.mean, empathy.lowest) == (3.5, 2.0)  # (2 + 5) / 2
    assert (empathy.coverage.scored, empathy.coverage.not_applicable, empathy.coverage.unscored) == (2, 1, 1)


def test_what_is_never_scored_has_no_mean():
    found = summary(said(empathy=NA), said(empathy=LOST))
    assert metric(found, "empathy").mean is None
    assert metric(found, "empathy").lowest is None
    assert summary_to_dict(found)["metrics"]["empathy"]["mean"] is None


def test_the_mean_composite_leaves_out_turns_whose_composite_is_undefined_and_says_how_many_it_is_of():
    found = summary(said(rest=3), said(rest=5), said(empathy=LOST))
    assert (found.composite, found.composites) == (pytest.approx(4.0), 2)
    assert [u.turn for u in found.undetermined] == [3]


@pytest.mark.parametrize(
    ("answers", "worst"),
    [
        ((said(rest=4), said(rest=3), said(rest=5)), 2),  # lowest composite
        ((said(rest=3), said(advice_safety=2)), 2),  # a failing turn before a lower composite that fails nothing
        ((said(rest=3), said(crisis=True, rest=3), said(rest=3)), 2),  # of equals, the one with a crisis
        ((said(rest=3), said(rest=3)), 1),  # of equals, the first
        ((said(rest=4), said(empathy=LOST)), 2),  # what may be a failure before what is none
        ((said(empathy=1, **HELD), said(rest=0, **HELD)), 2),  # advice lies .6 below its threshold, empathy .2
        ((said(empathy=0, **HELD), said(empathy=0, advice_safety=1, **HELD)), 2),  # both .4 below: the lower mean
        ((said(empathy=4, **HELD), said(advice_safety=3, **HELD)), 2),  # no failure seen: the closest to a threshold
        ((said(rest=LOST, crisis_handling=LOST), said(rest=4)), 2),  # nothing known is never the worst
        ((said(rest=3), said(advice_safety=0, empathy=LOST)), 2),  # a known failure, though its composite is undefined
    ],
)
def test_the_worst_turn(answers, worst):
    assert summary(*answers).worst.turn == worst


def test_where_nothing_is_scored_there_is_no_worst_turn():
    found = summary(said(rest=LOST, crisis_handling=LOST))
    assert found.worst is None
    assert summary_to_dict(found)["worst"] is None


def test_a_flagged_crisis_of_which_nothing_could_be_scored_is_the_worst_turn():
    lost = said(crisis=True, rest=LOST)
    assert summary(said(advice_safety=1), lost).worst.turn == 2
    assert summary(lost).worst.turn == 1


def test_without_a_composite_the_lowest_metric_as_a_share_of_its_scale_names_the_worst():
    data = RUBRIC.model_dump()
    for item in data["metrics"]:
        item["critical"] = None
        if item["name"] == "advice_safety":
            item["scale"] = {"minimum": 0, "maximum": 10}
    rubric = Rubric.model_validate({**data, "composite": None})
    # Advice 3 of 0-10 is lower than anything 2 of 0-5.
    assert summary(said(empathy=2), said(advice_safety=3), rubric=rubric).worst.turn == 2


def test_flags_that_are_set_and_flags_that_could_not_be_read_are_listed_apart():
    found = summary(said(), said(crisis=True), said(crisis=None, crisis_handling=LOST))
    assert [u.turn for u in found.flagged["crisis_detected"]] == [2]
    assert [u.turn for u in found.unread["crisis_detected"]] == [3]


def test_where_no_composite_is_defined_the_lowest_conversation_comes_first_and_not_the_earliest():
    found = [summary(said(empathy=1, **HELD), id=f"low {n}") for n in range(20)]
    found.append(summary(said(rest=0, **HELD), id="lowest"))
    assert [b.id for b in worst_first(map(brief, found))] == ["lowest", *(f"low {n}" for n in range(20))]


readings = st.fixed_dictionaries(
    {name: st.sampled_from([0, 1, 2, 3, 4, 5, None, "truncated", "not_validated"]) for name in RUBRIC.metric_names}
)


talks_of_turns = st.lists(st.tuples(readings, st.sampled_from([True, False, None])), min_size=1, max_size=3)


@given(st.lists(talks_of_turns, max_size=4))
def test_the_overview_and_the_reading_list_name_one_order_and_one_worst_unit(talks):
    found = units(
        run_of([verdict(f"c{c}", n, s, crisis=f) for c, talk in enumerate(talks) for n, (s, f) in enumerate(talk, 1)])
    )
    summaries = summarise(RUBRIC, found)
    entries = reading_list(RUBRIC, found)
    assert [b.id for b in worst_first(map(brief, summaries))] == conversation_order(entries)
    first = {e.unit.conversation_id: e.unit for e in reversed(entries)}
    for one in summaries:
        something = first[one.id].composite.scored or one.missed
        assert (one.worst is first[one.id]) or not something


def test_conversations_are_ordered_failing_first_then_open_then_by_their_worst_unit():
    briefs = [
        brief(summary(said(rest=5), id="fine")),
        brief(summary(said(rest=3), id="low")),
        brief(summary(said(rest=5, empathy=LOST), id="open")),
        brief(summary(said(advice_safety=1), id="failing")),
    ]
    assert [b.id for b in worst_first(briefs)] == ["failing", "open", "low", "fine"]


def test_total_coverage_adds_up():
    one, two = summary(said(empathy=LOST)), summary(said(empathy=Unscored("timeout")), said())
    found = total_coverage([brief(one), brief(two)])
    assert found.total == 18
    assert found.reasons == {"timeout": 1, "truncated": 1}
    assert found.not_applicable == 3
