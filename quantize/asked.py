"""What the judge is asked on given conversations: prompts by a model's own template, and how its answers begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aipsy_judge.asked_prompt import Prompts, asked_prompts
from aipsy_judge.backends.protocol import TokenBackend
from aipsy_judge.contract import Contract
from aipsy_judge.conversation import Conversation
from aipsy_judge.engine.choice import Vocabulary
from aipsy_judge.engine.encode import answer_tokenizer
from aipsy_judge.engine.slots import AnswerReader
from aipsy_judge.engine.tree import common_prefix
from aipsy_judge.errors import InputError
from aipsy_judge.rubric import Rubric
from aipsy_judge.subjects import subjects
from aipsy_judge.transcripts import iter_conversations


@dataclass(frozen=True, slots=True)
class Task:
    """How the judge is asked, and about what. window: the newest messages that it is shown; None: all.
    held_back: metrics whose value it tells nobody."""

    rubric: Rubric
    contract: Contract
    conversations: tuple[Conversation, ...]
    window: int | None = None
    held_back: tuple[str, ...] = ()

    def prompts(self, backend: TokenBackend) -> list[Prompts]:
        """The prompts of every unit by form, in order; silent turns are not asked about."""
        return [
            asked_prompts(backend, self.contract, self.rubric, talk, subject.upto, self.window)
            for talk in self.conversations
            for subject in subjects(talk, self.rubric)
            if not subject.empty
        ]

    def cues(self, backend: TokenBackend) -> dict[str, list[int]]:
        """The tokens that stand before each answer: of contract compact the name of the metric, else none.

        They end where the engine reads the slot: at the last token that all options share.
        """
        forms = self.contract.forms(self.rubric)
        if not self.contract.lines:
            return {name: [] for name in forms}
        tokenize, vocabulary = answer_tokenizer(backend), Vocabulary(backend.vocabulary)
        readers = {name: AnswerReader(form, tokenize, vocabulary) for name, form in forms.items()}
        return {name: list(reader.request().feed) for name, reader in readers.items()}


def take_units(files: Sequence[Path], rubric: Rubric, units: int) -> tuple[Conversation, ...]:
    """Whole conversations in the order of the files, until they hold `units` units that can be asked about. Raises
    InputError where there is none."""
    taken: list[Conversation] = []
    for talk in iter_conversations(files):
        taken.append(talk)
        units -= sum(not s.empty for s in subjects(talk, rubric))
        if units <= 0:
            return tuple(taken)
    if not any(not s.empty for talk in taken for s in subjects(talk, rubric)):
        raise InputError("nothing to judge in the conversations given")
    return tuple(taken)


def texts_of(conversations: Sequence[Conversation]) -> list[str]:
    """Every message's text once, in order."""
    return list(dict.fromkeys(m.content for talk in conversations for m in talk.messages))


def whole(prompts: Prompts) -> list[int]:
    """The longest prompt of a unit: that which shows the reply too. The others are parts of it but for their ends."""
    return max(prompts.values(), key=lambda prompt: len(prompt))


def distinct(prompts: Prompts) -> list[tuple[int, ...]]:
    """The prompts of a unit, each once."""
    return list(dict.fromkeys(map(tuple, prompts.values())))


def cells(prompts: Prompts, cues: Mapping[str, Sequence[int]], budget: int) -> int:
    """Cache cells of a unit's longest prompt and all its answers, each with what its own prompt has beyond that."""
    stem = whole(prompts)
    beyond = sum(len(prompts[form]) - common_prefix([stem, prompts[form]]) for form in cues)
    return len(stem) + beyond + sum(len(cue) + 1 + budget for cue in cues.values())
