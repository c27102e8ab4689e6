"""A row trains the slots by what is known, fixed text a little, and nothing that nobody gave."""

from __future__ import annotations

import dataclasses
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from drawn_targets import drawn_target
from hypothesis import given, settings
from hypothesis import strategies as st
from render_setup import ODD, RUBRIC, TALK, WORDS, pen_for
from toy_model import ToyModel

from aipsy_judge.asked_prompt import Prompts, asked_prompts
from aipsy_judge.bench_contract import bench_form
from aipsy_judge.contract import COMPACT, COMPACT_V2, FULL, Contract
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.engine.encode import encode, end_of_turn
from aipsy_judge.errors import InputError
from aipsy_judge.rubric import Rubric
from quantize.free_answers import Written, kind_of
from training.preflight import lines, preflight
from training.render import prompts_of
from training.render_answer import Pen, plain_words, render_row, write
from training.rows import END, RATIONALE, SKELETON, Row, Target, fault_of
from training.target_rows import FlagTarget, MetricTarget, TargetRow

MODEL = ToyModel()
PENS = {(c.name, r.name): pen_for(MODEL, r, c) for c in (FULL, COMPACT, COMPACT_V2) for r in (RUBRIC, ODD)}
UNKNOWN = MetricTarget("unscored", None, None, None)


def prompts_for(rubric: Rubric, contract: Contract) -> Prompts:
    return asked_prompts(MODEL, contract, rubric, TALK, 1)


PROMPTS = {(c.name, r.name): prompts_for(r, c) for c in (FULL, COMPACT, COMPACT_V2) for r in (RUBRIC, ODD)}


def row_of(item: TargetRow, contract: Contract, rubric: Rubric = RUBRIC, pen: Pen | None = None) -> Row:
    row, _ = render_row(pen or PENS[contract.name, rubric.name], PROMPTS[contract.name, rubric.name], item)
    assert fault_of(row) is None
    return row


def known(**metrics: MetricTarget) -> TargetRow:
    """A whole target without danger, some metrics changed."""
    item = next(
        i for n in range(99) if (i := drawn_target(RUBRIC, n, whole=True)).flags["crisis_detected"].value is False
    )
    return dataclasses.replace(item, metrics={**item.metrics, **metrics})


def clear(**metrics: MetricTarget) -> TargetRow:
    """One that no p_fail moves across a threshold."""
    good = MetricTarget("scored", 4.0, 0.0, 0.0)
    return known(**{m: good for m in RUBRIC.metric_names if m != "crisis_handling"} | metrics)


def text(tokens: list[int] | tuple[int, ...]) -> str:
    return b"".join(MODEL.vocabulary[t] for t in tokens).decode()


def branches(row: Row) -> list[str]:
    """The answers, each along the labels' way up to where its end is predicted."""
    ends = [row.path(t.at) for t in row.targets if t.kind == END]
    return [
        text([row.tokens[i] for i in path[1 + max(map(path.index, set(path) & set(row.starts))) :]]) for path in ends
    ]


@pytest.mark.parametrize("rubric", [RUBRIC, ODD], ids=lambda r: r.name)
@pytest.mark.parametrize("contract", [FULL, COMPACT, COMPACT_V2], ids=lambda c: c.name)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=12, deadline=None)
def test_every_known_slot_weighs_about_one_and_fixed_text_a_tenth(
    rubric: Rubric, contract: Contract, seed: int
) -> None:
    pen = PENS[contract.name, rubric.name]
    item = drawn_target(rubric, seed)
    row = row_of(item, contract, rubric)
    weights: Counter[str] = Counter()
    first: Counter[str] = Counter()
    for target in row.targets:
        if target.slot:
            weights[target.slot] += target.weight  # type: ignore[assignment]
            first[target.slot] = max(first[target.slot], target.weight)  # type: ignore[assignment]
        else:
            assert target.weight == pen.weight
            assert len(target.tokens) == 1
    wanted = {slot.name for form in pen.forms.values() for slot in write(pen, form, item).slots if slot.wanted.shares}
    assert set(weights) == wanted
    # the first branching weighs 1; those beyond it at most as much each as the share that gets there
    for name in wanted:
        assert first[name] == pytest.approx(1.0)
        assert weights[name] < 4.0


@given(seed=st.integers(0, 10**6))
@settings(max_examples=12, deadline=None)
def test_the_branchings_of_a_slot_are_together_the_cross_entropy_of_whole_options(seed: int) -> None:
    """With any conditional distribution over the tokens at every branching, p(option) = product along its way."""
    pen, item = PENS["full", "odd"], drawn_target(ODD, seed)
    row = row_of(item, FULL, ODD)
    draw = random.Random(seed)
    model = {(t.at, token): draw.random() + 0.01 for t in row.targets if t.slot for token in t.tokens}
    total = {at: sum(p for (a, _), p in model.items() if a == at) for at, _ in model}
    (form,) = pen.forms.values()
    for slot in write(pen, form, item).slots:
        targets = [t for t in row.targets if t.slot == slot.name]
        if not targets:
            continue
        trained = -sum(
            t.weight * share * math.log(model[t.at, token] / total[t.at])
            for t in targets
            for token, share in zip(t.tokens, t.shares, strict=True)
        )
        start = min(t.at for t in targets)
        whole = 0.0
        for label, share in slot.wanted.shares.items():
            at, probability = start, 1.0
            for token, chosen in slot.ways[label]:
                if chosen:
                    probability *= model[at, token] / total[at]
                at = next(
                    (i for i, (p, t) in enumerate(zip(row.parents, row.tokens, strict=True)) if p == at and t == token),
                    -1,
                )
            whole -= share * math.log(probability)
        assert trained == pytest.approx(whole)


def test_an_answer_is_whole_and_ends_in_the_token_that_ends_a_turn() -> None:
    pen = PENS["full", RUBRIC.name]
    labels = write(pen, pen.forms["answer"], clear()).labels
    for words in (None, WORDS):
        row = row_of(dataclasses.replace(clear(), rationale=words), FULL)
        (answer,) = branches(row)
        assert answer == pen.forms["answer"].render(labels, plain_words(words or ""))
        assert row.targets[-1].kind == END
        assert row.targets[-1].tokens == (end_of_turn(MODEL),)


def test_every_token_of_the_answer_is_predicted_and_none_of_the_prompt() -> None:
    row = row_of(known(), FULL)
    assert row.tokens[: row.prompt_tokens] == tuple(PROMPTS["full", RUBRIC.name]["answer"])
    (end,) = (t for t in row.targets if t.kind == END)
    path = row.path(end.at)[row.prompt_tokens :]
    predicted = {(t.at, token) for t in row.targets for token in t.tokens}
    missing = [i for i in path if (row.parents[i], row.tokens[i]) not in predicted]
    # all but the quote that closes an empty rationale
    assert text([row.tokens[i] for i in missing]) == '"'
    assert missing == [path[-2]]


def test_without_a_rationale_none_is_learnt_but_where_to_stop_is() -> None:
    row = row_of(known(), FULL)
    assert not any(t.kind == RATIONALE for t in row.targets)
    (end,) = (t for t in row.targets if t.kind == END)
    opened = row.path(end.at)[-3]  # the quote that opens it; then the one that closes it, then the brace
    assert text([row.tokens[opened]]).endswith('"')
    assert not [t for t in row.targets if t.at == opened]


@pytest.mark.parametrize("length", [1, 5, 40])
def test_a_rationale_never_outweighs_the_slots(length: int) -> None:
    heavy = dataclasses.replace(PENS["full", RUBRIC.name], weight=1.0)
    words = "x " * length
    row = row_of(dataclasses.replace(clear(), rationale=words), FULL, pen=heavy)
    spoken = [t.weight for t in row.targets if t.kind == RATIONALE]
    assert len(spoken) >= length
    assert 0 < sum(spoken) <= sum(t.weight for t in row.targets if t.slot) * (1 + 1e-9)
    assert max(spoken) <= 1.0


def test_a_rationale_is_left_out_where_a_label_before_it_is_one_that_nobody_gave() -> None:
    for item, kept in ((clear(), True), (clear(empathy=UNKNOWN), False)):
        row = row_of(dataclasses.replace(item, rationale=WORDS), FULL)
        assert any(t.kind == RATIONALE for t in row.targets) is kept


def test_no_words_follow_the_context_that_the_benchmark_asks_for_and_nobody_gave() -> None:
    pen = dataclasses.replace(PENS["full", RUBRIC.name], forms={"answer": bench_form()})
    row = row_of(dataclasses.replace(clear(), rationale="Warm."), FULL, pen=pen)
    assert any(t.slot == "empathy" for t in row.targets)
    assert not any(t.kind == RATIONALE or t.slot == "user_emotional_state" for t in row.targets)


def test_a_rationale_longer_than_the_engine_writes_is_left_out_not_cut() -> None:
    for words, kept in (("a " * 40, True), ("a " * 97, False)):
        row = row_of(dataclasses.replace(clear(), rationale=words), FULL)
        assert any(t.kind == RATIONALE for t in row.targets) is kept
        assert any(t.slot for t in row.targets)


def test_words_that_praise_what_the_label_fails_are_left_out() -> None:
    for p_fail, kept in ((0.02, True), (0.9, False)):
        item = clear(empathy=MetricTarget("scored", 3.0, p_fail, 0.0))
        row = row_of(dataclasses.replace(item, rationale="Warm."), FULL)
        assert any(t.kind == RATIONALE for t in row.targets) is kept


def test_rationales_can_be_left_out_altogether() -> None:
    pen = dataclasses.replace(PENS["full", RUBRIC.name], rationales=False)
    row = row_of(dataclasses.replace(clear(), rationale="Warm."), FULL, pen=pen)
    assert not any(t.kind == RATIONALE for t in row.targets)


def test_an_unscored_metric_trains_nothing_and_the_answer_goes_on_legally() -> None:
    item = known(empathy=UNKNOWN)
    row = row_of(item, FULL)
    assert "empathy" not in {t.slot for t in row.targets}
    assert "advice_safety" in {t.slot for t in row.targets}
    (answer,) = branches(row)
    assert '"empathy": ' in answer
    assert '"crisis_handling": null' in answer


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_what_hangs_on_a_flag_is_na_in_the_answer_if_and_only_if_the_flag_is_not_set(seed: int) -> None:
    pen = PENS["full", RUBRIC.name]
    labels = write(pen, pen.forms["answer"], drawn_target(RUBRIC, seed)).labels
    assert (labels["crisis_handling"] == "N/A") == (labels["crisis_detected"] == "false")
    assert (labels["crisis_severity"] == "none") == (labels["crisis_detected"] == "false")


def test_lines_of_which_nothing_is_known_are_left_out_and_the_flag_decides_what_hangs_on_it() -> None:
    row = row_of(known(empathy=UNKNOWN), COMPACT)
    asked = [line.partition(":")[0] for line in branches(row)]
    rest = [m for m in RUBRIC.metric_names if m not in ("empathy", "crisis_handling")]
    assert asked == ["crisis_detected", *rest]
    crisis = FlagTarget(True, 0.9, "direct", {"none": 0.0, "indirect": 0.2, "direct": 0.8})
    item = known(crisis_handling=MetricTarget("scored", 4.0, 0.1, 0.0))
    with_crisis = row_of(dataclasses.replace(item, flags={"crisis_detected": crisis}), COMPACT)
    assert "crisis_handling" in {t.slot for t in with_crisis.targets}


@pytest.mark.parametrize("contract", [COMPACT, COMPACT_V2], ids=lambda c: c.name)
def test_the_turn_ends_after_a_lines_newline_and_every_line_leaves_the_last_token_of_its_prompt(
    contract: Contract,
) -> None:
    row = row_of(known(), contract)
    ends = [t for t in row.targets if t.kind == END]
    assert {t.tokens for t in ends} == {(end_of_turn(MODEL),)}
    assert all(line.endswith("\n") for line in branches(row))
    left = Counter(
        tuple(PROMPTS[contract.name, RUBRIC.name][name]) for name in (b.partition(":")[0] for b in branches(row))
    )
    found = {tuple(row.tokens[i] for i in row.path(start)): start for start in row.starts}
    assert found.keys() == left.keys()
    for prompt, lines_of_it in left.items():
        assert sum(t.at == found[prompt] and t.kind == SKELETON for t in row.targets) == lines_of_it
    assert len(ends) == 6
    assert sorted(left.values()) == ([6] if contract is COMPACT else [1, 5])


@pytest.mark.parametrize("contract", [FULL, COMPACT, COMPACT_V2], ids=lambda c: c.name)
def test_an_answer_that_is_said_as_it_is_trained_passes_as_clean_where_a_judge_writes_freely(
    contract: Contract,
) -> None:
    row = row_of(dataclasses.replace(clear(), rationale=WORDS), contract)
    assert {t for target in row.targets if target.kind == END for t in target.tokens} <= MODEL.end_tokens
    for answer in branches(row):
        form = answer.partition(":")[0] if contract.lines else "answer"
        assert kind_of(Written(0, form, (), answer, ended=True), contract, RUBRIC) == "clean"


def test_an_item_of_which_nothing_is_known_has_no_targets() -> None:
    unread = FlagTarget(None, None, None, None)
    item = dataclasses.replace(
        known(), metrics=dict.fromkeys(RUBRIC.metric_names, UNKNOWN), flags={"crisis_detected": unread}
    )
    for contract in (FULL, COMPACT):
        assert not row_of(item, contract).targets


@pytest.mark.parametrize("words", ['say "it"', "a\\nb", "tab\there", "line\nbreak", "\x07bell", "ünï 🙂 “curly”"])
def test_words_are_such_as_the_engines_grammar_lets_a_judge_write(words: str) -> None:
    from aipsy_judge.engine.prose import prose_mask

    plain = plain_words(words)
    mask = prose_mask(MODEL.vocabulary, MODEL.end_tokens)
    assert all(mask.allowed[t] for t in MODEL.tokenize(plain, special=False))


def test_the_window_shows_the_newest_messages_and_an_empty_turn_is_not_asked() -> None:
    item = dataclasses.replace(known(), turn=2)
    whole = prompts_of(MODEL, COMPACT, RUBRIC, TALK, item, None)  # type: ignore[arg-type]
    newest = prompts_of(MODEL, COMPACT, RUBRIC, TALK, item, 2)  # type: ignore[arg-type]
    assert whole is not None
    assert newest is not None
    assert whole["empathy"] == encode(MODEL, COMPACT.messages(RUBRIC, TALK, 3))
    assert newest["empathy"] == encode(MODEL, COMPACT.messages(RUBRIC, Conversation("c", TALK.messages[2:]), 1))
    silent = Conversation("c", (Message("user", "hello"), Message("assistant", "  ")))
    assert prompts_of(MODEL, COMPACT, RUBRIC, silent, known(), None) is None  # type: ignore[arg-type]


def test_preflight_counts_what_each_row_trains_and_says_it() -> None:
    items = [known(), known(empathy=UNKNOWN)]
    rows = [row_of(i, COMPACT) for i in items]
    rows[0] = dataclasses.replace(rows[0], repeats=3)
    found = preflight(rows, MODEL, "here")
    assert (found.rows, found.shown) == (2, 4)
    assert found.slots["empathy"] == 1
    assert found.slots["advice_safety"] == 2
    assert found.trained["end"].least == 5
    assert found.trained["end"].most == 6
    assert found.trained["all"].most == len(rows[0].targets)
    assert sum(found.weight.values()) == pytest.approx(1.0, abs=1e-3)
    said = "\n".join(lines(found))
    assert "2 rows, shown 4 times" in said
    assert "empathy 1" in said


@pytest.mark.parametrize("contract", [FULL, COMPACT, COMPACT_V2], ids=lambda c: c.name)
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda row: dataclasses.replace(row, targets=()), "trains nothing"),
        (lambda row: _without(row, lambda t: bool(t.slot)), "trains nothing"),
        (lambda row: _with_end(row, 65), "token that stops a judge"),
        (lambda row: _prompt(row, lambda p: [*p[:-1], 66]), "does not end as the chat template"),
        (lambda row: _prompt(row, lambda p: [p[0], *p]), "begins with BOS twice"),
        (lambda row: _prompt(row, lambda p: [*p[:5], p[0], *p[5:]]), "3 or 4 times"),
        (lambda row: _early(row), "do not all leave the end of a prompt"),
    ],
)
def test_a_row_that_would_train_the_wrong_thing_stops_the_run(contract: Contract, spoil: Any, said: str) -> None:
    good = row_of(known(), contract)
    preflight([good, good], MODEL, "here")
    with pytest.raises(InputError, match=said) as caught:
        preflight([good, spoil(good)], MODEL, "here")
    assert caught.value.where == "here"


def _without(row: Row, gone: Callable[[Target], bool]) -> Row:
    return dataclasses.replace(row, targets=tuple(t for t in row.targets if not gone(t)))


def _with_end(row: Row, token: int) -> Row:
    targets = (dataclasses.replace(t, tokens=(token,)) if t.kind == END else t for t in row.targets)
    return dataclasses.replace(row, targets=tuple(targets))


def _prompt(row: Row, change: Callable[[list[int]], list[int]]) -> Row:
    """The same answers after another prompt."""
    count = row.prompt_tokens
    prompt = change(list(row.tokens[:count]))
    more = len(prompt) - count
    positions = (*range(len(prompt)), *(p + more for p in row.positions[count:]))
    parents = (*range(-1, len(prompt) - 1), *(p + more for p in row.parents[count:]))
    targets = tuple(dataclasses.replace(t, at=t.at + more) for t in row.targets)
    return Row(row.item_id, (*prompt, *row.tokens[count:]), positions, parents, targets)


def _early(row: Row) -> Row:
    """An answer that leaves the prompt before its end."""
    tokens, at = row.tokens, row.prompt_tokens - 4
    return Row(row.item_id, (*tokens, 65), (*row.positions, at + 1), (*row.parents, at), row.targets)


def test_nothing_to_train_on_is_said_before_anything_is_loaded() -> None:
    with pytest.raises(InputError, match="no rows"):
        preflight([], MODEL, "here")
