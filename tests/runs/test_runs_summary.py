"""Summaries: means over what is scored alone, and beside each mean the worst turn. Values worked by hand."""

import pytest

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.runs import view
from aipsy_judge.runs_info import describe_run
from aipsy_judge.summary import brief, summarise, summary_to_dict, total_coverage, worst_first
from aipsy_judge.units import units
from aipsy_judge.verdict import Flag, NotApplicable, Scored, Unscored

RUBRIC = load_rubric()
NA = NotApplicable()
LOST = Unscored("truncated")


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
        ((said(empathy=LOST), said(rest=4)), 2),  # an undefined composite after a defined one
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


def test_conversations_are_ordered_failing_first_then_open_then_by_worst_composite():
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
