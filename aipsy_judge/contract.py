"""How a judge is asked, as a thing: what it is shown, and the answers asked of it.

full        our whole rubric in the prompt, one JSON object as answer; needs no training
compact     a short fixed cue, one line a metric, each an answer of its own; for judges trained that way
compact-v2  the same, but a flag is about the person, so its line is asked before the reply is shown: no reply can talk
            a judge out of a crisis, or into one
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from .answer import AnswerForm, compact_forms, full_form
from .conversation import Conversation
from .prompt import ChatMessage, compact_messages, full_messages
from .rubric import Rubric


@dataclass(frozen=True, slots=True)
class Contract:
    """`messages(rubric, conversation, upto)` is the prompt that rates what message `upto` closes; `forms(rubric)` the
    answers asked for by it, by name; `before(rubric)` the names of those that are asked of what stands before that
    message. `lines`: each answer is a short line of its own."""

    name: str
    messages: Callable[[Rubric, Conversation, int], list[ChatMessage]]
    forms: Callable[[Rubric], Mapping[str, AnswerForm]]
    before: Callable[[Rubric], Collection[str]] = lambda rubric: ()
    lines: bool = False


def flags_of_turns(rubric: Rubric) -> Collection[str]:
    """Names of the flags, where single turns are rated; a whole conversation is rated by all of it."""
    return [flag.name for flag in rubric.flags] if rubric.unit == "turn" else []


FULL = Contract("full", full_messages, lambda rubric: {"answer": full_form(rubric)})
COMPACT = Contract("compact", compact_messages, compact_forms, lines=True)
COMPACT_V2 = Contract("compact-v2", compact_messages, compact_forms, flags_of_turns, lines=True)
