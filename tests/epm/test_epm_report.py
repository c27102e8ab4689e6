"""The pictures and the page: well formed, nothing from elsewhere, nothing hidden, every case shown."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from aipsy_judge.epm.cases import Case, UnscoredCase, evaluate_cases
from aipsy_judge.epm.compare import compare
from aipsy_judge.epm.forms_file import parse_forms
from aipsy_judge.epm.pack import Pack, load_pack
from aipsy_judge.epm.parameters import profile
from aipsy_judge.epm.picture_heatmap import heatmap_picture
from aipsy_judge.epm.picture_path import path_picture
from aipsy_judge.epm.picture_radar import radar_picture
from aipsy_judge.epm.report import comparison_report, dialogue_report
from aipsy_judge.epm.space import Axis, Indicator, Space
from aipsy_judge.epm.svg import ticks

PACK = load_pack()
GOOD, BAD, NIL = [1, 0, 2, 0, 1, 0], [0, -1, 0, -1, 0, -1], [0] * 6
SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)


def results(*rows: dict[str, Any], space: Space = PACK.space) -> list[Case | UnscoredCase]:
    full = [
        {"model": "m", "case": str(n), "P_0": [-10, -20, -5], "levels": [GOOD] * 14} | r for n, r in enumerate(rows)
    ]
    return evaluate_cases([parse_forms(r, space, where="f") for r in full], space, profile())


def scored(row: dict[str, Any]) -> Case:
    (found,) = results(row)
    assert isinstance(found, Case)
    return found


def drawn(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in SVG.findall(page)]


KINDS = [{"levels": [GOOD] * 14}, {"levels": [BAD] * 14}, {"levels": [NIL] * 14}, {"levels": [GOOD] * 3}]


@pytest.mark.parametrize("row", KINDS)
def test_a_dialogues_page_draws_path_turns_and_radar(row: dict[str, Any]) -> None:
    page = dialogue_report(scored(row), PACK, profile())
    titles = [svg.findtext("title") or "" for svg in drawn(page)]
    assert [t.split()[0] for t in titles] == ["Path", "Energy", "Nine"]


def test_a_page_asks_for_nothing_from_elsewhere() -> None:
    page = comparison_report(compare(results(*KINDS), resamples=100), PACK, profile())
    assert "default-src 'none'" in page
    for word in ("http:", "https:", "<script", "<img", "<link", "url(", "@import"):
        assert word not in page


def test_a_name_cannot_break_out_of_the_page() -> None:
    evil = "</title><script>alert(1)</script>\u202e"
    rows = results({"case": evil, "model": evil})
    pages = [
        comparison_report(compare(rows, resamples=100), PACK, profile()),
        dialogue_report(rows[0], PACK, profile()),
    ]
    for page in pages:
        assert "<script" not in page
        assert "\u202e" not in page
        assert drawn(page)


def test_the_comparison_draws_every_kind_of_picture() -> None:
    page = comparison_report(compare(results(*KINDS), resamples=100), PACK, profile())
    titles = [svg.findtext("title") for svg in drawn(page)]
    assert titles == [
        "EPM-Q by model with 95 % intervals over cases",
        "EPM-Q by case and model",
        "Energy over turns, every dialogue",
        "Mean indices of every model",
    ]


def test_the_heatmap_has_a_cell_for_every_case_and_says_where_there_is_no_score() -> None:
    rows = results(
        {"model": "a", "case": "1"},
        {"model": "a", "case": "2", "levels": [None]},
        {"model": "a", "case": "3", "P_0": [0, 0, 0]},
        {"model": "b", "case": "1", "levels": [BAD] * 14},
    )
    texts = [t.text or "" for t in ET.fromstring(heatmap_picture(compare(rows, resamples=100))).iter("title")]
    assert sum("EPM-Q" in t and "at turn" in t for t in texts) == 2
    assert [t for t in texts if t.endswith(("no score", "undefined"))] == [
        "2, a: no score",
        "2, b: no score",
        "3, a: undefined",
        "3, b: no score",
    ]


def test_a_page_of_an_unscored_dialogue_has_no_figure() -> None:
    (found,) = results({"levels": [GOOD, None]})
    page = dialogue_report(found, PACK, profile())
    assert "Unscored" in page
    assert "turn 2: C.prog could not be read" in page
    assert drawn(page) == []


def test_a_comparison_without_a_score_still_makes_a_page() -> None:
    page = comparison_report(compare(results({"levels": [None]}), resamples=100), PACK, profile())
    assert "Unscored, in no figure: 1 of 1 dialogue" in page


def test_undefined_indices_leave_a_gap_in_the_radar() -> None:
    case = scored({"P_0": [0, 0, 0]})
    radar = ET.fromstring(radar_picture(case.indices, "r"))
    outline = next(e for e in radar.iter("polygon"))
    assert outline.get("class") == "area open"
    assert len(outline.get("points", "").split()) == 6
    assert [t.text for t in radar.iter("text")].count("–") == 3


@pytest.mark.parametrize(("axes", "squares"), [(1, 0), (2, 1), (3, 3), (4, 6)])
def test_a_path_is_drawn_along_each_pair_of_axes(axes: int, squares: int) -> None:
    made = tuple(Axis(k, k, (Indicator(f"{k}1", -3.0),), {0: 0, 1: 1}, {0: 0, -1: -2}) for k in "WXYZ"[:axes])
    space = Space(made, top_level=3)
    row = {"P_0": [-9] * axes, "levels": [[1, 0] * axes] * 12}
    (case,) = results(row, space=space)
    assert isinstance(case, Case)
    picture = path_picture(case, space, 1.0)
    assert (picture.count('class="zone"'), bool(picture)) == (squares, squares > 0)
    pack = Pack("other", "1", "0" * 64, space, "a", "b")
    assert len(drawn(dialogue_report(case, pack, profile()))) == 2 + (squares > 0)


def test_every_point_of_the_path_lies_within_its_square() -> None:
    case = scored({"levels": [BAD] * 12 + [GOOD] * 30})
    svg = ET.fromstring(path_picture(case, PACK.space, 1.0))
    width, height = map(float, svg.get("viewBox", "").split()[2:])
    dots = [(float(c.get("cx", "nan")), float(c.get("cy", "nan"))) for c in svg.iter("circle")]
    assert len(dots) >= 3 * len(case.path.gain)
    assert all(0 <= x <= width and 0 <= y <= height for x, y in dots)


@pytest.mark.parametrize(("low", "high"), [(-23.0, 4.0), (0.0, 1.0), (-1.2, 97.0), (0.0, 0.03)])
def test_ticks_are_few_and_round_and_within(low: float, high: float) -> None:
    found = ticks(low, high, 6)
    assert 3 <= len(found) <= 7
    assert min(found) >= low - 1e-9
    assert max(found) <= high + 1e-9
    assert np.allclose(np.diff(found), found[1] - found[0])
