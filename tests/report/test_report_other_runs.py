"""The HTML report of runs of other shapes: redacted, empty, over whole conversations, and the fake judge's."""

from report_page import page_of, read_page, words
from run_builder import RUBRIC, conversation, run, verdict

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.report.html import render_html
from aipsy_judge.rubric import Rubric


def whole_rubric() -> Rubric:
    data = RUBRIC.model_dump(mode="json") | {"name": "whole", "unit": "conversation", "composite": None, "flags": []}
    kept = {"applies": "always", "applies_when": None, "weight": None, "scale": {"minimum": 1, "maximum": 10}}
    anchors = {1: "low", 10: "high"}
    data["metrics"] = [{**data["metrics"][0], **kept, "anchors": anchors, "name": f"quality_{i}"} for i in range(19)]
    return Rubric.model_validate(data)


def test_a_redacted_run_is_reported_without_text():
    view = run([verdict("a", 1, {"crisis_handling": 0}, crisis=True)], conversations=(), redacted=True)
    page = page_of(view)
    assert page.by_class("said") == []
    assert "keeps no text" in words(page)
    assert len(page.by_class("alarm")) == 1
    assert len(page.by_class("scores")) == 1


def test_an_empty_run_is_a_page_that_says_so():
    assert "holds nothing to read" in words(page_of(run([], [])))


def test_a_rubric_over_whole_conversations_with_nineteen_metrics_is_reported():
    rubric = whole_rubric()
    judged = verdict("a", None, dict.fromkeys(rubric.metric_names, 7), rubric=rubric)
    page = page_of(run([judged], [conversation("a", ["one", "two"])], rubric=rubric))
    turns = page.by_class("turn")
    assert [t.all("h3")[0].text for t in turns] == ["Whole conversation"]
    assert len(turns[0].by_class("said")) == 4
    assert {words(e) for e in turns[0].by_class("means")} == {"low"}
    assert page.by_class("chart") == []


def test_the_fake_judges_run_is_reported_and_the_same_each_time():
    talks = [conversation(f"talk {n}", [f"reply {n}.{t}" for t in range(1, 6)]) for n in range(4)]
    judge = FakeJudge()
    view = run([v for t in talks for v in judge.score(t)], talks, remarks=judge.remarks)
    html = render_html(view)
    assert html == render_html(view)
    assert len(read_page(html).by_class("turn")) == 20
