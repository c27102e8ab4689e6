"""The engine against the plainest way of doing the same: every prompt by itself, token by token."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import ToyModel

from aipsy_judge.answer import NA, AnswerForm, Option, Slot, compact_forms, full_form
from aipsy_judge.engine.choice import Vocabulary
from aipsy_judge.engine.run import Engine, Question
from aipsy_judge.engine.slots import AnswerReader
from aipsy_judge.engine.tree import common_prefix
from aipsy_judge.rubric import load_rubric

NUMBERS = tuple(Option(str(v), str(v)) for v in (0, 1, 2, 10))
FLAG = Slot("crisis", (Option("false", "false"), Option("true", "true")))
FORM = AnswerForm(
    (
        '{"crisis":', FLAG,
        ',"severity":', Slot("severity", tuple(Option(x, f'"{x}"') for x in ("none", "in", "indirect")),
                             ("crisis", {"false": ("none",), "true": ("in", "indirect")})),
        ',"empathy": ', Slot("empathy", (*NUMBERS, Option(NA, '"N/A"'))),
        ',"tone":', Slot("tone", (*NUMBERS, Option(NA, "null"))),
        ',"rationale":"',
    ),
    rationale=True,
    closing='"}',
)  # fmt: skip


def greedy(model: ToyModel, prompt: list[int], form: AnswerForm) -> dict[str, str]:
    """Grammar-constrained greedy decoding over the list of all legal answers, one fresh sequence, nothing shared.

    Fixed text is taken in its usual tokens: all legal answers are tokenised whole, and what they have in common is
    fed. At a choice the most probable token wins that continues any legal answer.
    """
    answers = legal_answers(form)
    path: list[int] = []
    while len(answers) > 1:
        # only the next slot is open: answers that agree up to it differ in it, or behind it, and text decides
        done = b"".join(model.vocabulary[t] for t in path)
        spelled = [path + model.tokenize(a.encode()[len(done) :].decode(), special=False) for a in answers]
        usual = [model.tokenize(a, special=False) for a in answers]
        if all(u[: len(path)] == path for u in usual):
            spelled = usual
        shared = common_prefix(spelled)
        path = spelled[0][:shared]
        done = b"".join(model.vocabulary[t] for t in path)
        rests = [a.encode()[len(done) :] for a in answers]
        legal = [t for t, piece in enumerate(model.vocabulary) if piece and any(r.startswith(piece) for r in rests)]
        logits = model.logits([*prompt, *path])
        token = max(legal, key=lambda t: logits[t])
        path.append(token)
        answers = [a for a, r in zip(answers, rests, strict=True) if r.startswith(model.vocabulary[token])]
    return parse(form, answers[0])


def legal_answers(form: AnswerForm) -> list[str]:
    out = []
    for labels in product(*([o.label for o in s.options] for s in form.slots)):
        chosen = dict(zip([s.name for s in form.slots], labels, strict=True))
        try:
            out.append(form.render(chosen).removesuffix(form.closing))
        except ValueError:
            continue
    return out


def parse(form: AnswerForm, answer: str) -> dict[str, str]:
    for labels in product(*([o.label for o in s.options] for s in form.slots)):
        chosen = dict(zip([s.name for s in form.slots], labels, strict=True))
        try:
            if form.render(chosen).removesuffix(form.closing) == answer:
                return chosen
        except ValueError:
            continue
    raise AssertionError(answer)


def ask(model: ToyModel, prompts: list[list[int]], form: AnswerForm, cells: int = 10**6) -> list[AnswerReader]:
    engine = Engine(model, prompts[0][: common_prefix(prompts) // 2], cells)
    readers = [AnswerReader(form, lambda t: model.tokenize(t, special=False), engine.vocabulary) for _ in prompts]
    engine.answer([Question(p, r) for p, r in zip(prompts, readers, strict=True)])
    return readers


def growing_prompts(draw_lengths: list[int], seed: int) -> list[list[int]]:
    """Prompts as turns make them: a trunk that grows, a tail of their own each."""
    rng = np.random.default_rng(seed)
    trunk: list[int] = rng.integers(97, 122, 9).tolist()
    prompts = []
    for length in draw_lengths:
        trunk = trunk + rng.integers(97, 122, length).tolist()
        prompts.append([*trunk, 33, 33])
    return prompts


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_every_choice_is_that_of_grammar_constrained_greedy_decoding_of_a_fresh_prompt(lengths, seed):
    prompts = growing_prompts(lengths, seed)
    readers = ask(ToyModel(seed), prompts, FORM)
    model = ToyModel(seed)
    assert [r.labels for r in readers] == [greedy(model, p, FORM) for p in prompts]


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_distribution_is_the_product_of_the_shares_along_the_usual_spelling(seed):
    slot = Slot("tone", tuple(Option(x, f'"{x}"') for x in ("none", "in", "indirect")))
    form = AnswerForm(("x:", slot, "\n"))
    model = ToyModel(seed)
    prompt = [65, 66]
    (reader,) = ask(ToyModel(seed), [prompt], form)
    # after `x:` a quote is forced; `none` | `in` ... then `in"` | `indirect`: each spelled in its usual tokens
    spelled = {o.label: model.tokenize(f"x:{o.text}\n", special=False) for o in slot.options}
    start = common_prefix(list(spelled.values()))

    def share(path: list[int], rests: dict[str, bytes], towards: str) -> float:
        logits = model.logits([*prompt, *path]).astype(float)
        meaning = {t: {k for k, r in rests.items() if r.startswith(p)} for t, p in enumerate(model.vocabulary) if p}
        usual = {tokens[len(path)] for k, tokens in spelled.items() if k in rests}
        mass = {t: math.exp(logits[t]) for t, ks in meaning.items() if ks and (t in usual or len(ks) == 1)}
        mine = spelled[towards][len(path)]
        good = sum(m for t, m in mass.items() if t == mine or (t not in usual and meaning[t] == {towards}))
        return good / sum(mass.values())

    text = {k: f'x:"{k}"\n'.encode() for k in spelled}
    weights = {}
    for label, tokens in spelled.items():
        weight, path, alive = 1.0, tokens[:start], dict(text)
        while len(alive) > 1:
            done = sum(len(model.vocabulary[t]) for t in path)
            weight *= share(path, {k: v[done:] for k, v in alive.items()}, label)
            alive = {k: v for k, v in alive.items() if spelled[k][: len(path) + 1] == tokens[: len(path) + 1]}
            path = tokens[: common_prefix([spelled[k] for k in alive])] if len(alive) > 1 else path
        weights[label] = weight
    total = sum(weights.values())
    reading = reader.readings["tone"]
    assert reading.distribution == pytest.approx({k: w / total for k, w in weights.items()})
    assert sum(reading.distribution.values()) == pytest.approx(1.0)
    assert 0.0 <= reading.legal_mass <= 1.0


def test_an_option_that_wins_only_as_a_whole_is_marked_as_near_tie():
    """Greedily the first token decides: 0.4 for `a` against 0.3 + 0.3 for the two spellings of another option."""

    class Tied(ToyModel):
        def logits(self, tokens):
            out = np.full(len(self.vocabulary), -50.0, dtype=np.float32)
            at = self.vocabulary.index
            text = b"".join(self.vocabulary[t] for t in tokens)
            if text.endswith(b"x:"):
                out[at(b"n")], out[at(b"nul")], out[at(b"null")] = 0.0, math.log(0.9), math.log(0.9)
                out[at(b"7")] = math.log(1.2)
            return out

    form = AnswerForm(("x:", Slot("tone", (Option("seven", "7"), Option("none", "null"))), "\n"))
    (reader,) = ask(Tied(), [[65]], form)
    reading = reader.readings["tone"]
    assert reading.label == "seven"
    assert reading.near_tie
    # n, nul and null all mean the second option: (1 + .9 + .9) / (1 + .9 + .9 + 1.2)
    assert reading.distribution["none"] == pytest.approx(2.8 / 4.0)


@pytest.mark.parametrize("gap", [0.0, 1e-6, -1e-6, 1e-3])
def test_two_options_a_hair_apart_are_decided_by_the_larger_logit_and_the_first_at_a_draw(gap):
    class Hair(ToyModel):
        def logits(self, tokens):
            out = np.full(len(self.vocabulary), -9.0, dtype=np.float32)
            out[self.vocabulary.index(b"3")], out[self.vocabulary.index(b"4")] = 1.0, 1.0 + gap
            return out

    form = AnswerForm(("x:", Slot("empathy", tuple(Option(str(v), str(v)) for v in range(6))), "\n"))
    (reader,) = ask(Hair(), [[65]], form)
    assert reader.labels["empathy"] == ("4" if np.float32(1.0 + gap) > np.float32(1.0) else "3")


def test_a_value_that_begins_like_another_is_read_to_its_end():
    class Ten(ToyModel):
        def logits(self, tokens):
            out = np.zeros(len(self.vocabulary), dtype=np.float32)
            text = b"".join(self.vocabulary[t] for t in tokens)
            out[self.vocabulary.index(b"1")] = 9.0  # an odd spelling of ten: `1`, `0`
            out[self.vocabulary.index(b"0" if text.endswith(b"1") else b",")] = 8.0
            return out

    form = AnswerForm(('"tone":', Slot("tone", NUMBERS), ',"', Slot("empathy", NUMBERS), "}"))
    (reader,) = ask(Ten(), [[65]], form)
    assert reader.labels["tone"] == "10"
    assert reader.answer() == '"tone":10,"10}'


def test_a_forced_slot_is_not_read_and_claims_no_probability():
    for seed in range(20):
        (reader,) = ask(ToyModel(seed), [[65, seed]], FORM)
        if reader.labels["crisis"] == "false":
            assert reader.readings["severity"].forced
            assert reader.readings["severity"].distribution == {}
            assert reader.readings["severity"].legal_mass is None
            return
    raise AssertionError("no seed gave a cleared flag")


@pytest.mark.parametrize("form", [full_form(load_rubric()), compact_forms(load_rubric())["empathy"]])
def test_the_text_of_an_answer_is_what_the_reader_spelled(form):
    model = ToyModel(3)
    (reader,) = ask(model, [[65, 66, 67]], form)
    assert reader.answer().removesuffix(form.closing) == reader.text


def test_temperature_changes_probabilities_and_never_the_value():
    form = AnswerForm(("x:", Slot("empathy", tuple(Option(str(v), str(v)) for v in range(6))), "\n"))
    model = ToyModel(5)
    sharp, soft = (
        AnswerReader(form, lambda t: model.tokenize(t, special=False), Vocabulary(model.vocabulary), {"empathy": t})
        for t in (1.0, 4.0)
    )
    for reader in (sharp, soft):
        reader.take(model.logits([65, *reader.request().feed]))
    assert sharp.labels == soft.labels
    top = sharp.labels["empathy"]
    assert sharp.readings["empathy"].distribution[top] > soft.readings["empathy"].distribution[top] > 1 / 6
    assert sharp.readings["empathy"].legal_mass == soft.readings["empathy"].legal_mass
