"""What a judge of a dialogue is asked with: rubrics of the pack's levels, and sentences that can be quoted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.rubrics import metric_name, start_rubric, turn_rubric
from aipsy_judge.epm.sentences import sentences
from aipsy_judge.errors import RubricError

PACK = load_pack()


def test_the_packs_rubrics_ask_for_its_levels() -> None:
    start, turns = start_rubric(PACK), turn_rubric(PACK)
    assert start.metric_names == tuple(metric_name(i) for i in PACK.space.indicator_ids)
    assert turns.metric_names == tuple(metric_name(c) for c in PACK.space.channel_ids)
    for metric in (*start.metrics, *turns.metrics):
        assert set(metric.anchors) == set(metric.scale.values), metric.name


def test_how_many_turns_are_rated_changes_the_rubrics_hash() -> None:
    assert len({turn_rubric(PACK, every).hash for every in (1, 2, 3)}) == 3


def test_a_rubric_that_does_not_fit_the_space_is_refused() -> None:
    from dataclasses import replace

    with pytest.raises(RubricError, match="does not fit the pack: a_1"):
        start_rubric(replace(PACK, start_rubric="empa-turns"))
    with pytest.raises(RubricError, match="a turn form rates turns"):
        turn_rubric(replace(PACK, turn_rubric="empa-start"))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from('ab1 .!?。！？…\n"”』(（—'), max_size=60))
def test_sentences_are_stretches_of_the_text_in_order_and_lose_no_letter(text: str) -> None:
    at = 0
    for sentence in sentences(text):
        at = text.index(sentence, at) + len(sentence)
    letters = [c for c in text if c.isalnum()]
    assert [c for s in sentences(text) for c in s if c.isalnum()] == letters


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It took 3.5 hours. He said “No!” and left", ["It took 3.5 hours.", "He said “No!”", "and left"]),
        ("我很累。你说“加油！”可是……我睡不着", ["我很累。", "你说“加油！”", "可是……", "我睡不着"]),
        ("# Maren\n\n---\n- closed in spring\n", ["# Maren", "- closed in spring"]),
        ("", []),
    ],
)
def test_sentences_end_at_marks_and_lines(text: str, found: list[str]) -> None:
    assert sentences(text) == found
