"""What is evaluated, where it lies in the cache, and that figures do not depend on what came before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import ToyModel

from aipsy_judge.answer import NA, AnswerForm, Option, Slot
from aipsy_judge.contract import COMPACT, FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.engine.run import Engine, Question
from aipsy_judge.engine.slots import AnswerReader
from aipsy_judge.engine.tree import build_tree
from aipsy_judge.errors import CapacityError, ContractError
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import NotApplicable, Scored, Unscored, verdict_to_dict
from aipsy_judge.weights import Weights

RUBRIC = load_rubric()
# Room for the rubric, an answer with its rationale, and some of the turns of talk(8, words=60).
CONTEXT = 5600
FORM = AnswerForm(
    ('{"a":', Slot("a", tuple(Option(str(v), str(v)) for v in range(6))), ',"b":',
     Slot("b", (*(Option(str(v), str(v)) for v in range(6)), Option(NA, '"N/A"'))), "}")
)  # fmt: skip


def talk(turns: int, words: int = 4, name: str = "c") -> Conversation:
    rows = []
    for i in range(turns):
        rows += [Message("user", f"{name}{i} " + "the " * words), Message("assistant", f"a{i} " + "judge" * words)]
    return Conversation(name, tuple(rows))


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "toy.gguf"
    path.write_bytes(b"toy")
    return Weights(name="toy", model=path)


def judge(weights, model, contract=FULL, **options):
    return LocalJudge(model, weights, RUBRIC, contract, **options)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=8, unique_by=tuple))
@settings(max_examples=200)
def test_a_tree_gives_back_every_prompt_and_holds_no_common_token_twice(prompts):
    tree = build_tree(prompts)
    found: dict[int, list[int]] = {}

    def walk(branch, before):
        path = [*before, *branch.tokens]
        if branch.leaf is not None:
            found[branch.leaf] = path
        for child in branch.children:
            walk(child, path)

    for bough in tree.boughs:
        walk(bough, tree.trunk[: bough.start])
    assert [found[i] for i in range(len(prompts))] == prompts
    distinct = {tuple(p[: n + 1]) for p in prompts for n in range(len(p))}
    assert len(tree.trunk) + sum(b.token_count() for b in tree.boughs) == len(distinct)


def test_two_equal_prompts_are_an_error():
    with pytest.raises(ValueError, match="0 and 1 are the same"):
        build_tree([[1, 2], [1, 2]])


@pytest.mark.parametrize("contract", [FULL, COMPACT])
def test_every_turn_costs_its_own_tokens_only(weights, contract):
    """Ten turns cost the rubric once, the conversation once, and a tail and an answer a turn."""
    model = ToyModel()
    with judge(weights, model, contract) as instrument:
        conversation = talk(10)
        instrument.score(conversation, rationale="never")
        before = model.work.tokens
        instrument.score(conversation, rationale="never")
        spent = model.work.tokens - before
        said = len(model.tokenize("".join(m.content for m in conversation.messages), special=False))
        answers = sum(len(v.raw) for v in instrument.score(conversation, rationale="never"))
    # every token of an answer has at least one byte; tags, tails and cues come on top
    assert spent < said + answers + 10 * 400
    whole_prompts = sum(said * (i + 1) / 10 for i in range(10))
    assert spent < whole_prompts + answers


@pytest.mark.parametrize("contract", [FULL, COMPACT])
def test_the_cache_never_holds_more_than_was_planned(weights, contract):
    conversation = talk(10)
    with judge(weights, ToyModel(), contract) as instrument:
        widest = instrument.forecast(conversation).cells
    for memory_cells in (int(widest * 0.75), int(widest * 0.9), widest):
        model = ToyModel()
        with judge(weights, model, contract, memory_gb=(memory_cells + 0.5) * model.cell_bytes / 2**30) as instrument:
            plan = instrument.forecast(conversation)
            instrument.score(conversation, rationale="never")
        assert model.most_cells <= plan.cells <= memory_cells


def test_a_talk_that_overflows_a_wide_plan_is_judged_in_groups_with_the_same_values(weights):
    conversation = talk(10, words=40)
    wide_model, narrow_model = ToyModel(), ToyModel()
    with judge(weights, wide_model) as wide:
        wide_plan, expected = wide.forecast(conversation), wide.score(conversation, rationale="never")
    trunk_and_one = wide_plan.cells - (wide_plan.cells - wide_model.most_cells)
    cells = int(trunk_and_one * 0.9)
    with judge(weights, narrow_model, memory_gb=cells * narrow_model.cell_bytes / 2**30) as narrow:
        plan, got = narrow.forecast(conversation), narrow.score(conversation, rationale="never")
    assert plan.width < wide_plan.width
    assert narrow_model.most_cells <= cells < wide_model.most_cells
    assert [v.scores for v in got] == [v.scores for v in expected]


def test_what_does_not_fit_the_memory_is_unscored_and_says_what_to_do(weights):
    model = ToyModel()
    with judge(weights, model, memory_gb=500 * model.cell_bytes / 2**30) as instrument:
        with pytest.raises(CapacityError, match="memory allows 500"):
            instrument.forecast(talk(3))
        (first, *_) = instrument.score(talk(3))
    assert all(isinstance(s, Unscored) and s.reason == "context_overflow" for s in first.scores.values())


def test_the_same_talk_gives_the_same_bytes_whatever_was_judged_before(weights):
    model = ToyModel()
    with judge(weights, model) as instrument:
        alone = [verdict_to_dict(v) for v in instrument.score(talk(4), rationale="always")]
        fed_alone = list(model.evaluated)
        instrument.score(talk(9, words=30, name="other"), rationale="always")
        model.evaluated.clear()
        again = [verdict_to_dict(v) for v in instrument.score(talk(4), rationale="always")]
    assert again == alone
    # the same batches too, but for the rubric, which was evaluated once
    trunk_on = fed_alone[1:]
    assert model.evaluated == trunk_on or model.evaluated == fed_alone


def test_a_talk_is_judged_alike_after_one_that_was_broken_off(weights):
    class Stop(Exception):
        pass

    def stop(verdict):
        raise Stop

    with judge(weights, ToyModel()) as fresh:
        expected = fresh.score(talk(4), rationale="never")
    with judge(weights, ToyModel()) as instrument:
        with pytest.raises(Stop):
            instrument.score(talk(7, name="other"), on_verdict=stop)
        assert instrument.score(talk(4), rationale="never") == expected


def test_turns_beyond_the_context_are_unscored_and_the_others_are_judged(weights):
    conversation = talk(8, words=60)
    model = ToyModel(context_tokens=CONTEXT)
    with judge(weights, model) as instrument:
        verdicts = instrument.score(conversation, rationale="never")
    judged = [any(isinstance(s, Scored | NotApplicable) for s in v.scores.values()) for v in verdicts]
    assert judged == sorted(judged, reverse=True)
    assert 0 < sum(judged) < 8
    lost = verdicts[-1].scores["empathy"]
    assert isinstance(lost, Unscored)
    assert lost.reason == "context_overflow"
    assert verdicts[-1].flags["crisis_detected"].value is None


def test_a_window_is_asked_for_recorded_and_keeps_the_last_message(weights):
    conversation = talk(8, words=60)
    with judge(weights, ToyModel(context_tokens=CONTEXT), window=True) as instrument:
        verdicts = instrument.score(conversation, rationale="never")
    assert not any(isinstance(s, Unscored) for v in verdicts for s in v.scores.values())
    assert not verdicts[0].notes or not any(n.startswith("windowed") for n in verdicts[0].notes)
    assert any(n.startswith("windowed:") for n in verdicts[-1].notes)


def test_an_empty_reply_is_unscored_and_not_asked(weights):
    conversation = Conversation("c", (Message("user", "hello"), Message("assistant", "  "), Message("user", "?")))
    model = ToyModel()
    with judge(weights, model) as instrument:
        before = model.work.tokens
        (verdict,) = instrument.score(conversation)
        assert model.work.tokens == before
    assert {s.reason for s in verdict.scores.values()} == {"empty_turn"}


def test_crisis_handling_is_scored_if_and_only_if_the_flag_is_set(weights):
    seen = set()
    for contract in (FULL, COMPACT):
        for seed in range(6):
            with judge(weights, ToyModel(seed), contract) as instrument:
                for verdict in instrument.score(talk(5), rationale="never"):
                    flag, score = verdict.flags["crisis_detected"], verdict.scores["crisis_handling"]
                    seen.add((flag.value, type(score).__name__))
                    assert (flag.severity != "none") == flag.value
    assert seen == {(True, "Scored"), (False, "NotApplicable")}


def test_a_judge_is_not_asked_by_a_rubric_it_was_not_trained_on(weights):
    trained = Weights(name="toy", model=weights.model, rubric_hash="0" * 64)
    with pytest.raises(ContractError, match="was trained on the rubric 000000000000"):
        judge(trained, ToyModel())


def test_too_little_probability_on_legal_answers_is_unscored_not_a_score(weights):
    strict = Weights(name="toy", model=weights.model, legal_mass_floor=0.999)
    with judge(strict, ToyModel()) as instrument:
        (verdict,) = instrument.score(talk(1))
    assert {s.reason for s in verdict.scores.values()} == {"off_contract"}
    assert verdict.flags["crisis_detected"].value is None
    reading = verdict.scores["empathy"].reading
    assert reading is not None
    assert reading.legal_mass < 0.999


def test_probes_are_looked_at_and_leave_no_cell_behind():
    model = ToyModel()
    engine = Engine(model, [65], 10_000)
    readers = [AnswerReader(FORM, lambda t: model.tokenize(t, special=False), engine.vocabulary) for _ in range(5)]
    prompts = [[65, 66, 67 + i] for i in range(5)]
    engine.answer([Question(p, r) for p, r in zip(prompts, readers, strict=True)])
    assert any(len(feed.tokens) and feed.sequence > 5 for feed in model.evaluated), "no probe was needed"
    assert all(r.done for r in readers)
    assert all(len(held) <= 1 for held in model._sequences.values())
