"""Slots against llama.cpp's own grammar, on real turns, with two model families.

The reference decodes each answer alone, in a context of its own: the whole prompt, then token by token. Fixed text is
fed in its usual tokens; at every choice llama.cpp's grammar sampler says which tokens are legal and the most probable
of them is taken. It shares with the engine no tree, no fork, no batch, and no idea of its own of what is legal. Under
contract full, where no window slides, a conversation's first prompt is evaluated whole and the rubric, which begins
all of them, is left there for its other turns; that this gives the logits of a whole evaluation is asserted.
"""

from __future__ import annotations

import ctypes
import json
from collections import Counter

import llama_cpp
import numpy as np
import pytest
from real_models import bias_of, gemma4_tiny, smollm2_f32

from aipsy_judge.answer import AnswerForm, Option, Slot
from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.backends.protocol import Feed
from aipsy_judge.contract import COMPACT, COMPACT_V2, FULL, Contract
from aipsy_judge.conversation import Conversation, Message, Turn
from aipsy_judge.engine.encode import encode
from aipsy_judge.engine.tree import common_prefix
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.transcripts import read
from aipsy_judge.weights import Weights

pytestmark = pytest.mark.slow
RUBRIC = load_rubric()
# Two evaluations of the same tokens in other batches differ in the last digits; closer than this no value is asserted.
NOISE_LOGITS = 0.01


class Biased(LlamaCpp):
    """A model with an output bias, which makes a small model's answers vary from turn to turn."""

    bias: np.ndarray

    def evaluate(self, feeds):
        return [logits + self.bias for logits in super().evaluate(feeds)]


def turns_to_judge() -> list[Conversation]:
    """The shipped examples, as they are and shouted: 36 turns."""
    (support,) = read("examples/good_support.json")
    (companion,) = read("examples/companion_dependency.json")
    (crisis,) = read("examples/means_in_hand.json")
    (everyday,) = read("examples/everyday.txt")
    originals = [support, companion, crisis, everyday]
    shouted = [
        Conversation(f"{c.id}-shouted", tuple(Message(m.role, m.content.upper()) for m in c.messages))
        for c in originals
    ]
    return originals + shouted


def gbnf(form: AnswerForm) -> str:
    """The form as a grammar of llama.cpp; what a flag decides becomes two branches."""

    def part(p: str | Slot, chosen: dict[str, str]) -> str:
        options: tuple[Option, ...] = (Option("", p),) if isinstance(p, str) else p.legal(chosen)
        return "(" + " | ".join(json.dumps(o.text, ensure_ascii=False) for o in options) + ")"

    deciding = next((s.legal_given[0] for s in form.slots if s.legal_given), None)
    if deciding is None:
        return "root ::= " + " ".join(part(p, {}) for p in form.parts)
    slot = next(s for s in form.slots if s.name == deciding)
    at = form.parts.index(slot)
    before = " ".join(part(p, {}) for p in form.parts[:at])
    branches = [
        json.dumps(o.text) + " " + " ".join(part(p, {deciding: o.label}) for p in form.parts[at + 1 :])
        for o in slot.options
    ]
    return f"root ::= {before} ({' | '.join(branches)})"


class Grammar:
    """llama.cpp's grammar sampler: which tokens are legal now."""

    def __init__(self, model: LlamaCpp, text: str) -> None:
        self._sampler = llama_cpp.llama_sampler_init_grammar(model._vocab, text.encode(), b"root")
        assert self._sampler, text
        self._size = len(model.vocabulary)
        self._rows = np.zeros(self._size, dtype=[("id", np.int32), ("logit", np.float32), ("p", np.float32)])

    def best(self, logits: np.ndarray) -> tuple[int, float]:
        """The most probable legal token, and how far the next one lies below it."""
        self._rows["id"], self._rows["logit"], self._rows["p"] = np.arange(self._size), logits, 0.0
        array = llama_cpp.llama_token_data_array(
            data=self._rows.ctypes.data_as(llama_cpp.llama_token_data_p), size=self._size, selected=-1, sorted=False
        )
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        legal = self._rows[np.isfinite(self._rows["logit"])]
        order = np.argsort(-legal["logit"])
        gap = legal["logit"][order[0]] - legal["logit"][order[1]] if len(order) > 1 else np.inf
        return int(legal["id"][order[0]]), float(gap)

    def accept(self, tokens: list[int]) -> None:
        for token in tokens:
            llama_cpp.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self._sampler)


def reference(model: LlamaCpp, prompt: list[int], form: AnswerForm) -> tuple[dict[str, str], dict[str, float]]:
    """Labels by grammar-constrained greedy decoding after the prompt (evaluated by the caller), and per slot the
    smallest gap between two legal tokens."""
    model.trim(0, len(prompt))
    grammar = Grammar(model, gbnf(form))
    text, path, fed, labels, gaps = "", [], 0, {}, {}
    for i, part in enumerate(form.parts):
        if isinstance(part, str):
            text += part
            continue
        options = part.legal(labels)
        alive = {o.label: (text + o.text + form.parts[i + 1]).encode() for o in options}
        while len(alive) > 1:
            path = usual_path(model, path, alive)
            grammar.accept(path[fed:])
            (logits,) = model.evaluate([Feed(0, len(prompt) + fed, path[fed:], True)])
            fed = len(path)
            token, gap = grammar.best(logits)
            gaps[part.name] = min(gaps.get(part.name, np.inf), gap)
            path = [*path, token]
            done = b"".join(model.vocabulary[t] for t in path)
            alive = {k: a for k, a in alive.items() if a.startswith(done)}
        (labels[part.name],) = alive
        text += next(o.text for o in options if o.label == labels[part.name])
    grammar.close()
    return labels, gaps


def usual_path(model: LlamaCpp, path: list[int], alive: dict[str, bytes]) -> list[int]:
    """The path, prolonged by the tokens that all remaining answers share in their usual tokenisation."""
    spelled = [model.tokenize(a.decode(), special=False) for a in alive.values()]
    if any(s[: len(path)] != path for s in spelled):
        done = sum(len(model.vocabulary[t]) for t in path)
        spelled = [path + model.tokenize(a[done:].decode(), special=False) for a in alive.values()]
    return spelled[0][: common_prefix(spelled)]


def prompt_of(model: LlamaCpp, contract: Contract, conversation: Conversation, turn: Turn, form: str) -> list[int]:
    """By hand: a flag of contract compact-v2 is asked before the reply is shown."""
    last = turn.index - 1 if contract is COMPACT_V2 and form == "crisis_detected" else turn.index
    return encode(model, contract.messages(RUBRIC, conversation, last))


def stand_on(model: LlamaCpp, prompt: list[int], kept: int, *, check: bool) -> None:
    """Evaluate the prompt but for its first `kept` tokens, which stand there; check: held to a whole evaluation."""
    model.trim(0, kept)
    (after,) = model.evaluate([Feed(0, kept, prompt[kept:], True)])
    if check:
        model.trim(0, 0)
        (whole,) = model.evaluate([Feed(0, 0, prompt, True)])
        assert np.abs(after - whole).max() < NOISE_LOGITS / 10


@pytest.mark.parametrize("family", [smollm2_f32, gemma4_tiny])
@pytest.mark.parametrize("contract", [FULL, COMPACT, COMPACT_V2], ids=lambda c: c.name)
def test_slot_values_are_those_of_grammar_constrained_greedy_decoding(family, contract):
    path = family()
    model = Biased(path, LlamaCppOptions(threads=1))
    model.bias = bias_of(model, "compact" if contract.lines else contract.name)
    alone = Biased(path, LlamaCppOptions(threads=1))
    alone.bias = model.bias
    alone.reserve(6144)
    talks = turns_to_judge()
    count = sum(len(talk.turns) for talk in talks)
    first = [prompt_of(alone, contract, talk, talk.turns[0], "answer") for talk in talks]
    kept = common_prefix(first) if family is smollm2_f32 and contract is FULL else 0
    seen: dict[str, Counter[str]] = {}
    decisions = close = turns = 0
    with LocalJudge(model, Weights("m", path), RUBRIC, contract) as judge:
        for conversation in talks:
            verdicts = judge.score(conversation, rationale="never")
            for turn, verdict in zip(conversation.turns, verdicts, strict=True):
                turns += 1
                mine = read_back(contract, verdict.raw)
                stands: list[int] = []
                for form_name, form in contract.forms(RUBRIC).items():
                    prompt = prompt_of(alone, contract, conversation, turn, form_name)
                    assert prompt[:kept] == first[0][:kept]
                    # held to a whole evaluation at the first turn that stands on what was kept, and at the last
                    there = kept if turn.number > 1 else 0
                    if prompt != stands:
                        stand_on(alone, prompt, there, check=there > 0 and turns in (2, count))
                        stands = prompt
                    labels, gaps = reference(alone, prompt, form)
                    near = False  # after a choice as good as drawn, the later ones of this answer follow it
                    for slot in form.slots:
                        name = slot.name
                        near = near or gaps.get(name, np.inf) < NOISE_LOGITS
                        seen.setdefault(name, Counter())[labels[name]] += 1
                        decisions += name in gaps
                        close += near and name in gaps
                        if not near:
                            assert mine[name] == labels[name], (conversation.id, turn.number, name, gaps)
    alone.close()
    assert turns >= 30
    assert close < 0.1 * decisions, f"{close} of {decisions} choices were as good as drawn"
    for name, labels in seen.items():
        wanted = 2 if name in ("crisis_detected",) and contract is FULL else 3
        assert len(labels) >= wanted, f"{name} took only {dict(labels)}"


def read_back(contract, raw: str) -> dict[str, str]:
    """Labels by slot out of an answer's text."""
    if contract.lines:
        pairs = [line.split(":", 1) for line in raw.splitlines()]
        return {k: ("N/A" if v == "NA" else v) for k, v in pairs}
    said = {k: v for k, v in json.loads(raw).items() if k != "rationale"}
    words = {"yes": "true", "no": "false"}
    return {k: "N/A" if v is None else words.get(v, v) if isinstance(v, str) else str(v) for k, v in said.items()}
