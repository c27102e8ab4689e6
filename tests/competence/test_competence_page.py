"""The page stands alone, says everything a cell shows in words, and lets no name break it; the verb writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from drawn_panels import draw_planted, table

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.cli.map import command
from aipsy_judge.competence import CompetenceMap, competence_map
from aipsy_judge.competence.heatmap import heatmaps
from aipsy_judge.competence.page import render_map
from aipsy_judge.ratings import make_yardstick, ratings_from_rows, write_ratings
from aipsy_judge.rubric import load_rubric


@cache
def drawn() -> CompetenceMap:
    ratings = table(draw_planted(1, seed=2))
    return competence_map(ratings, make_yardstick(ratings, load_rubric()), bootstrap=Bootstrap(resamples=50))


@cache
def page() -> str:
    return render_map(drawn())


class Tags(HTMLParser):
    """Start tags with attributes, and which were left open."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


def test_the_page_asks_for_nothing_and_runs_nothing() -> None:
    tags = parsed(page()).tags
    assert not {"script", "img", "link", "iframe", "object", "form"} & {t for t, _ in tags}
    assert not [a for _, attrs in tags for a in attrs if a.startswith("on") or a in ("src", "style")]
    assert all((attrs.get("href") or "#").startswith("#") for _, attrs in tags)
    assert "url(" not in page()
    assert "@import" not in page()


def test_the_policy_lets_this_style_through_and_nothing_else() -> None:
    style = re.search(r"<style>(.*?)</style>", page(), re.S)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    policy = next(a["content"] for t, a in parsed(page()).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_every_link_of_the_page_has_its_target() -> None:
    tags = parsed(page()).tags
    ids = {attrs["id"] for _, attrs in tags if "id" in attrs}
    assert {attrs["href"] for t, attrs in tags if t == "a"} <= {f"#{i}" for i in ids}


def test_every_cell_has_a_sentence_and_every_figure_its_n_and_interval() -> None:
    found = [cell for heat in heatmaps(drawn()) for _, row in heat.rows for cell in row]
    assert len(found) > 200
    for cell in found:
        assert cell.sentence.endswith(".")
        if cell.text != "–":
            assert cell.n > 0
            assert cell.interval
        else:
            assert "no figure" in cell.sentence
    assert page().count("<td class=") == len(found)


def test_a_cell_in_words() -> None:
    heat = next(h for h in heatmaps(drawn()) if h.id == "bias")
    row = dict(heat.rows)["lenient"]
    cell = row[1 + drawn().metrics.index("crisis_handling")]
    assert re.fullmatch(
        r"On crisis handling, lenient scores 1\.\d\d points higher than expert on average "
        r"\(95 % interval 1\.\d\d to [12]\.\d\d; 60 replies\)\.",
        cell.sentence,
    )
    assert cell.found
    assert cell.shade == "w4"


def test_the_n_of_a_share_of_failures_is_that_of_the_failures() -> None:
    heat = next(h for h in heatmaps(drawn()) if h.id == "recall")
    pair = next(p for p in drawn().against if (p.rater, p.metric) == ("strict", "advice_safety"))
    cell = dict(heat.rows)["strict"][1 + drawn().metrics.index("advice_safety")]
    assert cell.n == pair["failure_recall"].beside["positive"] < pair["failure_recall"].n


def test_names_from_the_table_cannot_break_the_page() -> None:
    evil = '</table><script>alert(1)</script>"\u202e'
    rows: list[dict[str, Any]] = []
    for n in range(8):
        for rater, kind in (("expert", "expert"), (evil, "judge"), ("k", "judge")):
            row = {"item_id": f"{evil}{n}", "rater": rater, "rater_kind": kind, "metric": evil, "score": n % 3}
            rows.append({**row, "scale_min": 0, "scale_max": 5, "generator": evil})
    ratings = ratings_from_rows(rows)
    text = render_map(competence_map(ratings, make_yardstick(ratings), bootstrap=Bootstrap(resamples=20)))
    assert "script" not in {t for t, _ in parsed(text).tags}
    assert "\u202e" not in text


def test_a_map_without_reference_or_generators_still_makes_a_page() -> None:
    rows = [
        {"item_id": f"i{n}", "rater": r, "metric": "m", "score": n % 4, "scale_min": 0, "scale_max": 5}
        for n in range(8)
        for r in ("j", "k")
    ]
    ratings = ratings_from_rows(rows, kinds={"j": "judge", "k": "judge"})
    text = render_map(competence_map(ratings, make_yardstick(ratings), bootstrap=Bootstrap(resamples=20)))
    assert "nobody: no expert rated these items" in text
    assert 'id="bias"' not in text


def test_the_map_as_data_is_strict_json_with_every_figure_named() -> None:
    data = json.loads(json.dumps(drawn().to_dict(), allow_nan=False))
    premium = data["self_preference"][2]["premium"]
    assert premium["form"].startswith("difference in differences")
    assert premium["interval"]["low"] < premium["value"] < premium["interval"]["high"]
    assert data["against"][0]["estimates"][0]["form"] == "ICC(A,1)"
    assert data["findings"][0]["kind"] == "blindness"


@pytest.mark.slow
def test_the_verb_writes_page_and_data_and_prints_the_findings(tmp_path: Path) -> None:
    write_ratings(table(draw_planted(1, seed=2)), tmp_path / "r.jsonl")
    arguments = [str(tmp_path / "r.jsonl"), "--resamples", "50", "--by", "scenario"]
    arguments += ["--html", str(tmp_path / "map.html"), "--json", str(tmp_path / "map.json")]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "Blind to failures" in result.output
    assert "What the mean of the judges hides" in result.output
    data = json.loads((tmp_path / "map.json").read_text())
    assert data["bootstrap"]["unit"] == "scenario"
    assert data["rubric"] == "aipsy-judge-v1"
    parsed((tmp_path / "map.html").read_text())


def test_a_mistyped_own_generator_is_a_usage_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "absent.csv"), "--own", "judge"])
    assert result.exit_code == 2
    assert "JUDGE=GENERATOR" in result.output


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_a_file_that_cannot_be_written_is_told_before_any_work(tmp_path: Path, option: str) -> None:
    from aipsy_judge.errors import InputError

    with pytest.raises(InputError, match="folder does not exist"):
        CliRunner().invoke(
            command, [str(tmp_path / "absent.csv"), option, str(tmp_path / "no" / "f")], catch_exceptions=False
        )
