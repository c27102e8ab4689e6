"""The HTML report refers to nothing outside itself, runs nothing, and takes any text for text."""

import base64
import hashlib
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from report_page import page_of, read_page, words
from run_builder import conversation, run, verdict
from varied_run import varied

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.report.html import render_html
from aipsy_judge.runs import RunView
from aipsy_judge.verdict import Reading, Scored, Unscored

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
