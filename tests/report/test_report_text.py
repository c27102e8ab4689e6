"""The terminal output: marks that cannot be confused, any text, any width, and progress that does not lie."""

import io
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, drawn_answer
from aipsy_judge.cli import progress as progress_module
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.report.text import (
    coverage_words,
    findings_words,
    open_console,
    print_conversation,
    print_judge,
    print_overview,
    worst_words,
)
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.runs import view
from aipsy_judge.runs_info import describe_run
from aipsy_judge.summary import brief, summarise
from aipsy_judge.units import Coverage, units
from aipsy_judge.verdict import Flag, NotApplicable, Scored, Unscored

RUBRIC = load_rubric()
CALM = {"crisis_detected": Flag(False, "none")}
HARD_TEXTS = [
    "مرحبا hello \u202eتجاوز",
    "👨\u200d👩\u200d👧\u200d👦" * 20,
    "z" + "\u0301" * 300,
    "[bold red]x[/]",
    ":smile:",
]


def shown(answer, *, turns=2, width=80, rubric=RUBRIC, id="talk", warnings=()):
    judge = FakeJudge(rubric, answer=answer)
    talk = Conversation(id, tuple(Message("assistant", str(n)) for n in range(turns)))
    (summary,) = summarise(rubric, units(view(describe_run(judge, rationale="always"), [talk], judge.score(talk, rationale="always"))))  # fmt: skip # noqa: E501
    out = io.StringIO()
    print_conversation(open_console(out, width=width), rubric, summary, warnings)
    return out.getvalue()


def constant(rationale="", **scores):
    given_scores = dict.fromkeys(RUBRIC.metric_names, Scored(4.0)) | {"crisis_handling": NotApplicable()} | scores
    return lambda conversation, turn: FakeAnswer(given_scores, CALM, rationale)


def test_each_status_has_its_own_mark_and_the_legend_names_those_that_occur():
    out = shown(constant(advice_safety=Scored(1.0), empathy=Unscored("truncated", "at 512 tokens")))
    row = next(line for line in out.splitlines() if line.startswith(" 1 "))
    assert row.split() == ["1", "?", "4", "–", "1!", "4", "4", "?"]
    assert "– not applicable   ? unscored   ! failure" in out
    plain = shown(constant(crisis_handling=NotApplicable()))
    assert "? unscored" not in plain
    assert "! failure" not in plain


def test_what_is_unscored_is_explained_below_the_table():
    out = shown(constant(empathy=Unscored("truncated", "at 512 tokens")))
    assert "? Empathy: the judge's answer was cut off (at 512 tokens)" in out


def test_a_failing_turn_says_what_lies_below_which_threshold_and_why():
    out = shown(constant("It gives advice it should not.", advice_safety=Scored(2.0)))
    assert "Turn 1: Advice safety 2 < 3" in out
    assert "It gives advice it should not." in out


def test_the_worst_turn_stands_beside_the_mean():
    def answer(conversation, turn):
        return constant(empathy=Scored(0.0 if turn.number == 2 else 4.0))(conversation, turn)

    out = " ".join(shown(answer, turns=3).split())
    # Weights of the four metrics that apply and empathy: .2, .1, .15, .15, .1 of .7; (0*.2 + 4*.5) / .7 = 2.86.
    assert "Worst turn: 2 (composite 2.86; Empathy 0 < 2)." in out
    assert "Mean composite: 3.62, of 3 of 3 turns." in out  # (4 + 2.857 + 4) / 3


def test_readers_warnings_are_shown():
    assert "note: 1 image omitted" in shown(constant(), warnings=("1 image omitted",))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("text", HARD_TEXTS)
def test_hard_text_neither_breaks_the_table_nor_hides_nor_runs_over_the_width(width, text):
    out = shown(constant(text), id=text, width=width)
    assert "\u202e" not in out
    assert max(cell_len(line) for line in out.splitlines()) <= width
    if "[" in text or ":" in text:
        assert text in out  # neither markup nor an emoji code


@pytest.mark.parametrize("width", [30, 60, 78, 79, 80, 120])
def test_no_score_is_cut_off_at_any_width(width):
    out = shown(constant(advice_safety=Scored(1.0)), turns=12, width=width)
    assert out.count("1!") == 12
    assert out.count("3.36!") == 12  # (4*.2 + 4*.1 + 1*.15 + 4*.15 + 4*.1) / .7 = 3.357


def test_nineteen_metrics_a_turn_are_rows():
    data = RUBRIC.model_dump()
    one = {**data["metrics"][0], "weight": None}
    metrics = [{**one, "name": f"m{n}", "title": f"Metric {n}"} for n in range(19)]
    rubric = Rubric.model_validate({**data, "metrics": metrics, "composite": None})
    out = shown(lambda c, t: drawn_answer(rubric, str(t)), rubric=rubric)
    assert [line.split()[0:2] for line in out.splitlines() if line.startswith("Metric 1 ")] == [["Metric", "1"]]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(max_size=40), id=st.text(min_size=1, max_size=20))
def test_any_text_is_printed_without_control_characters(text, id):
    out = shown(constant(text), id=id)
    assert not [c for c in out if ord(c) < 32 and c != "\n"]


def test_the_judge_is_named_with_its_remarks_on_the_first_line():
    out = io.StringIO()
    print_judge(open_console(out, width=200), FakeJudge().lane, RUBRIC, ("never trained as a judge",))
    assert out.getvalue().splitlines()[0] == "Judge fake: never trained as a judge"


def test_coverage_names_every_reason():
    line = coverage_words(Coverage(3, 2, {"timeout": 1, "truncated": 4}), 2)
    assert line == ("Coverage: 10 scores: 3 scored, 2 N/A, 5 unscored (timeout 1, truncated 4); 2 without any verdict")


def test_a_whole_conversation_has_no_mean_beside_it():
    rubric = Rubric.model_validate({**RUBRIC.model_dump(), "unit": "conversation"})
    judge = FakeJudge(rubric, answer=constant())
    talk = Conversation("x", (Message("assistant", "a"),))
    (summary,) = summarise(rubric, units(view(describe_run(judge, rationale="never"), [talk], judge.score(talk))))
    assert worst_words(rubric, summary) == "The conversation (composite 4.00)."


class Tty(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_silent_where_nobody_watches(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_module.progress(2) as watched:
        watched.had(FakeJudge().score(Conversation("x", (Message("assistant", "a"),)))[0])
    assert sys.stderr.getvalue() == ""


def test_progress_counts_turns_and_takes_kept_ones_off_the_total(monkeypatch):
    """Kept verdicts took no time: counted as done, they would make the rest look as quick."""
    monkeypatch.setattr(sys, "stderr", Tty())
    monkeypatch.setenv("TERM", "xterm")
    (verdict,) = FakeJudge().score(Conversation("x\u202ey", (Message("assistant", "a"),)))
    with progress_module.progress(10) as watched:
        for _ in range(7):
            watched.kept(verdict)
        watched.had(verdict)
        watched._bar.refresh()
        (task,) = watched._bar.tasks
        assert (task.completed, task.total) == (1, 3)
    assert "1/3" in sys.stderr.getvalue()
    assert "turn 1" in sys.stderr.getvalue()
    assert "\u202e" not in sys.stderr.getvalue()


def test_what_a_judge_is_held_back_from_is_said_once_and_not_with_every_turn():
    held = Unscored("not_validated", "ICC .1 in 200 turns")
    out = shown(constant(empathy=held, advice_safety=Unscored("truncated", "at 512 tokens")), turns=3, width=120)
    assert out.count("not been shown to work") == 1
    assert "? Empathy: this judge has not been shown to work on this metric (ICC .1 in 200 turns)" in out
    assert out.count("? Advice safety: ") == 3
    assert "  Turn 1\n" not in shown(constant(empathy=held), turns=3)


def test_a_crisis_whose_reply_has_no_score_is_not_called_missed():
    set_flag = {"crisis_detected": Flag(True, "direct")}

    def said(score):
        scores = dict.fromkeys(RUBRIC.metric_names, Scored(4.0)) | {"crisis_handling": score}
        judge = FakeJudge(RUBRIC, answer=lambda conversation, turn: FakeAnswer(scores, set_flag, ""))
        talk = Conversation("t", (Message("user", "a"), Message("assistant", "b")))
        found = summarise(RUBRIC, units(view(describe_run(judge, rationale="never"), [talk], judge.score(talk))))
        return findings_words([brief(s) for s in found])

    assert said(Scored(0.0)).startswith("Missed crises: 1. Failing: 1 of 1")
    assert said(Unscored("not_validated")).startswith("Missed crises: 0; 1 more whose reply has no score. Failing: 0")
    assert said(Scored(5.0)).startswith("Missed crises: 0. Failing: 0 of 1")


def test_of_many_conversations_without_a_composite_the_lowest_is_in_the_table_and_printed_whole():
    held = {"tone_consistency": Unscored("not_validated"), "boundary_safety": Unscored("not_validated")}
    low, lowest = held | {"empathy": Scored(1.0)}, {"empathy": Scored(0.0), "advice_safety": Scored(0.0)}

    def answer(conversation, turn):
        return constant(**low | (lowest if conversation.id == "last" else {}))(conversation, turn)

    judge = FakeJudge(RUBRIC, answer=answer)
    talks = [Conversation(id, (Message("assistant", "a"),)) for id in (*map(str, range(20)), "last")]
    run = view(describe_run(judge, rationale="never"), talks, [v for t in talks for v in judge.score(t)])
    summaries = {s.id: s for s in summarise(RUBRIC, units(run))}
    out = io.StringIO()
    print_overview(open_console(out, width=80), RUBRIC, [brief(s) for s in summaries.values()], summaries.__getitem__)
    rows = [line.split()[-1] for line in out.getvalue().splitlines() if line.strip()]
    assert rows.index("last") < rows.index("0") < rows.index("18")
    assert "19" not in rows
    assert "Advice safety 0 < 3" in out.getvalue()
