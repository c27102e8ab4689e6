"""What a panel will cost, before anything is spent: items and tokens left to ask, a judge at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..contract import Contract
from ..conversation import Conversation
from ..journal import scan
from ..judge import Rationale
from ..rubric import Rubric
from ..runs import VERDICTS
from ..runs_key import is_final
from ..served_judge import MAX_TOKENS
from ..subjects import subjects
from ..verdict import verdict_from_dict
from .member import Member
from .prices import Price
from .tokens import answer_tokens, prompt_tokens

Done = frozenset[tuple[str, int | None]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is left to ask of one judge.

    left                   turns, or whole conversations, without a final verdict
    items                  those of them that say something: the others get theirs without being asked about
    input_tokens           of the questions; None for a judge whose weights are here: it has no price
    output_tokens          of plain answers
    most_output_tokens     if every answer used its whole budget, as models that think aloud do
    """

    member: Member
    left: int
    items: int
    input_tokens: int | None
    output_tokens: int | None
    most_output_tokens: int | None

    def cost(self, price: Price) -> float | None:
        """The price of all of it; None where no tokens are counted."""
        return self._cost(price, self.output_tokens)

    def most(self, price: Price) -> float | None:
        """The same with the most that answers can take; a question asked twice is not in it."""
        return self._cost(price, self.most_output_tokens)

    def _cost(self, price: Price, output_tokens: int | None) -> float | None:
        if self.input_tokens is None or output_tokens is None:
            return None
        return price.of(self.input_tokens, output_tokens)


def finished(run_folder: Path) -> Done:
    """What a run folder holds final verdicts for, as (hash of the conversation, turn); nothing where there is none."""
    found: set[tuple[str, int | None]] = set()

    def take(line: dict[str, Any], _: int) -> None:
        verdict = verdict_from_dict(line)
        if is_final(verdict):
            found.add((line["conversation_hash"], verdict.turn))

    path = run_folder / VERDICTS
    if path.exists():
        scan(path, take)
    return frozenset(found)


def estimate(
    members: Sequence[Member],
    conversations: Iterable[Conversation],
    rubric: Rubric,
    contract: Contract,
    rationale: Rationale,
    done: Mapping[str, Done],
) -> list[Estimate]:
    """An estimate for each judge, in one reading of the input. `done`: what each judge, by name, has answered."""
    left, items, tokens = Counter[str](), Counter[str](), Counter[str]()
    for conversation in conversations:
        whole = conversation.content_hash
        for subject in subjects(conversation, rubric):
            lacking = [m for m in members if (whole, subject.turn) not in done.get(m.name, frozenset())]
            left.update(m.name for m in lacking)
            if subject.empty:
                continue
            asks = any(m.server is not None for m in lacking)
            count = prompt_tokens(rubric, contract, conversation, subject.upto, rationale) if asks else 0
            for member in lacking:
                items[member.name] += 1
                tokens[member.name] += count
    answer = answer_tokens(rubric, rationale)
    return [_estimate(m, left[m.name], items[m.name], tokens[m.name], answer) for m in members]


def _estimate(member: Member, left: int, items: int, tokens: int, answer: int) -> Estimate:
    if member.server is None:
        return Estimate(member, left, items, None, None, None)
    return Estimate(member, left, items, tokens, items * answer, items * MAX_TOKENS)
