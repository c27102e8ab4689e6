"""The sample: near duplicates found exactly, groups kept whole, strata by the published rule, rates by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_setup import FINE, RUBRIC, Scores, lines, make_project, read_recipe, talk, write_talks

from aipsy_judge.errors import InputError
from training.recipe import KEPT_APART, Strata
from training.sample import GROUPS, RATES, make_sample
from training.sample_rows import FILE
from training.similarity import jaccard, near_pairs, shingles
from training.strata import rates, repeats, stratum
from training.target_rows import FlagTarget, MetricTarget, TargetRow

LOW = {"empathy": 1.0, "tone_consistency": 1.0, "advice_safety": 2.0, "boundary_safety": 1.0}


def fine(n: int, judge: str) -> tuple[Scores, bool]:
    return FINE, False


def sampled(path: Path, *overrides: str) -> dict[str, dict[str, Any]]:
    """item -> its line in sample.jsonl."""
    found = make_sample(read_recipe(path, *overrides), path.parent / "run")
    return {row["item_id"]: row for row in lines(found.folder / FILE)}


def parts_of(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, set[str]]:
    """conversation -> parts it is in."""
    found: dict[str, set[str]] = {}
    for item, row in rows.items():
        found.setdefault(item.rpartition(":")[0], set()).add(row["part"])
    return found


# near duplicates


def test_shingles_are_five_words_without_case_and_punctuation() -> None:
    assert shingles("One, two three; four five SIX") == shingles("one two three four five six")
    assert len(shingles("one two three four five six")) == 2
    assert len(shingles("one two")) == 1
    assert shingles("...") == frozenset()


def test_the_similarity_of_two_texts_that_share_a_beginning() -> None:
    # 8 and 8 words, 4 shingles each; the first 7 words are shared, so 3 of 5 different shingles.
    assert jaccard(shingles("a b c d e f g h"), shingles("a b c d e f g z")) == pytest.approx(3 / 5)


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=3), st.frozensets(st.integers(0, 12), max_size=9), max_size=14
    ),
    st.sampled_from([0.1, 0.34, 0.5, 0.75, 0.8, 1.0]),
)
def test_near_pairs_are_those_that_comparing_every_pair_finds(texts: dict[str, frozenset[int]], least: float) -> None:
    found = {frozenset((a, b)) for a, b, _ in near_pairs(texts, least)}
    names = sorted(texts)
    wanted = {
        frozenset((a, b))
        for n, a in enumerate(names)
        for b in names[n + 1 :]
        if texts[a] and texts[b] and jaccard(texts[a], texts[b]) >= least - 1e-9
    }
    assert found == wanted


# the split


def edited(made: Mapping[str, Any], id: str, message: int, content: str, **metadata: Any) -> dict[str, Any]:
    messages = [dict(m) for m in made["messages"]]
    messages[message]["content"] = content
    return {"id": id, "messages": messages, "metadata": metadata}


LONG = talk("c00", 0, turns=6)
SAME_PERSON = {
    "id": "z1",
    "messages": [m if m["role"] == "user" else {**m, "content": f"other {n}"} for n, m in enumerate(LONG["messages"])],
}
ONE_WORD = edited(LONG, "z2", 4, LONG["messages"][4]["content"] + " indeed")
OPENING = {"id": "z3", "messages": [*LONG["messages"][:2], *talk("x", 77, turns=5)["messages"]]}
CUT = {"id": "z4", "messages": LONG["messages"][:6]}
ORIGIN = {**talk("z5", 55), "metadata": {"origin": "c00"}}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (SAME_PERSON, "what the person says is 1.00 alike"),
        (ONE_WORD, "alike"),
        (OPENING, "the same first exchange"),
        (CUT, "a unit of the same text"),
        (ORIGIN, "one origin"),
    ],
    ids=["alternative replies", "a word changed", "another ending", "cut short", "named as its origin"],
)
def test_what_shares_text_is_one_group(tmp_path: Path, other: dict[str, Any], why: str) -> None:
    talks = [LONG, *(talk(f"c{n:02d}", n) for n in range(1, 12)), {"metadata": {}, **other}]
    found = sampled(make_project(tmp_path, talks, fine))
    assert found[f"{other['id']}:t01"]["group"] == found["c00:t01"]["group"]
    assert len({row["group"] for row in found.values()}) == 12
    links = json.loads((tmp_path / "run" / "sample" / GROUPS).read_text(encoding="utf-8"))["links"]
    assert any(why in link["why"] and {link["first"], link["second"]} <= {"c00", other["id"]} for link in links)


def test_a_scenario_is_one_group_only_where_the_split_is_by_scenario(tmp_path: Path) -> None:
    talks = [talk(f"c{n:02d}", n, scenario=f"s{n // 4}") for n in range(24)]
    path = make_project(tmp_path, talks, fine)
    assert len({row["group"] for row in sampled(path).values()}) == 6
    assert len({row["group"] for row in sampled(path, "split.by=conversation").values()}) == 24


@pytest.mark.parametrize("seed", range(4))
def test_groups_stay_whole_the_shares_are_met_and_the_split_can_be_had_again(tmp_path: Path, seed: int) -> None:
    talks = [talk(f"c{n:02d}", n, turns=1 + n % 3, scenario=f"s{n // 2}") for n in range(40)]
    path = make_project(tmp_path, talks, fine)
    found = sampled(path, f"seed={seed}")
    by_group: dict[str, set[str]] = {}
    for row in found.values():
        by_group.setdefault(row["group"], set()).add(row["part"])
    assert all(len(parts) == 1 for parts in by_group.values())
    for part, share in (("train", 0.7), ("validation", 0.1), ("test", 0.2)):
        count = sum(row["part"] == part for row in found.values())
        assert abs(count - share * len(found)) <= 6  # the size of a scenario
    again = make_project(tmp_path, list(reversed(talks)), fine)
    assert sampled(again, f"seed={seed}") == found


def test_another_seed_is_another_split(tmp_path: Path) -> None:
    path = make_project(tmp_path, [talk(f"c{n:02d}", n) for n in range(30)], fine)
    assert sampled(path, "seed=1") != sampled(path, "seed=2")


def test_fewer_groups_than_parts_is_an_error(tmp_path: Path) -> None:
    path = make_project(tmp_path, [talk("a", 1), talk("b", 2)], fine)
    with pytest.raises(InputError, match="2 groups of items cannot fill 3 parts"):
        sampled(path)
    parts = parts_of(sampled(path, "split.train=0.5", "split.validation=0", "split.test=0.5"))
    assert sorted(map(list, parts.values())) == [["test"], ["train"]]


# a frozen split


def frozen(tmp_path: Path, talks: list[dict[str, Any]], text: str) -> Path:
    (tmp_path / "split.csv").write_text(text, encoding="utf-8")
    return make_project(tmp_path, talks, fine, split={"file": str(tmp_path / "split.csv")})


FOUR = [talk(f"c{n}", n, scenario=f"s{n // 2}") for n in range(4)]


@pytest.mark.parametrize(
    "text",
    [
        "scenario,part\ns0,test\ns1,train\n",
        "conversation,part\nc0,test\nc1,test\nc2,train\nc3,train\n",
        "group,part\ns0,test\nc2,train\nc3,train\n",
        "item_id,part\n" + "".join(f"c{n}:t0{t},{'test' if n < 2 else 'train'}\n" for n in range(4) for t in (1, 2)),
        '{"id": "s0", "part": "test", "domain": "everyday"}\n{"id": "s1", "part": "train", "domain": "coaching"}\n',
    ],
    ids=["scenarios", "conversations", "either", "items", "situations"],
)
def test_a_frozen_split_is_followed_to_the_letter(tmp_path: Path, text: str) -> None:
    found = parts_of(sampled(frozen(tmp_path, FOUR, text)))
    assert found == {"c0": {"test"}, "c1": {"test"}, "c2": {"train"}, "c3": {"train"}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("scenario,part\ns0,test\n", "c2:t01: no part is told"),
        ("scenario,part\ns0,test\ns0,train\n", "s0 is in test and in train"),
        ("scenario,part\ns0,dev\ns1,train\n", "part is 'dev', not one of train, validation, test"),
        ("name,part\ns0,test\n", "needs a column part, and one of item_id"),
        ("conversation,part\nc0,test\nc1,train\nc2,train\nc3,train\n", r"c0 \(test\), c1 \(train\): one scenario"),
        (
            "item_id,part\nc0:t01,test\n"
            + "".join(f"{i},train\n" for i in ("c0:t02", "c1:t01", "c1:t02"))
            + "".join(f"c{n}:t0{t},train\n" for n in (2, 3) for t in (1, 2)),
            "c0 is in train and test",
        ),
    ],
    ids=["left out", "twice", "unknown part", "no column", "scenario torn", "conversation torn"],
)
def test_a_frozen_split_that_is_not_whole_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        sampled(frozen(tmp_path, FOUR, text))


def test_a_leak_through_a_frozen_split_is_named_as_a_pair(tmp_path: Path) -> None:
    talks = [LONG, {"metadata": {}, **ONE_WORD}, talk("c2", 2)]
    text = "conversation,part\nc00,train\nz2,test\nc2,train\n"
    with pytest.raises(InputError, match=r"c00 \(train\), z2 \(test\): what the person says is 0\.\d\d alike"):
        sampled(frozen(tmp_path, talks, text))
    # A stricter likeness lets them pass apart: it is the recipe that says what is one text.
    write_talks(
        tmp_path / "conversations.jsonl", [LONG, {"metadata": {}, **edited(LONG, "z2", 0, "Hello there")}, talks[2]]
    )
    with pytest.raises(InputError, match="leaks"):
        sampled(tmp_path / "recipe.yaml", "split.near_duplicate=0.5")
    assert sampled(tmp_path / "recipe.yaml", "split.near_duplicate=0.99")


# strata


def row(
    scores: Mapping[str, float | None], *, crisis: bool | None = False, unscored: tuple[str, ...] = ()
) -> TargetRow:
    """A target row; None is N/A."""
    metrics = {
        name: MetricTarget("unscored", None, None, None)
        if name in unscored
        else MetricTarget("na" if value is None else "scored", value, None, None)
        for name, value in {**FINE, **scores}.items()
    }
    flag = FlagTarget(crisis, None, None, None)
    return TargetRow("i", "c", 1, None, None, metrics, {"crisis_detected": flag}, None, None)


# The mean of what applies is below 2.5, yet nothing is below a threshold of its own.
DULL = {
    "empathy": 2.0,
    "tone_consistency": 2.0,
    "advice_safety": 3.0,
    "boundary_safety": 2.0,
    "affective_complexity": 2.0,
}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (row({}), "pass"),
        (row({"empathy": 1.9}), "tail"),
        (row({"empathy": 2.0}), "pass"),
        (row({"crisis_handling": 2.4}, crisis=True), "tail"),
        (row({"advice_safety": 2.9}), "advice_boundary"),
        (row({"boundary_safety": 1.0}), "advice_boundary"),
        (row({"advice_safety": 1.0, "boundary_safety": 1.0}), "advice_boundary"),
        (row({"advice_safety": 1.0, "tone_consistency": 1.0}), "tail"),
        (row(DULL), "tail"),
        (row({**DULL, "advice_safety": 2.5, "boundary_safety": 2.0}), "advice_boundary"),
        (row({}, unscored=("empathy",)), "undefined"),
        (row({"tone_consistency": 1.0}, unscored=("empathy",)), "tail"),
        (row({"advice_safety": None, "boundary_safety": None}), "pass"),
    ],
)
def test_a_stratum_is_told_by_which_metrics_fail(found: TargetRow, wanted: str) -> None:
    assert stratum(found, RUBRIC, KEPT_APART) == wanted


def test_which_metrics_are_kept_apart_is_the_recipes_to_say() -> None:
    assert stratum(row({"advice_safety": 1.0}), RUBRIC, ("boundary_safety",)) == "tail"


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [("tail", (4, 1, 1, 1)), ("all", (4, 4, 1, 1)), ("none", (1, 1, 1, 1))],
)
def test_how_often_an_item_of_each_stratum_is_shown(rule: Any, wanted: tuple[int, ...]) -> None:
    told = Strata(oversample=rule, factor=4)
    assert tuple(repeats(s, told) for s in ("tail", "advice_boundary", "pass", "undefined")) == wanted


def test_rates_count_an_item_as_often_as_it_is_shown() -> None:
    shown = [
        (row({"empathy": 1.0, "advice_safety": 2.0}), "tail", 4),
        (row({"advice_safety": 2.0}), "advice_boundary", 1),
        (row({"advice_safety": None}, crisis=True), "pass", 2),
        (row({}, crisis=None, unscored=("empathy",)), "undefined", 1),
    ]
    found = {axis: (r.hits, r.n) for axis, r in rates(shown, RUBRIC).items()}  # type: ignore[arg-type]
    assert found["empathy"] == (4, 7)  # the unscored one is no item of this axis
    assert found["advice_safety"] == (5, 6)  # nor is the N/A one here
    assert found["crisis_handling"] == (0, 0)
    assert found["crisis_detected"] == (2, 7)
    assert found["failure"] == (5, 7)
    assert found["stratum tail"] == (4, 8)
    assert rates([], RUBRIC)["empathy"].share is None


def failing(n: int, judge: str) -> tuple[Scores, bool]:
    kind = {0: "empathy", 1: "advice_safety", 2: "boundary_safety"}.get(n % 8)
    return ({**FINE, kind: LOW[kind]} if kind else FINE), False


@pytest.mark.parametrize("rule", ["tail", "all", "none"])
def test_only_the_train_part_is_shown_more_often_and_advice_stays_as_it_is_by_nature(
    tmp_path: Path, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_project(tmp_path, [talk(f"c{n:02d}", n) for n in range(48)], failing)
    found = sampled(path, f"strata.oversample={rule}", "strata.factor=3")
    assert all(row["repeats"] == 1 for row in found.values() if row["part"] != "train")
    shown = {
        s: {r["repeats"] for r in found.values() if r["part"] == "train" and r["stratum"] == s}
        for s in ("tail", "advice_boundary", "pass")
    }
    assert shown == {
        "tail": {1 if rule == "none" else 3},
        "advice_boundary": {3 if rule == "all" else 1},
        "pass": {1},
    }
    told = json.loads((tmp_path / "run" / "sample" / RATES).read_text(encoding="utf-8"))
    natural, resulting = told["train"]["natural"], told["train"]["resulting"]
    assert natural["stratum tail"]["hits"] * (1 if rule == "none" else 3) == resulting["stratum tail"]["hits"]
    assert (natural["advice_safety"]["hits"] == resulting["advice_safety"]["hits"]) == (rule != "all")
    assert told["test"]["natural"] == told["test"]["resulting"]
    hits, n = resulting["empathy"].values()
    assert f"{hits / n:6.1%} ({hits}/{n})" in next(
        line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("empathy ")
    )
