"""The HTML report: complete, self-contained, safe to open, readable by everybody."""

import base64
import hashlib
import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from report_page import Element, read_page
from run_builder import METRICS, RUBRIC, conversation, run, verdict

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.report.html import render_html
from aipsy_judge.report.page import MOST_PASSED
from aipsy_judge.rubric import Rubric
from aipsy_judge.runs import RunView
from aipsy_judge.verdict import NotApplicable, Reading, Scored, Unscored

ALL_FIVES = dict.fromkeys(METRICS, 5) | {"crisis_handling": None}


def page_of(run: RunView) -> Element:
    return read_page(render_html(run))


def words(element: Element) -> str:
    return " ".join(element.text.split())


def varied() -> RunView:
    """Every kind of finding: a missed crisis, a failure, something unscored, an unjudged turn, a passed turn."""
    verdicts = [
        verdict("calm", 1),
        verdict("calm", 2, {"advice_safety": None, "empathy": "truncated"}),
        verdict("storm", 1, {"boundary_safety": 1}),
        verdict("storm", 2, {"crisis_handling": 1}, crisis=True),
        verdict("storm", 3, {"crisis_handling": 5}, crisis=True),
    ]
    talks = [conversation("calm", ["one", "two"]), conversation("storm", ["three", "four", "five", "six"])]
    return run(verdicts, talks)


def section_of(page: Element, place: str) -> Element:
    """The section that the reading list (or a card of a missed crisis) links to for a place."""
    link = next(a for a in page.all("a") if a.text == place and a.attributes["href"].startswith("#c"))
    return page.by_id(link.attributes["href"].removeprefix("#"))


# --- nothing from elsewhere, nothing executable


def test_the_file_refers_to_nothing_outside_itself():
    html = render_html(varied())
    page = read_page(html)
    for element in page.all():
        for name in ("src", "href", "action", "data", "srcset", "poster", "background", "xlink:href"):
            assert element.attributes.get(name, "#").startswith("#"), (element.tag, name)
    style = page.all("style")[0].text
    assert "@import" not in style
    assert re.findall(r"url\(([^)]*)\)", style) == ["#hatch"]
    assert "http://" not in html
    assert "https://" not in html


def test_nothing_in_the_file_can_run():
    page = page_of(varied())
    active = {"script", "iframe", "object", "embed", "form", "base", "img", "link"}
    assert {e.tag for e in page.all()} & active == set()
    assert [n for e in page.all() for n in e.attributes if n.startswith("on") or n == "style"] == []


def test_the_policy_forbids_everything_but_the_files_own_style():
    page = page_of(varied())
    policy = next(m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(page.all("style")[0].text.encode()).digest()).decode()
    assert policy.attributes["content"].startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


HOSTILE = "</p></section><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnissim\u202c \u200b&amp; {{ 7*7 }}"


def hostile_run() -> RunView:
    reading = Reading(0.0, 4.0, 1.0, 1.0, {HOSTILE: 1.0})
    scores = {"empathy": Scored(4.0, reading), "advice_safety": Unscored("out_of_range", HOSTILE)}
    fields = {"rationale": HOSTILE, "suspected_injection": (HOSTILE,), "notes": (HOSTILE,)}
    judged = verdict(HOSTILE, 1, scores, provenance={HOSTILE: HOSTILE}, **fields)
    talk = Conversation(
        HOSTILE,
        (Message("user", HOSTILE), Message("tool", HOSTILE, False), Message("assistant", HOSTILE)),
        source=HOSTILE,
        warnings=(HOSTILE,),
    )
    settings = {HOSTILE: HOSTILE}
    return run([judged], [talk], judge=HOSTILE, contract=HOSTILE, remarks=(HOSTILE,), settings=settings)


def test_hostile_text_stays_text_everywhere():
    html = render_html(hostile_run())
    page = read_page(html)
    assert page.all("script") == []
    assert page.all("img") == []
    assert "<script" not in html
    assert "49" not in words(page.by_class("judged")[0])
    said = page.by_class("judged")[0].all("p")[0]
    assert words(said).startswith("</p></section><script>alert(1)</script><img src=x onerror=alert(2)>")
    assert words(said).endswith("&amp; {{ 7*7 }}")


def test_bidi_and_zero_width_characters_are_shown_by_number():
    html = render_html(hostile_run())
    assert not {"\u202e", "\u202c", "\u200b"} & set(html)
    hidden = read_page(html).by_class("judged")[0].by_class("hidden-char")
    assert [h.text for h in hidden] == ["U+202E", "U+202C", "U+200B"]
    assert hidden[0].attributes["title"] == "right-to-left override"


def test_right_to_left_text_and_joined_emoji_pass_unchanged():
    text = "مرحبا Latin 👨‍👩‍👧 e" + "\u0301" * 300
    page = page_of(run([verdict("a", 1)], [conversation("a", [text])]))
    said = page.by_class("judged")[0].all("p")[0]
    assert said.text == text
    assert said.attributes["dir"] == "auto"


def test_half_an_emoji_does_not_break_the_file():
    html = render_html(run([verdict("a\ud83d", 1, rationale="\udcb2")], [conversation("a\ud83d", ["half \ud83d"])]))
    html.encode("utf-8")
    assert read_page(html).by_class("judged")[0].all("p")[0].text == "half \ufffd"


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=60), st.text(min_size=1, max_size=20), st.text(max_size=60))
def test_any_text_gives_a_well_nested_page_without_control_characters(reply, id, rationale):
    html = render_html(run([verdict(id, 1, rationale=rationale)], [conversation(id, [reply])]))
    page = read_page(html)
    assert {e.tag for e in page.all()}.isdisjoint({"script", "img"})
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", html)
    if reply.isprintable() and reply.strip():
        assert page.by_class("judged")[0].all("p")[0].text == reply


# --- complete


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


def test_links_lead_somewhere_and_ids_are_unique():
    page = page_of(varied())
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    assert {a.attributes["href"].removeprefix("#") for a in page.all("a")} <= set(ids)
    labels = [e.attributes["aria-labelledby"] for e in page.all() if "aria-labelledby" in e.attributes]
    assert set(labels) <= set(ids)


def test_missed_crises_come_first_with_the_anchors_wording():
    page = page_of(varied())
    cards = page.by_class("alarm")
    assert [c.all("a")[0].text for c in cards] == ["storm, turn 2"]
    assert RUBRIC.metric("crisis_handling").anchors[1] in words(cards[0])
    assert "a stated wish to die" in words(cards[0])
    assert words(cards[0]).endswith("Person: line 2Assistant: four")
    ids = [e.attributes.get("id") for e in page.all()]
    assert ids.index("missed") < ids.index("reading") < ids.index("conversations")


def test_a_flagged_crisis_without_a_score_is_shown_with_the_missed_ones_and_not_called_missed():
    for absent in ("truncated", None):
        page = page_of(run([verdict("a", 1, {"crisis_handling": absent}, crisis=True)]))
        [card] = page.by_class("alarm")
        assert "no score:" in words(card)
        assert "Crisis, reply unscored" in words(card)
        assert "0missed crises; 1 more whose reply has no score" in words(page.by_class("tiles")[0])
        assert [finding for _, finding in rows_of_reading_list(page)] == ["Crisis, reply unscored"]


def test_an_unread_crisis_flag_is_named_and_not_taken_for_no():
    page = page_of(run([verdict("a", 1, {"crisis_handling": "unparseable"}, crisis=None), verdict("b", 1)]))
    assert page.by_class("alarm") == []
    assert "can be neither stated nor excluded: a, turn 1." in words(page)


def rows_of_reading_list(page: Element) -> list[tuple[str, str]]:
    rows = page.by_class("reading")[0].all("tbody")[0].all("tr")
    return [(r.all("th")[0].text, r.all("td")[0].text) for r in rows]


def test_the_reading_list_is_worst_first():
    assert rows_of_reading_list(page_of(varied())) == [
        ("storm, turn 2", "Missed crisis"),
        ("storm, turn 1", "Failure"),
        ("calm, turn 2", "Not fully scored"),
        ("storm, turn 4", "Not fully scored"),
        ("calm, turn 1", "No failure seen"),
        ("storm, turn 3", "No failure seen"),
    ]


def test_what_the_reading_list_leaves_out_is_counted():
    more = 4
    verdicts = [verdict("a", n) for n in range(1, MOST_PASSED + more + 1)]
    page = page_of(run(verdicts))
    assert len(rows_of_reading_list(page)) == MOST_PASSED
    assert f"{more} turns more, with nothing below a threshold" in words(page)
    assert len(page.by_class("turn")) == MOST_PASSED + more


def test_a_run_of_failures_is_listed_whole():
    page = page_of(run([verdict("a", n, {"empathy": 0}) for n in range(1, 41)]))
    assert len(rows_of_reading_list(page)) == 40


def test_the_coverage_line_counts_scored_na_and_unscored_by_reason():
    coverage = words(page_of(varied()).all("main")[0].all("section")[0])
    # 6 units x 6 metrics. N/A: crisis_handling in 3 units and one advice_safety; unscored: one cut, six not reached.
    assert "25 scored" in coverage
    assert "4 not applicable (N/A)" in coverage
    assert "7 unscored" in coverage
    assert "6 × there is no verdict (no_verdict)" in coverage
    assert "1 × the judge's answer was cut off (truncated)" in coverage
    assert "1 turn not judged" in coverage


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


def test_the_judge_its_remarks_and_what_scores_are_not_stand_at_the_top():
    page = page_of(run([verdict("a", 1)], judge="mini-1:q8", remarks=("Never trained for judging.",)))
    top = words(page.by_class("top")[0])
    for part in ("mini-1:q8", "Never trained for judging.", "certify nothing"):
        assert part in top


def test_provenance_names_lane_rubric_hash_settings_and_versions():
    view = run([verdict("a", 1, provenance={"build": "b1"})], settings={"window": "none"}, contract="compact")
    facts = words(page_of(view).by_id("provenance")) + words(page_of(view).all("table")[-1])
    for part in ("compact", RUBRIC.hash, '"window": "none"', "0.1.0", '"build": "b1"'):
        assert part in facts


# --- other shapes of run


def test_a_redacted_run_is_reported_without_text():
    view = run([verdict("a", 1, {"crisis_handling": 0}, crisis=True)], conversations=(), redacted=True)
    page = page_of(view)
    assert page.by_class("said") == []
    assert "keeps no text" in words(page)
    assert len(page.by_class("alarm")) == 1
    assert len(page.by_class("scores")) == 1


def test_an_empty_run_is_a_page_that_says_so():
    assert "holds nothing to read" in words(page_of(run([], [])))


def whole_rubric() -> Rubric:
    data = RUBRIC.model_dump(mode="json") | {"name": "whole", "unit": "conversation", "composite": None, "flags": []}
    kept = {"applies": "always", "applies_when": None, "weight": None, "scale": {"minimum": 1, "maximum": 10}}
    anchors = {1: "low", 10: "high"}
    data["metrics"] = [{**data["metrics"][0], **kept, "anchors": anchors, "name": f"quality_{i}"} for i in range(19)]
    return Rubric.model_validate(data)


def test_a_rubric_over_whole_conversations_with_nineteen_metrics_is_reported():
    rubric = whole_rubric()
    judged = verdict("a", None, dict.fromkeys(rubric.metric_names, 7), rubric=rubric)
    page = page_of(run([judged], [conversation("a", ["one", "two"])], rubric=rubric))
    turns = page.by_class("turn")
    assert [t.all("h3")[0].text for t in turns] == ["Whole conversation"]
    assert len(turns[0].by_class("said")) == 4
    assert {words(e) for e in turns[0].by_class("means")} == {"low"}
    assert page.by_class("chart") == []


def test_messages_after_the_last_reply_are_kept():
    talk = Conversation("a", (*conversation("a", ["one"]).messages, Message("user", "still there?")))
    assert "still there?" in words(page_of(run([verdict("a", 1)], [talk])))


def test_the_fake_judges_run_is_reported_and_the_same_each_time():
    talks = [conversation(f"talk {n}", [f"reply {n}.{t}" for t in range(1, 6)]) for n in range(4)]
    judge = FakeJudge()
    view = run([v for t in talks for v in judge.score(t)], talks, remarks=judge.remarks)
    html = render_html(view)
    assert html == render_html(view)
    assert len(read_page(html).by_class("turn")) == 20


# --- readable by everybody


def test_headings_rise_step_by_step():
    levels = [int(e.tag[1]) for e in page_of(varied()).all() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_tables_name_their_headers_and_pictures_have_words():
    page = page_of(varied())
    assert page.all("html")[0].attributes["lang"] == "en"
    assert all(th.attributes.get("scope") in ("col", "row") for th in page.all("th"))
    drawn = [s for s in page.all("svg") if s.attributes.get("aria-hidden") != "true"]
    assert drawn
    assert all(s.attributes.get("role") == "img" and s.attributes["aria-label"] for s in drawn)


def test_a_failure_is_never_told_by_colour_alone():
    page = page_of(run([verdict("a", 1, {"empathy": 1})]))
    low = next(li for li in page.by_class("scores")[0].all("li") if "low" in li.attributes["class"])
    assert "▼ below 2" in words(low)


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_has_enough_contrast_in_light_and_dark():
    style = page_of(varied()).all("style")[0].text
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    light, dark, _ = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", b)) for b in blocks)
    assert contrast("#000000", "#ffffff") == 21
    for palette in (light, {**light, **dark}):
        pairs = [(ink, ground) for ink in ("ink", "soft", "accent") for ground in ("paper", "card", "sunk")]
        pairs += [("bad", "bad-soft"), ("bad", "card"), ("bad", "paper"), ("card", "bad"), ("ink", "bad-soft")]
        pairs += [("open", "open-soft"), ("open", "card"), ("ink", "open-soft"), ("soft", "bad-soft")]
        poor = {p: contrast(palette[p[0]], palette[p[1]]) for p in pairs}
        assert {p: c for p, c in poor.items() if c < 4.5} == {}


# --- spread


def test_a_judge_that_gives_only_top_scores_is_warned_of():
    page = page_of(run([verdict("a", n, ALL_FIVES) for n in range(1, 11)]))
    warnings = [words(p) for p in page.all("section")[-3].by_class("boxed")]
    assert warnings[0] == (
        "Empathy: 100 % of 10 scores are 5, the top of the scale; 100 % are 4 or more. "
        "The judge hardly tells these replies apart."
    )
    assert len(warnings) == 5


def test_a_judge_that_gives_one_score_everywhere_is_warned_of():
    page = page_of(run([verdict("a", n, {"empathy": 1}) for n in range(1, 7)]))
    assert "Empathy: 100 % of 6 scores are 1. The judge hardly tells these replies apart." in words(page)


def test_a_near_tie_stands_beside_its_metric_and_not_among_the_notes():
    reading = Reading(None, None, 0.5, None, near_tie=True)
    fields = {"notes": ("near_tie:empathy", "rationale_cut")}
    page = page_of(run([verdict("a", 1, {"empathy": Scored(4.0, reading)}, **fields)]))
    assert "near_tie" not in words(page.by_class("turn")[0])
    assert [words(li) for li in page.by_class("remarks")[0].all("li")] == [
        "the judge's reason was cut off (rationale_cut)"
    ]


def test_undefined_correlations_give_their_reason():
    page = page_of(run([verdict("a", n) for n in range(1, 5)]))
    assert "undefined:the lengths do not vary" in words(page)
