"""The parts of the map on tables small enough to work by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.competence import CompetenceMap, competence_map
from aipsy_judge.competence.families import base_name, family_of, own_generators
from aipsy_judge.competence.panel_scores import panel_scores
from aipsy_judge.composite import composite
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import Ratings, make_yardstick, ratings_from_rows
from aipsy_judge.ratings.overall import OVERALL
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import NotApplicable, Score, Scored, Unscored

RUBRIC = load_rubric()
POINT = Bootstrap(resamples=0)


def rows(scores: dict[str, dict[str, float | None]], *, metric: str = "m", **about: Any) -> list[dict[str, Any]]:
    """{item: {rater: score}}; None: unscored."""
    return [
        {
            "item_id": item,
            "rater": rater,
            "rater_kind": "expert" if rater == "expert" else "judge",
            "metric": metric,
            "score": score,
            "status": "unscored" if score is None else "scored",
            "scale_min": 0,
            "scale_max": 4,
            **about,
        }
        for item, by_rater in scores.items()
        for rater, score in by_rater.items()
    ]


def draw(ratings: Ratings, **options: Any) -> CompetenceMap:
    return competence_map(ratings, make_yardstick(ratings), bootstrap=POINT, **options)


def own_rows() -> list[dict[str, Any]]:
    """Mean scores of judge x generator:  gpt  claude  other
    gpt                                    4     2      3
    claude                                 2     2      2"""
    found = []
    for generator, gpt, claude in (("gpt", 4, 2), ("claude", 2, 2), ("other", 3, 2)):
        found += rows({f"{generator}{n}": {"gpt": gpt, "claude": claude} for n in range(2)}, generator=generator)
    return found


def test_the_three_readings_of_self_preference_by_hand() -> None:
    own = draw(ratings_from_rows(own_rows())).self_preference[0]
    assert own.judge == "gpt"
    assert own.own_generator.value == pytest.approx(4 - (2 + 3) / 2)
    assert own.own_judge.value == pytest.approx(4 - 2)
    assert own.premium.value == pytest.approx((4 - 2) - ((2 - 2) + (3 - 2)) / 2)
    assert own.premium.beside == {"own_items": 2, "other_items": 4}


def test_with_two_judges_the_premiums_cannot_be_told_apart_unless_a_third_party_wrote_too() -> None:
    """gpt - claude is 2, 0 and 1 on gpt's, claude's and the third's replies: leniency 1, premiums 1 and 1."""
    both = draw(ratings_from_rows(own_rows())).self_preference
    assert [own.cleared.value for own in both] == pytest.approx([1, 1])
    alone = draw(ratings_from_rows([r for r in own_rows() if r["generator"] != "other"])).self_preference
    assert [own.cleared.value for own in alone] == [None, None]
    assert alone[0].premium.value == pytest.approx(2)  # both premiums together
    assert alone[0].tested is alone[0].premium


def test_items_that_one_judge_lacks_leave_the_comparison_for_all() -> None:
    table = [*own_rows(), *rows({"extra": {"gpt": 0, "claude": None}}, generator="gpt")]
    own = draw(ratings_from_rows(table)).self_preference[0]
    assert own.own_generator.value == pytest.approx(1.5)
    assert own.premium.dropped == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"generator": None}, "no item has a known generator"),
        ({"generator": "other"}, "none of the replies is by this judge"),
        ({"generator": "gpt"}, "all replies are by its own family"),
    ],
)
def test_self_preference_without_own_or_others_replies_says_why(change: dict[str, Any], reason: str) -> None:
    own = draw(ratings_from_rows([{**r, **change} for r in own_rows()])).self_preference[0]
    assert own.premium.reason is not None
    assert reason in own.premium.reason


def test_a_sibling_of_the_judge_is_neither_own_nor_foreign() -> None:
    table = [*own_rows(), *rows({"s": {"gpt": 0, "claude": 0}}, generator="gpt-mini")]
    own = draw(ratings_from_rows(table)).self_preference[0]
    assert own.own is not None
    assert (own.own.generators, own.own.siblings, own.own.how) == (("gpt",), ("gpt-mini",), "name")
    assert own.own_generator.value == pytest.approx(1.5)


def test_own_generators_may_be_told_and_must_exist() -> None:
    ratings = ratings_from_rows(own_rows())
    assert own_generators(ratings, ["gpt"], {"gpt": ["other"]})["gpt"].generators == ("other",)
    with pytest.raises(RatingsError, match="no judge or generator is called nobody"):
        own_generators(ratings, ["gpt"], {"gpt": ["nobody"]})


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("openai/gpt-5.4-mini-2026-03-17", "openai"),
        ("o4-mini", "openai"),
        ("DeepSeek-Qwen-7B", "deepseek"),
        ("gemini-2.5-flash-preview-04-17", "google"),
        ("original human responder", "human"),
        ("coach-app", None),
        ("o40", None),
    ],
)
def test_families_are_told_by_the_beginning_of_a_name(name: str, family: str | None) -> None:
    assert family_of(name) == family


def test_a_snapshot_is_the_same_model() -> None:
    assert base_name("claude-3-7-sonnet-20250219") == base_name("anthropic/Claude-3-7-Sonnet")
    assert base_name("gpt-4o") != base_name("gpt-4o-mini")


def test_blindness_by_hand() -> None:
    # Below 2 is a failure. a: all three · b: j and k · c: only k · d: only l · e: nobody
    judged = {
        "a": {"j": 0, "k": 0, "l": 0},
        "b": {"j": 1, "k": 1, "l": 3},
        "c": {"j": 3, "k": 1, "l": 3},
        "d": {"j": 3, "k": 3, "l": 1},
        "e": {"j": 3, "k": 3, "l": 3},
    }
    blind = {b.judge: b for b in draw(ratings_from_rows(rows(judged))).blindness if b.metric is None}
    # j: others mark a b c d, j marks a b. k: others mark a b d, k marks a b. l: others mark a b c, l marks a.
    assert [blind[j].loose.value for j in "jkl"] == pytest.approx([2 / 4, 2 / 3, 1 / 3])
    # every other judge marks: for j only a; for k a; for l a and b
    assert [(blind[j].strict.value, blind[j].strict.n) for j in "jkl"] == [(1, 1), (1, 1), (0.5, 2)]
    assert blind["l"].gap.value == pytest.approx(1 / 3 - (2 / 4 + 2 / 3) / 2)


def test_an_item_the_judge_could_not_score_is_no_blindness() -> None:
    judged = {"a": {"j": None, "k": 0, "l": 0}, "b": {"j": 0, "k": 0, "l": 0}}
    blind = next(b for b in draw(ratings_from_rows(rows(judged))).blindness if b.judge == "j")
    assert (blind.loose.value, blind.loose.n, blind.loose.dropped) == (1, 1, 1)


def test_leniency_by_family_and_what_is_extra_by_hand() -> None:
    table = []
    for family, judge in (("a", 4), ("b", 2), ("c", 2), ("d", 3)):
        table += rows({f"{family}{n}": {"expert": 2, "j": judge} for n in range(2)}, generator_family=family)
    found = {f.family: f for f in draw(ratings_from_rows(table)).families if f.metric == OVERALL}
    assert [found[f].bias.value for f in "abcd"] == [2, 0, 0, 1]
    assert [found[f].extra.value for f in "abcd"] == [2, -1, -1, 1]  # against the median of the other three


def test_use_of_the_scale_by_hand() -> None:
    judged = {f"i{n}": {"j": s, "expert": 3} for n, s in enumerate([4, 4, 4, 0])}
    use = draw(ratings_from_rows(rows(judged))).spread[0]
    assert use.top.value == 0.75
    assert use.excess.value == 0.75
    assert use.entropy.value == pytest.approx(0.8112781, abs=1e-6)  # -(3/4 log2 3/4 + 1/4 log2 1/4)
    assert use.most == pytest.approx(np.log2(5))
    assert use.counts == ((0, 1), (1, 0), (2, 0), (3, 0), (4, 3))


def test_missing_scores_are_counted_where_the_other_raters_see_a_crisis() -> None:
    judged: dict[str, dict[str, float | None]] = {
        "a": {"j": None, "k": 3},
        "b": {"j": 3, "k": 3},
        "c": {"j": 3, "k": 3},
        "d": {"j": 3, "k": 3},
    }
    flags = {"a": {"j": None, "k": 1}, "b": {"j": 1, "k": 1}, "c": {"j": 1, "k": 0}, "d": {"j": 0, "k": 0}}
    table = rows(judged) + rows(flags, metric="crisis", scale_max=1)
    silent = next(m for m in draw(ratings_from_rows(table)).missing if (m.judge, m.by) == ("j", "crisis"))
    assert silent.all.value == pytest.approx(1 / 4)
    assert (silent.inside.value, silent.inside.n) == (0.5, 2)  # a and b by k; j's own flag on c says nothing of c
    assert (silent.outside.value, silent.outside.n) == (0, 2)
    assert silent.excess.value == pytest.approx(0.5)


def test_without_an_expert_the_map_says_so_and_families_are_held_against_the_other_judges() -> None:
    table = []
    for family, j in (("a", 4), ("b", 2)):
        judged = {f"{family}{n}": {"j": j, "k": 2, "l": 2} for n in range(2)}
        table += rows(judged, generator_family=family)
    found = draw(ratings_from_rows(table))
    assert found.reference is None
    assert found.against == ()
    assert found.family_reference == "the other judges' mean"
    lenient = next(f for f in found.families if (f.judge, f.family, f.metric) == ("j", "a", OVERALL))
    assert lenient.bias.value == 2
    assert found.laundered.missed.reason == "nobody is the reference"


def test_a_table_without_judges_has_no_map() -> None:
    with pytest.raises(RatingsError, match="no judge among the raters: expert"):
        draw(ratings_from_rows(rows({"a": {"expert": 3}})))


def test_several_experts_are_held_against_each_other_too() -> None:
    table = rows({f"i{n}": {"expert": n % 4, "j": n % 3} for n in range(9)})
    table += [{**r, "rater": "expert 2", "score": 3} for r in table if r["rater"] == "expert"]
    found = draw(ratings_from_rows(table))
    assert found.reference == "mean of 2 experts"
    assert [p.raters for p in found.experts] == [("expert", "expert 2")]


def test_a_single_judge_without_an_expert_has_a_map_of_reasons() -> None:
    found = draw(ratings_from_rows(rows({f"i{n}": {"j": n % 4} for n in range(8)}, generator="gpt-a")))
    assert found.against == found.between == found.panels == found.findings == ()
    assert found.blindness[0].loose.reason == "no other judge marks a failure"
    assert found.self_preference[0].premium.reason == "one judge: there is nobody to compare it with"
    assert found.families[0].bias.reason == "no reply of this family was scored by both"


cells = st.one_of(st.integers(0, 5).map(float), st.sampled_from(["na", "unscored", "absent"]))


@given(st.lists(cells, min_size=6, max_size=6))
def test_composite_and_failure_of_the_panel_are_those_of_a_verdict(given_cells: list[float | str]) -> None:
    """`absent` for this judge alone: somebody else rated everything, so a gap is a missing score."""
    scores: dict[str, Score] = {}
    table = []
    for metric, cell in zip(RUBRIC.metrics, given_cells, strict=True):
        row = {"item_id": "a", "metric": metric.name, "scale_min": 0, "scale_max": 5}
        table.append({**row, "rater": "k", "score": 3, "status": "scored"})
        if isinstance(cell, float):
            scores[metric.name] = Scored(cell)
            table.append({**row, "rater": "j", "score": cell, "status": "scored"})
        elif cell == "na":
            scores[metric.name] = NotApplicable()
            table.append({**row, "rater": "j", "score": None, "status": "na"})
        else:
            scores[metric.name] = Unscored("missing")
            if cell == "unscored":
                table.append({**row, "rater": "j", "score": None, "status": "unscored"})
    table.append({"item_id": "b", "metric": "empathy", "rater": "j", "score": 3, "scale_min": 0, "scale_max": 5})
    ratings = ratings_from_rows(table, kinds={"j": "judge", "k": "judge"})
    panel = panel_scores(ratings, ["j"], (), make_yardstick(ratings, RUBRIC))
    expected = composite(RUBRIC, scores)
    assert panel.overall[0, 0] == pytest.approx(expected.value if expected.value is not None else np.nan, nan_ok=True)
    # Where nothing at all is scored, a verdict with N/A throughout cannot fail; a panel calls it unknown.
    known = expected.failure if any(isinstance(s, Scored) for s in scores.values()) else None
    assert panel.failing[0, 0] == pytest.approx(np.nan if known is None else float(known), nan_ok=True)
