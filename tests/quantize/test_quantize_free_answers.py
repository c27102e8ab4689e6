"""What becomes of answers that nobody held to their form."""

from __future__ import annotations

import json

import numpy as np
import pytest
from toy_model import ToyModel

from aipsy_judge.answer import NA
from aipsy_judge.bench_contract import bench_form
from aipsy_judge.contract import COMPACT, FULL, Contract
from aipsy_judge.rubric import load_rubric
from quantize.free_answers import Written, asked_for, kind_of, write_answers
from quantize.trunk import Trunk

RUBRIC = load_rubric()
WHOLE = FULL.forms(RUBRIC)["answer"].render(
    {
        **dict.fromkeys(RUBRIC.metric_names, "4"),
        "crisis_detected": "false",
        "crisis_severity": "none",
        "crisis_handling": NA,
    },
    "It says “I hear you”.",
)


def full(text: str, *, ended: bool = True) -> str:
    return kind_of(Written(0, "answer", (), text, ended), FULL, RUBRIC)


def line(text: str, form: str = "empathy", *, ended: bool = True) -> str:
    return kind_of(Written(0, form, (), text, ended), COMPACT, RUBRIC)


def test_a_whole_answer_is_clean():
    assert full(WHOLE) == "clean"
    assert full(WHOLE, ended=False) == "runaway"


def test_wherever_the_end_comes_inside_the_object_it_is_early():
    for cut in range(len(WHOLE)):
        assert full(WHOLE[:cut]) == "early_end", WHOLE[:cut]


@pytest.mark.parametrize(
    "change", [{"empathy": 9}, {"empathy": None}, {"crisis_detected": "maybe"}, {"tone_consistency": "4or5"}]
)
def test_a_closed_object_that_the_reader_refuses_is_unreadable_not_early(change):
    assert full(json.dumps(json.loads(WHOLE) | change)) == "unreadable"


def test_the_benchmarks_own_answer_is_clean_whole_and_early_at_every_cut():
    form, chosen = bench_form(), {}
    for slot in form.slots:
        chosen[slot.name] = slot.legal(chosen)[0].label
    text = form.render(chosen, "It stays with what was said.")
    contract = Contract("aipsy-bench-v1", FULL.messages, lambda rubric: {"answer": form})

    def kind(said: str) -> str:
        return kind_of(Written(0, "answer", (), said, True), contract, RUBRIC)

    assert kind(text) == "clean"
    assert {kind(text[:cut]) for cut in range(len(text))} == {"early_end"}


def test_an_object_that_had_to_be_repaired_is_not_clean():
    assert full(WHOLE[:-1] + ",}") == "unreadable"


def test_a_brace_or_an_escaped_quote_inside_a_text_does_not_close_the_object():
    assert full('{"a": "} \\" }') == "early_end"
    assert full('{"a": "\\\\"}') == "unreadable"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("empathy:4\n", "clean"),
        ("empathy:4", "clean"),
        ("empathy:", "early_end"),
        ("empathy:6\n", "unreadable"),
        ("empathy: 4\n", "unreadable"),
        ("empathy:4\n\n", "unreadable"),
        ("empathy:4\nempathy:5", "unreadable"),
    ],
)
def test_a_line_is_clean_only_as_it_is_written(text, kind):
    assert line(text) == kind
    assert line(text, ended=False) == "runaway"


def test_a_line_that_ends_within_an_option_is_early():
    assert line("advice_safety:N", "advice_safety") == "early_end"
    assert line("crisis_detected:indir", "crisis_detected") == "early_end"
    assert line("advice_safety:NA\n", "advice_safety") == "clean"


class Scripted(ToyModel):
    """Says given texts: on the branch that leaves after `cue` it says what is scripted for that cue."""

    def __init__(self, script: dict[tuple[int, ...], list[int]]) -> None:
        super().__init__()
        self.script = script

    def evaluate(self, feeds):
        return [
            self._say(feed, row)
            for feed, row in zip([f for f in feeds if f.want_logits], super().evaluate(feeds), strict=True)
        ]

    def _say(self, feed, row):
        held = [token for token, _ in self._sequences[feed.sequence]]
        for cue, said in self.script.items():
            for done in range(len(said)):
                if tuple(held[-(len(cue) + done) :]) == (*cue, *said[:done]):
                    row = np.zeros_like(row)
                    row[said[done]] = 9.0
        return row


def test_answers_of_unlike_length_are_written_in_step_each_to_its_own_end():
    model = ToyModel()
    end = next(iter(model.end_tokens))
    spell = {text: model.tokenize(text, special=False) for text in ("4\n", "indirect\n", "empathy:", "crisis:", "xyz")}
    cues = {"a": spell["empathy:"], "b": spell["crisis:"], "c": spell["xyz"]}
    script = {
        tuple(cues["a"]): [*spell["4\n"], end],
        tuple(cues["b"]): [*spell["indirect\n"], end],
        tuple(cues["c"]): [spell["4\n"][0]] * 40,
    }
    scripted = Scripted(script)
    prompt = model.tokenize("judge the talk", special=False)
    found = write_answers(scripted, Trunk(scripted, 1000), 0, dict.fromkeys(cues, prompt), cues, budget=20)
    assert [(w.text, w.ended) for w in found][:2] == [("empathy:4\n", True), ("crisis:indirect\n", True)]
    assert not found[2].ended
    assert len(found[2].tokens) == 20
    assert [w.tokens[-1] == end for w in found] == [True, True, False]


@pytest.mark.parametrize(
    ("flag", "asked"),
    [
        ("crisis_detected:none\n", False),
        ("crisis_detected:none", False),
        ("crisis_detected:direct\n", True),
        ("crisis_detected:indirect\n", True),
        ("crisis_detected:nonesuch\n", True),  # says nothing: whoever reads it cannot leave the other out
    ],
)
def test_a_line_that_hangs_on_a_flag_is_asked_for_unless_the_judges_own_line_leaves_it_unset(flag, asked):
    hanging = Written(3, "crisis_handling", (), "crisis_handling:none\n", True)
    others = [Written(3, "empathy", (), "empathy:4\n", True), Written(3, "crisis_detected", (), flag, True)]
    elsewhere = Written(4, "crisis_handling", (), "crisis_handling:none\n", True)
    found = asked_for([*others, hanging, elsewhere], COMPACT, RUBRIC)
    assert found == [*others, *([hanging] if asked else []), elsewhere]
    assert asked_for([*others, hanging], FULL, RUBRIC) == [*others, hanging]
