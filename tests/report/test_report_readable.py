"""The HTML report is readable by everybody: headings, links, words for pictures, nothing by colour alone, contrast."""

import re
from itertools import pairwise

from report_page import page_of, words
from run_builder import run, verdict
from varied_run import varied


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_links_lead_somewhere_and_ids_are_unique():
    page = page_of(varied())
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    assert {a.attributes["href"].removeprefix("#") for a in page.all("a")} <= set(ids)
    labels = [e.attributes["aria-labelledby"] for e in page.all() if "aria-labelledby" in e.attributes]
    assert set(labels) <= set(ids)


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
