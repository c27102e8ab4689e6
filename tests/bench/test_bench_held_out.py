"""Held-out items: what is asked, verdicts as columns, what is kept, and the program over a small recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from held_out_setup import COLD, RUBRIC, held, make_recipe

from aipsy_judge import open_judge
from aipsy_judge.contract import COMPACT, FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError
from aipsy_judge.verdict import Flag, NotApplicable, Reading, Score, Scored, Unscored, Verdict
from bench.held_out import Reply, held_out
from bench.held_out_judging import judge_items, plans
from bench.held_out_kept import Kept, key_of
from bench.held_out_run import drawn, part_in_target
from bench.held_out_said import held_by_target, read_through, said_by_judge
from bench.human import main
from training.recipe_reading import load_recipe

TALK = Conversation(
    "c",
    tuple(Message(r, t) for r, t in (("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))),
)


def reading(**shares: float) -> Reading:
    """p0=.5 and so on; na= is N/A."""
    labels = {"N/A" if k == "na" else k.removeprefix("p"): v for k, v in shares.items()}
    numbers = {float(k): v for k, v in labels.items() if k != "N/A"}
    mass = sum(numbers.values())
    expected = sum(k * v for k, v in numbers.items()) / mass if mass else None
    return Reading(labels.get("N/A", 0.0), expected, max(labels.values()), 0.9, labels)


def verdict(flag: Flag | None = None, **scores: Score) -> Verdict:
    whole: dict[str, Score] = dict.fromkeys(RUBRIC.metric_names, NotApplicable())
    return Verdict("x", 1, "", {**whole, **scores}, {"crisis_detected": flag or Flag(False, probability=0.1)})


# what is asked


def test_a_main_line_is_one_question_and_of_an_alternative_only_the_rated_turn_is_spoken() -> None:
    main_line = [Reply(f"c:{n}", TALK, n, "c") for n in (1, 2)]
    other = Conversation("c.t2a1", (*TALK.messages[:3], Message("assistant", "e")))
    found = plans([*main_line, Reply("x", other, 2, "c")])
    assert [[i.id for i in p.items] for p in found] == [["c:1", "c:2"], ["x"]]
    assert found[0].asked.messages == TALK.messages
    assert [t.message.content for t in found[1].asked.turns] == ["e"]
    assert found[1].asked.messages[1].spoken is False


@pytest.mark.parametrize("contract", [FULL, COMPACT], ids=lambda c: c.name)
def test_what_is_marked_as_not_spoken_stands_in_the_prompt_all_the_same(contract: Any) -> None:
    asked = plans([Reply("c:2", TALK, 2, "c")])[0].asked
    assert contract.messages(RUBRIC, asked, 3) == contract.messages(RUBRIC, TALK, 3)


def test_nothing_behind_the_last_rated_turn_is_shown() -> None:
    assert plans([Reply("c:1", TALK, 1, "c")])[0].asked.messages == TALK.messages[:2]


# verdicts as columns


def test_a_metric_has_numbers_only_where_it_is_scored() -> None:
    likely = reading(p4=0.6, p1=0.4)
    verdicts = {
        "a": verdict(empathy=Scored(4.0, likely)),
        "b": verdict(empathy=NotApplicable(reading=reading(na=0.6, p1=0.4))),
        "c": verdict(empathy=Unscored("off_contract", reading=likely)),
        "d": verdict(empathy=Scored(3.0)),
    }
    said = said_by_judge("j", "", verdicts, [held(i, {}) for i in "abcd"], RUBRIC).metrics["empathy"]
    # 4 * .6 + 1 * .4 = 2.8; below the critical 2 lies .4.
    assert said.expected == pytest.approx([2.8, np.nan, np.nan, 3.0], nan_ok=True)
    assert said.likely == pytest.approx([4.0, np.nan, np.nan, 3.0], nan_ok=True)
    assert said.given == pytest.approx([2.8, 1.0, np.nan, 3.0], nan_ok=True)
    assert said.p_fail == pytest.approx([0.4, 0.4, np.nan, np.nan], nan_ok=True)
    assert said.na.tolist() == [False, True, False, False]
    assert said.unscored.tolist() == [False, False, True, False]


def test_what_a_manifest_holds_back_is_measured_and_counted() -> None:
    why = "not shown to work"
    held_back = verdict(
        Flag(
            None,
            probability=0.7,
            distribution={"none": 0.3, "indirect": 0.1, "direct": 0.6},
            unscored=Unscored("not_validated", why),
        ),
        empathy=Unscored("not_validated", why, reading(p1=0.7, p5=0.3)),
        boundary_safety=Unscored("not_validated", why, reading(na=0.8, p5=0.2)),
        crisis_handling=Unscored("not_validated", why, reading(p2=0.9, p5=0.1)),
        advice_safety=Unscored("off_contract", "little", reading(p1=1.0)),
    )
    read, count = read_through(held_back, RUBRIC)
    assert count == 4
    assert read.flags["crisis_detected"].value is True
    assert isinstance(empathy := read.scores["empathy"], Scored)
    assert empathy.value == 1.0
    assert isinstance(read.scores["boundary_safety"], NotApplicable)
    assert isinstance(read.scores["crisis_handling"], Scored)
    assert isinstance(read.scores["advice_safety"], Unscored)


def test_a_metric_whose_flag_is_not_set_does_not_apply_though_it_is_held_back() -> None:
    held_back = verdict(crisis_handling=Unscored("not_validated", "", reading(p2=1.0)))
    assert isinstance(read_through(held_back, RUBRIC)[0].scores["crisis_handling"], NotApplicable)


def test_a_failure_of_what_hangs_on_a_flag_is_as_probable_as_both_together_and_0_where_it_is_not_set() -> None:
    low = reading(p1=0.75, p4=0.25)
    unset = NotApplicable(forced_by="crisis_detected")
    why = Unscored("not_validated", "little")
    verdicts = {
        "set": verdict(Flag(True, probability=0.8), crisis_handling=Scored(1.0, low)),
        "not set": verdict(Flag(False, probability=0.3), crisis_handling=unset),
        "held back": verdict(Flag(None, unscored=why, probability=0.3), crisis_handling=why),
        "set, no probability of it": verdict(Flag(True), crisis_handling=Scored(1.0, low)),
        "no probability at all": verdict(Flag(False), crisis_handling=unset),
        "unread": verdict(Flag(True, probability=0.8), crisis_handling=Unscored("off_contract", reading=low)),
    }
    said = said_by_judge("j", "", verdicts, [held(i, {}) for i in verdicts], RUBRIC).metrics["crisis_handling"]
    # Below the critical 2.5 lies .75: .8 * .75 = .6.
    assert said.p_fail == pytest.approx([0.6, 0, 0, 0.75, np.nan, np.nan], nan_ok=True)


def test_targets_keep_na_and_unscored_apart() -> None:
    found = held_by_target([held("a", {"empathy": 3.5, "advice_safety": None}, crisis=None)], RUBRIC, "")
    assert found.values["empathy"].tolist() == [3.5]
    assert found.na["advice_safety"].tolist() == [True]
    assert found.na["boundary_safety"].tolist() == [False]
    assert np.isnan(found.values["boundary_safety"]).all()
    assert np.isnan(found.flags["crisis_detected"]).all()


# what is kept


def test_verdicts_are_taken_from_the_journal_and_a_run_cut_short_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    items = [held(f"i{n}", {}) for n in range(4)]
    asked: list[str] = []
    with open_judge("fake", contract="full") as judge:
        score = judge.score
        judge.score = lambda c, **more: (asked.append(c.id), score(c, **more))[1]  # type: ignore[method-assign]
        first = judge_items(judge, items[:2], path)
        torn = path.read_bytes()
        path.write_bytes(torn + b'{"key": "half')
        whole = judge_items(judge, items, path)
        again = judge_items(judge, items, path)
    assert asked == ["i0", "i1", "i2", "i3"]
    assert first.verdicts["i0"] == whole.verdicts["i0"] == again.verdicts["i0"]
    assert again.spent == whole.spent
    assert whole.spent.turns == 4


def test_another_text_is_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    with open_judge("fake", contract="full") as judge:
        judge_items(judge, [held("a", {})], path)
        judge_items(judge, [held("b", {})], path)
    assert len(path.read_text().splitlines()) == 2


def test_a_record_that_is_not_lasting_is_at_hand_but_not_on_the_disk(tmp_path: Path) -> None:
    key = key_of("a", 1)
    with Kept(tmp_path / "k.jsonl") as kept:
        kept.put(key, {"n": 1}, lasting=False)
        assert kept.records[key]["n"] == 1
    with Kept(tmp_path / "k.jsonl") as kept:
        assert kept.records == {}


def test_drawn_conversations_are_whole_groups_and_the_same_for_a_seed() -> None:
    items = [held(f"i{n}", {}, group=f"g{n // 3}") for n in range(12)]
    one = drawn(items, 2, 14)
    assert len({i.group for i in one}) == 2
    assert len(one) == 6
    assert one == drawn(items, 2, 14)
    assert drawn(items, 9, 14) == tuple(items)


# the whole


def test_the_items_of_a_part_come_with_target_text_and_group(tmp_path: Path) -> None:
    found = held_out(load_recipe(make_recipe(tmp_path)), "test", tmp_path / "work")
    assert len(found.items) == 18
    assert len(found.train) == 24
    other = next(i for i in found.items if i.id == "c10.t2a1:t2")
    assert other.shown[-1].content == COLD
    assert other.group == next(i for i in found.items if i.id == "c10:t1").group
    value = other.target.metrics["empathy"].value
    assert value is not None
    assert value <= 1


def run(folder: Path, *more: str) -> Any:
    words = ["--judge", "fake", "--rival", "fake", "--recipe", str(make_recipe(folder)), "--resamples", "50"]
    return CliRunner().invoke(main, [*words, "--work", str(folder / "work"), *more], catch_exceptions=False)


@pytest.mark.slow
def test_the_program_measures_judge_bag_constant_and_raters(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run(tmp_path, "--json", str(out))
    assert done.exit_code == 0, done.output
    data = json.loads(out.read_text())
    assert list(data["contestants"]) == ["fake", "bag of words", "constant", "strict", "plain", "lenient"]
    empathy = {name: of["empathy"]["expected"] for name, of in data["figures"]["target"].items()}
    # A third of the replies is cold in so many words: the bag of words sees that, a hash of the text does not.
    assert empathy["bag of words"]["icc"]["value"] > 0.9
    assert empathy["fake"]["icc"]["value"] < 0.5
    assert empathy["constant"]["spearman"]["value"] is None
    assert "do not vary" in empathy["constant"]["spearman"]["reason"]
    assert "ICC(A,1)" in data["not_validated"]["empathy"]
    assert "against adjudicated" not in done.output
    assert "the target was made from this rater" in done.output


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("correction", "the target was made from this rater"),
        ("mean", "the target was made from this rater"),
        ("rater:strict", "the target is this rater"),
        ("rater:plain", "the target is another rater"),
    ],
)
def test_a_rater_stands_with_its_part_in_the_target(source: str, said: str) -> None:
    assert part_in_target(source, "strict") == said


def test_points_are_refused_on_the_test_part(tmp_path: Path) -> None:
    done = run(tmp_path, "--points")
    assert done.exit_code == 2
    assert "--part validation" in done.output


def test_points_are_written_in_the_form_of_a_manifest(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run(tmp_path, "--part", "validation", "--points", "--json", str(out))
    assert done.exit_code == 0, done.output
    assert "operating_points:" in done.output
    found = json.loads(out.read_text())["points"]
    assert set(found["proposals"]) == {*RUBRIC.metric_names, "crisis_detected"}


def test_without_ratings_and_without_a_judge_there_is_nothing_to_do() -> None:
    done = CliRunner().invoke(main, [])
    assert done.exit_code == 2
    assert "--judge NAME" in done.output


def test_free_answers_of_a_server_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([*("--judge", "fake", "--rival", "fake", "--free", "2"), "--recipe", str(make_recipe(tmp_path))])
    assert ended.value.code == InputError("x").exit_code


@pytest.mark.slow
def test_the_untrained_model_is_judged_kept_and_measured_again_without_judging(tmp_path: Path) -> None:
    kept, figures = tmp_path / "verdicts.jsonl", tmp_path / "figures.json"
    recipe = make_recipe(tmp_path)
    words = ["--judge", "smollm2-untrained", "--recipe", str(recipe), "--most", "2", "--resamples", "50", "--free", "1"]
    words += ["--work", str(tmp_path / "work"), "--verdicts", str(kept), "--json", str(figures)]
    for _ in range(2):
        done = CliRunner().invoke(main, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert "4 of 4 conversations are at hand" in done.output
    data = json.loads(figures.read_text())
    assert data["contestants"]["smollm2-untrained, forced"]["counts"]["empathy"] == {
        "scored": 6,
        "na": 0,
        "unscored": 0,
    }
    assert data["judged"]["smollm2-untrained"]["contract"] == "compact"
    assert data["judged"]["smollm2-untrained"]["tokens_a_turn"] > 0
    assert data["free_answers"]["answers"] == 7
    assert 0 < data["contestants"]["smollm2-untrained"]["legal_mass_median"]["empathy"] < 1


@pytest.mark.slow
def test_an_alternative_asked_by_itself_is_read_as_in_the_whole_talk(tmp_path: Path) -> None:
    found = held_out(load_recipe(make_recipe(tmp_path)), "test", tmp_path / "work")
    item, main_line = (next(i for i in found.items if i.id == id) for id in ("c10.t2a1:t2", "c10:t2"))
    with open_judge("smollm2-untrained", contract="compact") as judge:
        alone = judge_items(judge, [item], None).verdicts[item.id]
        whole = judge.score(item.conversation, rationale="never")[-1]
        other = judge_items(judge, [main_line], None).verdicts[main_line.id]
    assert (alone.turn, alone.content_hash) == (whole.turn, whole.content_hash)
    same = 0
    for name in RUBRIC.metric_names:
        a, b, c = (v.scores[name].reading for v in (alone, whole, other))
        if a is None or b is None or c is None:
            continue
        # The plan is another one, which moves last digits: of ten readings six were equal, the others by at most .04
        # points and 10 % of their mass. Another reply in the same place has half or twice the mass.
        assert a.expected == pytest.approx(b.expected, abs=0.05)
        assert a.legal_mass == pytest.approx(b.legal_mass, rel=0.15)
        assert a.legal_mass != pytest.approx(c.legal_mass, rel=0.3)
        same += a == b
    assert same >= 2
