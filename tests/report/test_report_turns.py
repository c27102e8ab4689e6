"""The HTML report's conversations: every turn with its text, its scores and what they mean, and their course."""

from report_page import page_of, words
from run_builder import METRICS, RUBRIC, conversation, run, verdict
from varied_run import varied

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.verdict import NotApplicable, Reading, Scored


def test_every_turn_stands_in_the_report_with_its_text_and_all_its_scores():
    view = varied()
    page = page_of(view)
    turns = page.by_class("turn")
    assert len(turns) == 6
    for reply in ("one", "two", "three", "four", "five", "six"):
        assert sum(words(t.by_class("judged")[0]).endswith(reply) for t in turns) == 1
    titles = [m.title for m in RUBRIC.metrics]
    judged = [t for t in turns if "Not judged" not in words(t)]
    assert all([n.text for n in t.by_class("name")] == titles for t in judged)
    assert len(judged) == 5


def test_messages_after_the_last_reply_are_kept():
    talk = Conversation("a", (*conversation("a", ["one"]).messages, Message("user", "still there?")))
    assert "still there?" in words(page_of(run([verdict("a", 1)], [talk])))


def test_a_conversation_shows_its_worst_turn_beside_its_mean():
    verdicts = [verdict("a", n, {"empathy": e}) for n, e in enumerate((5, 5, 2, 5), 1)]
    page = page_of(run(verdicts))
    row = next(r for r in page.by_class("conversation")[0].all("tr") if r.all("th")[0].text == "Empathy")
    cells = [words(c) for c in row.all("td")]
    assert cells[:2] == ["4.25", "2turn 3"]


def test_the_course_breaks_where_there_is_no_score():
    scores = [4, None, 3, 3, "truncated", 1]
    page = page_of(run([verdict("a", n, {"advice_safety": s}) for n, s in enumerate(scores, 1)]))
    row = next(r for r in page.by_class("conversation")[0].all("tr") if r.all("th")[0].text == "Advice safety")
    chart = row.all("svg")[0]
    assert chart.attributes["aria-label"] == "Advice safety over 6 turns: 4, N/A, 3, 3, unscored, 1"
    marks = [e.attributes["class"] for e in chart.all() if e.attributes.get("class", "").startswith("m-")]
    assert marks == ["m-score", "m-na", "m-score", "m-score", "m-unscored", "m-low"]
    assert [len(p.attributes["points"].split()) for p in chart.all("polyline")] == [2]
    assert len(chart.by_class("c-limit")) == 1


def test_every_score_has_the_rubrics_wording_beside_it():
    values = dict(zip(METRICS, (0, 1, 2, 3, 4, 5), strict=True))
    page = page_of(run([verdict("a", 1, values, crisis=True)]))
    meanings = [words(e) for e in page.by_class("turn")[0].by_class("means")]
    assert meanings == [RUBRIC.metric(m).anchors[v] for m, v in values.items()]


def test_na_says_what_forced_it_or_when_the_metric_applies():
    scores = {"crisis_handling": NotApplicable(forced_by="crisis_detected"), "advice_safety": NotApplicable()}
    meanings = [words(e) for e in page_of(run([verdict("a", 1, scores)])).by_class("means")]
    assert "Does not apply: Crisis is not set." in meanings
    assert f"Does not apply here. It does when {RUBRIC.metric('advice_safety').applies_when}." in meanings


def test_readings_near_ties_injections_notes_and_rationale_are_shown():
    spread = {"4": 0.6, "5": 0.3, "N/A": 0.1}
    reading = Reading(p_na=0.1, expected=4.333, confidence=0.6, legal_mass=0.97, distribution=spread, near_tie=True)
    fields = {"suspected_injection": ("give 5",), "notes": ("windowed:3",), "rationale": "It stays close."}
    page = page_of(run([verdict("a", 1, {"advice_safety": Scored(4.0, reading)}, **fields)]))
    turn = page.by_class("turn")[0]
    row = next(li for li in turn.all("li") if "Advice safety" in words(li))
    assert "near tie" in words(row)
    assert [words(s) for s in row.by_class("read")[0].all("span")] == [
        "confidence 60 %",
        "N/A 10 %",
        "expected 4.33",
        "legal mass 97 %",
    ]
    assert row.all("svg")[0].attributes["aria-label"].endswith("4: 60 %, 5: 30 %, N/A: 10 %")
    for part in ("“give 5”", "windowed:3", "It stays close."):
        assert part in words(turn)


def test_a_near_tie_stands_beside_its_metric_and_not_among_the_notes():
    reading = Reading(None, None, 0.5, None, near_tie=True)
    fields = {"notes": ("near_tie:empathy", "rationale_cut")}
    page = page_of(run([verdict("a", 1, {"empathy": Scored(4.0, reading)}, **fields)]))
    assert "near_tie" not in words(page.by_class("turn")[0])
    assert [words(li) for li in page.by_class("remarks")[0].all("li")] == [
        "the judge's reason was cut off (rationale_cut)"
    ]
