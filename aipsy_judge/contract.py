"""How a judge is asked, as a thing: what it is shown, and the answers asked of it.

full      our whole rubric in the prompt, one JSON object as answer; needs no training
compact   a short fixed cue, one line a metric, each an answer of its own; for judges trained that way
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .answer import AnswerForm, compact_forms, full_form
from .conversation import Conversation
from .prompt import ChatMessage, compact_messages, full_messages
from .rubric import Rubric


@dataclass(frozen=True, slots=True)
class Contract:
    """`messages(rubric, conversation, upto)` is the prompt that rates what message `upto` closes; `forms(rubric)` the
    answers asked for by it, by name."""

    name: str
    messages: Callable[[Rubric, Conversation, int], list[ChatMessage]]
    forms: Callable[[Rubric], Mapping[str, AnswerForm]]


FULL = Contract("full", full_messages, lambda rubric: {"answer": full_form(rubric)})
COMPACT = Contract("compact", compact_messages, compact_forms)
