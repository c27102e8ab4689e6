"""What a judge's card says of its figures: the very figures, and the judge as its manifest makes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from held_out_setup import RUBRIC, held, make_recipe

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.verdict import Flag, NotApplicable, Reading, Score, Scored, Verdict
from bench.held_out import HeldItem
from bench.held_out_figures import Ground
from bench.held_out_judging import Judged, Spent
from bench.held_out_said import held_by_target
from bench.held_out_shipped import Shipped, as_shipped
from bench.human import main
from quantize.description import Description

FLAG = "crisis_detected"


def scored(value: float, low: float = 0.0) -> Scored:
    """Read with `low` on 1, which fails, and the rest on 5."""
    told = {"1": low, "5": 1 - low}
    return Scored(value, Reading(0.0, 5 - 4 * low, max(told.values()), 1.0, told))


def verdict(crisis: float = 0.0, **scores: Score) -> Verdict:
    whole: dict[str, Score] = dict.fromkeys(RUBRIC.metric_names, NotApplicable())
    flag = Flag(crisis >= 0.5, probability=crisis)
    return Verdict("x", 1, "", {**whole, **scores}, {FLAG: flag})


def shipped(said: Mapping[str, Verdict], items: list[HeldItem], **settings: Any) -> Shipped | None:
    judged = Judged({"judge": "j"}, settings, (), said, Spent(len(items), 1.0, 1.0, 1))
    ground = Ground(np.arange(len(items)), len(items), Bootstrap(resamples=0))
    return as_shipped(judged, items, held_by_target(items, RUBRIC, ""), RUBRIC, ground)


SAID = {
    "said": verdict(empathy=scored(1.0, 0.9)),
    "marked": verdict(empathy=scored(5.0, 0.4)),
    "held back": verdict(empathy=scored(5.0), tone_consistency=scored(1.0, 0.9)),
    "wrongly said": verdict(empathy=scored(1.0, 0.8)),
    "good": verdict(empathy=scored(5.0)),
    "crisis": verdict(0.9, empathy=scored(5.0)),
    "crisis, marked": verdict(0.3, empathy=scored(5.0)),
    "crisis, missed": verdict(0.1, empathy=scored(5.0)),
}
FAILING = {"said", "marked", "held back"}
ITEMS = [
    held(name, dict.fromkeys(RUBRIC.metric_names) | {"empathy": 1.0 if name in FAILING else 5.0}, "crisis" in name)
    for name in SAID
]
POINTS = {"empathy": {"confidence": None, "p_fail": 0.3}, FLAG: {"confidence": None, "p_fail": 0.2}}


def test_what_is_held_back_is_not_said_and_what_is_marked_counts_as_found() -> None:
    found = shipped(SAID, ITEMS, operating_points=POINTS, not_validated=["tone_consistency"])
    assert found is not None
    assert found.held_back == ("tone_consistency",)
    # of three failing one is said and one marked; of two said one is right; of the five others one is said, one marked
    # for its crisis
    assert {k: e.value for k, e in found.failing.items()} == pytest.approx(
        {"recall": 1 / 3, "precision": 1 / 2, "found": 2 / 3, "others": 2 / 5}
    )
    # of three crises one is set, one marked; of eight replies these two
    assert {k: e.value for k, e in found.flags[FLAG].items()} == pytest.approx(
        {"recall": 1 / 3, "precision": 1, "found": 2 / 3, "all": 2 / 8}
    )


def test_what_is_not_held_back_is_said() -> None:
    found = shipped(SAID, ITEMS, operating_points=POINTS)
    assert found is not None
    assert found.failing["recall"].value == pytest.approx(2 / 3)


def test_a_flag_that_is_held_back_finds_nothing() -> None:
    found = shipped(SAID, ITEMS, operating_points=POINTS, not_validated=[FLAG])
    assert found is not None
    assert found.flags[FLAG]["recall"].value == 0
    assert found.flags[FLAG]["found"].value == 0
    assert found.flags[FLAG]["precision"].value is None


def test_without_a_manifest_it_is_as_it_was_measured() -> None:
    assert shipped(SAID, ITEMS) is None


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """The card's block, and all figures, of a judge that reads nothing but chance."""
    folder = tmp_path_factory.mktemp("card")
    card, figures = folder / "card.yaml", folder / "figures.json"
    words = ["--judge", "fake", "--rival", "fake", "--recipe", str(make_recipe(folder)), "--resamples", "50"]
    done = CliRunner().invoke(main, [*words, "--card", str(card), "--json", str(figures)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return yaml.safe_load(card.read_text()), json.loads(figures.read_text())


def test_the_block_is_one_of_a_description(written: tuple[dict[str, Any], dict[str, Any]]) -> None:
    block, figures = written
    told = {"name": "j", "about": "a judge", "model": "m.gguf", "base": {"name": "b", "licence": "MIT"}}
    read = Description(**told, licence="MIT", contract="compact", **block)
    assert dict(read.not_validated) == figures["not_validated"]
    assert len(read.figures) == 1 + len(RUBRIC.metric_names) + 1 + 1 + 1


def test_every_sentence_tells_the_figures_that_were_measured(
    written: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    block, figures = written
    own = figures["figures"]["target"]["fake"]
    by_name = {line.partition(":")[0]: line for line in block["figures"]}
    empathy = {k: e["value"] for k, e in own["empathy"]["expected"].items()}
    line = by_name["empathy"]
    assert f"ICC(A,1) {empathy['icc']:.2f}" in line
    assert f"recall {empathy['failure_recall']:.2f}" in line
    assert f"AUC {own['empathy']['p_fail']['failure_auc']['value']:.2f}" in line
    bag = next(d for d in figures["differences"] if d["metric"] == "empathy" and d["rival"] == "bag of words")
    assert f"on the {bag['n']} that both tell {bag['mine']:.2f}, bag of words {bag['theirs']:.2f}" in line
    assert f"{figures['items']} replies of {figures['groups']} conversations" in by_name["All"]
    assert "recall – of 0" in by_name[FLAG]
