"""The validation part judged as any conversation is: by the instrument's engine, over the model that is training."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aipsy_judge.contract import Contract
from aipsy_judge.conversation import Conversation
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import Rubric
from aipsy_judge.verdict import Verdict
from aipsy_judge.weights import Weights

from .hf_tokens import HFTokens
from .target_rows import TargetRow

MEMORY_GB = 1.0  # of cache, beside what training holds; more where one prompt takes more
ANSWER_TOKENS = 512  # beyond a row of training: room that the engine keeps for the longest options of an answer


@dataclass(frozen=True)
class Exam:
    """What is judged and how: the same items every time, in the same plan.

    texts       id -> conversation, of all items
    window      newest messages shown; None: all
    max_tokens  of a row of training: so long a prompt is judged whatever its cache takes
    """

    rubric: Rubric
    contract: Contract
    items: tuple[TargetRow, ...]
    texts: Mapping[str, Conversation]
    tokens: HFTokens
    window: int | None
    base: Path
    autocast: bool
    max_tokens: int

    def shortened(self, units: int, seed: int) -> Exam:
        """With at most `units` items, whole conversations drawn by `seed`: a conversation is judged as a whole."""
        groups: dict[str, list[TargetRow]] = {}
        for item in self.items:
            groups.setdefault(item.conversation, []).append(item)
        names = sorted(groups)
        random.Random(seed).shuffle(names)
        chosen: list[TargetRow] = []
        for name in names:
            if len(chosen) + len(groups[name]) <= units:
                chosen += groups[name]
        return replace(self, items=tuple(chosen or self.items[:units]))


@dataclass(frozen=True, slots=True)
class Judged:
    """An item and what the model says of it."""

    item: TargetRow
    verdict: Verdict


def judge(model: Any, exam: Exam) -> list[Judged]:
    """Every item's verdict, without rationale and at temperature 1. The model is left as it was."""
    from .transformers_backend import TransformersBackend

    backend = TransformersBackend(model, exam.tokens, autocast=exam.autocast)
    # The file names the judge in its verdicts, which nobody keeps here.
    weights = Weights(name=exam.tokens.name, model=exam.base / "config.json", window=exam.window)
    memory_gb = max(MEMORY_GB, (exam.max_tokens + ANSWER_TOKENS) * backend.cell_bytes / 2**30)
    found: list[Judged] = []
    with LocalJudge(backend, weights, exam.rubric, exam.contract, memory_gb=memory_gb) as local:
        for conversation, items in _by_conversation(exam.items).items():
            verdicts = {v.turn: v for v in local.score(_upto(exam.texts[conversation], items), rationale="never")}
            found += [Judged(item, verdicts[item.turn]) for item in items]
    return found


def _by_conversation(items: Sequence[TargetRow]) -> dict[str, list[TargetRow]]:
    groups: dict[str, list[TargetRow]] = {}
    for item in items:
        groups.setdefault(item.conversation, []).append(item)
    return groups


def _upto(text: Conversation, items: Sequence[TargetRow]) -> Conversation:
    """Up to the last of the items' turns: nothing that comes later is rated."""
    turns = [item.turn for item in items]
    if None in turns:
        return text
    last = text.turns[max(t for t in turns if t is not None) - 1]
    return replace(text, messages=text.messages[: last.index + 1])
