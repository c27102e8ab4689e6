"""Subjects -> questions for the engine. A question that two of them come to is asked once.

Turns of a talk that repeats itself can have the same prompt, and alternative replies to one message share the flag's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .answer import AnswerForm
from .asked_prompt import Prompts
from .conversation import Conversation
from .engine.run import Question
from .engine.slots import AnswerReader
from .subjects import Subject


@dataclass(frozen=True, slots=True)
class Asked:
    """A subject of the conversation at `place`, with its prompts; `dropped` counts the oldest messages that a window
    left out."""

    place: int
    conversation: Conversation
    subject: Subject
    prompts: Prompts
    dropped: int


@dataclass(frozen=True, slots=True)
class Questions:
    """`asked`: what the engine is asked; `of[i]`: numbers of the questions of subject i, one a form, in order."""

    asked: list[Question]
    of: list[list[int]]

    def readers(self, subject: int) -> list[AnswerReader]:
        return [self.asked[number].reader for number in self.of[subject]]

    def subjects(self) -> list[list[int]]:
        """Of each question the subjects that it is asked for."""
        found: list[list[int]] = [[] for _ in self.asked]
        for subject, numbers in enumerate(self.of):
            for number in numbers:
                found[number].append(subject)
        return found


def questions_of(
    asked: Sequence[Asked],
    forms: Mapping[str, AnswerForm],
    reader: Callable[[AnswerForm], AnswerReader],
    check: Callable[[], None],
) -> Questions:
    """For every subject one question a form. `check` is called before each subject: tokenising every option takes long
    where turns are many, and what it raises ends that."""
    found = Questions([], [])
    known: dict[tuple[str, tuple[int, ...]], int] = {}
    for item in asked:
        check()
        numbers = []
        for name, form in forms.items():
            key = (name, tuple(item.prompts[name]))
            if key not in known:
                known[key] = len(found.asked)
                found.asked.append(Question(item.prompts[name], reader(form)))
            numbers.append(known[key])
        found.of.append(numbers)
    return found
