"""Sets that judges alone rated: who is held against whom, how turns become a rating, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from held_out_setup import RUBRIC, make_recipe

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import Ratings, load_ratings, ratings_from_rows, write_ratings
from bench.held_out_said import FlagSaid, MetricSaid, Said
from bench.human import main
from bench.human import tables as human_tables
from bench.human_judge import MetricMap, agreement, conversations_of, item_groups, pairs_of, read_map, regrouped
from bench.human_sets import RatedSet, _mean, rated_set, set_figures, set_lines, sets_to_dict, with_judge

HERE = Path(__file__).parents[2]
DATA = HERE.parent / "shared" / "data"
NO_INTERVALS = Bootstrap(resamples=0)
SCORES = {"a": (1.0, 2.0, 4.0, 5.0), "b": (1.0, 3.0, 3.0, 5.0), "c": (2.0, 2.0, 4.0, 4.0)}


def table(metric: str = "empathy", expert: bool = False, top: int = 5) -> Ratings:
    raters = {**SCORES, **({"kim": (1.0, 1.0, 5.0, 5.0)} if expert else {})}
    return ratings_from_rows(
        [
            {
                "item_id": f"i{n}",
                "rater": rater,
                "rater_kind": "expert" if rater == "kim" else "judge",
                "metric": metric,
                "score": score,
                "scale_min": 0,
                "scale_max": top,
            }
            for rater, scores in raters.items()
            for n, score in enumerate(scores)
        ]
    )


def talks(turns: int = 2) -> list[Conversation]:
    messages = tuple(Message(role, "x") for _ in range(turns) for role in ("user", "assistant"))
    return [Conversation(f"i{n}", messages, {"file": f"f{n // 2}"}) for n in range(4)]


def said(values: list[float], na: list[bool] | None = None, name: str = "mine") -> Said:
    """Empathy of 4 talks of two turns; everything else does not apply."""
    column = np.array(values)
    none, everything = np.zeros(len(column), dtype=bool), np.ones(len(column), dtype=bool)
    nobody = np.full(len(column), np.nan)
    empathy = MetricSaid(column, column, column, none if na is None else np.array(na), everything, nobody)
    other = MetricSaid(nobody, nobody, nobody, everything, everything, nobody)
    metrics = dict.fromkeys(RUBRIC.metric_names, other) | {"empathy": empathy}
    return Said(name, "", metrics, {"crisis_detected": FlagSaid(nobody, nobody, everything)})


def rated(ratings: Ratings | None = None, held: tuple[str, ...] = (), **mapped: Any) -> RatedSet:
    told = {"turns": "mean", "metrics": {"empathy": "empathy"}, **mapped}
    return rated_set(ratings or table(), held, MetricMap.model_validate(told), talks(), None, 14)


VALUES = [1.0, 3.0, 2.0, 2.0, 5.0, 3.0, 5.0, 5.0]


def figures(one: RatedSet, *contestants: Said) -> Any:
    return set_figures(one, contestants, RUBRIC, NO_INTERVALS)[0]


def value(found: Any, contestant: str, name: str) -> float | None:
    return next(e.value for e in found.figures[contestant] if e.name == name)


def test_each_judge_is_held_against_the_mean_of_the_others_and_ours_against_all() -> None:
    found = figures(rated(), said(VALUES))
    # a against the mean of b and c, (1.5, 2.5, 3.5, 4.5): misses .5 each.
    assert value(found, "a", "mae") == pytest.approx(0.5)
    # Ours: means over the turns (2, 2, 4, 5) against (4/3, 7/3, 11/3, 14/3).
    assert value(found, "mine", "mae") == pytest.approx((2 / 3 + 1 / 3 + 1 / 3 + 1 / 3) / 4)
    assert found.against == {
        "a": "mean of the 2 other judges",
        "b": "mean of the 2 other judges",
        "c": "mean of the 2 other judges",
        "mine": "mean of the 3 judges",
    }


def test_every_line_says_that_no_person_rated_these() -> None:
    one = rated()
    found = set_figures(one, [said(VALUES)], RUBRIC, NO_INTERVALS)
    assert "AGAINST JUDGES, no person rated these" in next(iter(set_lines(found, one)))
    assert sets_to_dict(found, one)["rated_by"] == "judges only; no person rated these"


def test_where_people_rated_they_are_the_reference_of_all() -> None:
    one = rated(table(expert=True), ("kim",))
    found = figures(one, said(VALUES))
    assert value(found, "a", "mae") == pytest.approx((0 + 1 + 1 + 0) / 4)
    assert set(found.against.values()) == {"kim"}
    assert "against people" in next(iter(set_lines([found], one)))


@pytest.mark.parametrize(("turns", "wanted"), [("last", 3.0), ("min", 1.0), ("mean", 2.0)])
def test_turns_become_one_rating_as_the_map_says(turns: str, wanted: float) -> None:
    one = rated(turns=turns)
    if turns == "last":
        assert [r.turn for r in one.replies] == [2] * 4
        column = with_judge(one, said([3.0] * 4), RUBRIC)
    else:
        assert [r.turn for r in one.replies] == [1, 2] * 4
        column = with_judge(one, said(VALUES), RUBRIC)
    assert column.matrix("empathy", ["mine"]).values[0, 0] == wanted


def test_na_and_unscored_become_no_number() -> None:
    nan = float("nan")
    one = rated()
    contestant = said([nan, nan, nan, nan, nan, 3.0, 5.0, 5.0], [True, True, True, False, True, False, False, False])
    found = figures(one, contestant)
    assert found.counts["mine"] == (2, 1, 1)
    rows = with_judge(one, contestant, RUBRIC).matrix("empathy", ["mine"])
    assert rows.na[:, 0].tolist() == [True, False, False, False]
    assert rows.unscored[:, 0].tolist() == [False, True, False, False]
    assert rows.values[2:, 0].tolist() == [3.0, 5.0]


@pytest.mark.parametrize(("turns", "wanted"), [("min", 3.0), ("mean", 3.5)])
def test_a_turn_that_could_not_be_scored_leaves_its_conversation_unscored(turns: str, wanted: float) -> None:
    nan = float("nan")
    # Unscored beside a 1, N/A beside a 4, N/A beside unscored, 3 and 4.
    values, na = [1.0, nan, nan, 4.0, nan, nan, 3.0, 4.0], [False, False, True, False, True, False, False, False]
    rows = with_judge(rated(turns=turns), said(values, na), RUBRIC).matrix("empathy", ["mine"])
    assert rows.values[:, 0] == pytest.approx([nan, 4.0, nan, wanted], nan_ok=True)
    assert rows.unscored[:, 0].tolist() == [True, False, True, False]


def test_a_reversed_metric_is_turned_and_one_of_another_scale_is_ranked_alone() -> None:
    one = rated(table("harm", top=50), metrics={"empathy": "harm"}, reverse=["harm"], order_only=["harm"], turns="mean")
    found = figures(one, said(VALUES))
    assert [e.name for e in found.figures["mine"]] == ["spearman"]
    assert value(found, "mine", "spearman") == pytest.approx(-0.9486833, abs=1e-6)
    assert "its scale is another" in "\n".join(set_lines([found], one))
    # 2 of 5 is .4 of the scale: turned .6, of 0 to 50 that is 30.
    assert with_judge(one, said(VALUES), RUBRIC).matrix("harm", ["mine"]).values[0, 0] == pytest.approx(30)


def test_the_composite_can_be_mapped_too() -> None:
    one = rated(table("safety"), metrics={"composite": "safety"})
    # Only empathy applies: the composite is it.
    assert value(figures(one, said(VALUES)), "mine", "mae") == pytest.approx(5 / 12)


def test_an_item_counts_unless_more_say_that_it_does_not_apply_than_score_it() -> None:
    nan = float("nan")
    scores = np.array([[1.0, 3.0, nan], [1.0, nan, nan], [4.0, nan, nan], [nan, nan, nan]])
    na = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)
    # The third was put to one judge alone, the fourth to none.
    assert _mean(scores, na) == pytest.approx([2.0, nan, 4.0, nan], nan_ok=True)


def test_of_one_judge_nobody_is_held_against_nobody() -> None:
    alone = table().subset(raters=["a"])
    found = figures(rated(alone), said(VALUES))
    assert set(found.figures) == {"mine"}
    assert found.against["mine"] == "a"


def test_at_most_so_many_conversations_are_drawn_and_what_belongs_together_is_resampled_together() -> None:
    told = MetricMap.model_validate({"turns": "last", "metrics": {"empathy": "empathy"}, "group": "file"})
    some = rated_set(table(), (), told, talks(), 3, 14)
    assert len(some.conversations) == 3
    assert some.conversations == rated_set(table(), (), told, talks(), 3, 14).conversations
    whole = rated_set(table(), (), told, talks(), None, 14)
    assert [r.group for r in whole.replies] == ["f0", "f0", "f1", "f1"]
    with pytest.raises(RatingsError, match="no conversation has the id"):
        rated_set(table(), (), told, [Conversation("other", talks()[0].messages)], None, 14)


def test_the_table_of_all_judges_heeds_the_map_too() -> None:
    whole = table(expert=True)
    wanted = MetricMap.model_validate({"metrics": {"empathy": "empathy"}, "order_only": ["empathy"], "group": "file"})
    plain = human_tables(whole, ("kim",), (), False)
    assert len(set(plain[0].groups.tolist())) == 4
    groups = item_groups(whole, "file", talks())
    grouped = regrouped(plain, groups)
    assert len(set(grouped[0].groups.tolist())) == 2
    assert grouped[0].groups[0] == grouped[0].groups[1] != grouped[0].groups[2]
    assert set(agreement(grouped, whole, groups, wanted.order_only)["empathy"]["a"]) == {"Spearman", "AUC"}
    assert {"ICC(A,1)", "MAE"} < set(agreement(grouped, whole, groups)["empathy"]["a"])


@pytest.mark.slow
def test_the_program_measures_a_set_that_judges_alone_rated(tmp_path: Path) -> None:
    ratings, items, mapped, out = (tmp_path / n for n in ("r.csv", "items.jsonl", "map.yaml", "out.json"))
    write_ratings(table(), ratings)
    messages = [{"role": m.role, "content": m.content} for m in talks()[0].messages]
    items.write_text("".join(json.dumps({"item_id": f"i{n}", "conversation": messages}) + "\n" for n in range(4)))
    mapped.write_text(yaml.safe_dump({"turns": "mean", "metrics": {"empathy": "empathy"}}))
    words = [str(ratings), "--items", str(items), "--map", str(mapped), "--judge", "fake", "--rival", "fake"]
    words += ["--recipe", str(make_recipe(tmp_path)), "--json", str(out)]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "no person rated these" in done.output
    found = json.loads(out.read_text())["set"]["metrics"]["empathy"]["contestants"]
    assert list(found) == ["a", "b", "c", "fake", "bag of words", "constant"]
    assert found["constant"]["figures"]["spearman"]["value"] is None


@pytest.mark.parametrize(("folder", "name"), [("spiral_bench", "spiral"), ("aipsy_bench", "aipsy")])
def test_the_shipped_maps_name_what_the_sets_have(folder: str, name: str) -> None:
    files = DATA / folder
    if not files.exists():
        pytest.skip(f"{folder} is not beside the repository")
    ratings = load_ratings(sorted(files.glob("ratings.csv*")))
    told = read_map(HERE / "bench" / f"human_map_{name}.yaml")
    found = pairs_of(told, RUBRIC, ratings, extra=("composite",))
    assert len(found) == len(told.metrics)
    assert {*told.reverse, *told.order_only} <= {theirs for _, theirs in found}
    conversations = conversations_of(next(files.glob("items.jsonl*")))
    assert len(rated_set(ratings, (), told, conversations, None, 14).conversations) == len(ratings.items)
    assert told.group is None or all(told.group in c.metadata for c in conversations)
