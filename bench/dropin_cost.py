"""What judging a battery has to cost at least: every token that differs from the call before, and the answer, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aipsy_judge.asked_prompt import asked_prompts
from aipsy_judge.contracts import load_contract
from aipsy_judge.conversation import Conversation
from aipsy_judge.local_judge import LocalJudge
from quantize.asked import distinct


@dataclass(frozen=True, slots=True)
class Ideal:
    """Tokens a call: of the prompt as it came, of it that the call before did not have, and of the answer."""

    prompt: float
    new: float
    answer: float

    @property
    def total(self) -> float:
        return self.new + self.answer


def new_tokens(prompts: Iterable[Sequence[int]], known: Sequence[int]) -> list[int]:
    """Of each prompt, the tokens behind what it shares with the one before; before the first, `known` was evaluated."""
    found, before = [], known
    for prompt in prompts:
        shared = next((n for n, (a, b) in enumerate(zip(prompt, before, strict=False)) if a != b), None)
        found.append(len(prompt) - (min(len(prompt), len(before)) if shared is None else shared))
        before = prompt
    return found


def ideal_of(judge: LocalJudge, asked: Mapping[str, Conversation], answers: Sequence[str]) -> Ideal:
    """Of the calls in their order; the judge's own prompt is at hand. `answers` are the judge's texts."""
    contract = load_contract(judge.lane.contract)
    # The shortest first: where flags are asked before the reply is shown, the others go on from there.
    prompts = [
        sorted(distinct(asked_prompts(judge.backend, contract, judge.rubric, c, len(c.messages) - 1)), key=len)
        for c in asked.values()
    ]
    new = new_tokens([prompt for call in prompts for prompt in call], judge.engine.head)
    answer = sum(len(judge.tokenize_answer(text)) for text in answers)
    calls = len(prompts)
    return Ideal(sum(len(call[-1]) for call in prompts) / calls, sum(new) / calls, answer / calls)
