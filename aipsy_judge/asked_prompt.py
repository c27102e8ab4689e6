"""The prompts that rate one turn, as tokens: what a judge is asked with, what it is trained on, what proves a file."""

from __future__ import annotations

from collections.abc import Mapping

from .backends.protocol import Tokens
from .contract import Contract
from .conversation import Conversation
from .engine.encode import encode
from .rubric import Rubric
from .window import fit

Prompts = Mapping[str, list[int]]
"""Token ids of a prompt up to where the judge begins to answer, by the name of the answer's form."""


def asked_prompts(
    tokens: Tokens, contract: Contract, rubric: Rubric, conversation: Conversation, upto: int, newest: int | None = None
) -> Prompts:
    """The prompts of the question about what message `upto` closes, for every form of the contract, in their order.

    Of the conversation only the `newest` messages up to there are shown (None: all); nothing beyond that is left out,
    however long it is. Raises WeightsError where the tokenizer has no chat template that takes it.
    """
    return fitted_prompts(tokens, contract, rubric, conversation, upto, room=0, newest=newest, may_drop=False)[0]


def fitted_prompts(
    tokens: Tokens,
    contract: Contract,
    rubric: Rubric,
    conversation: Conversation,
    upto: int,
    *,
    room: int,
    newest: int | None,
    may_drop: bool,
) -> tuple[Prompts, int]:
    """The same, and how many of the oldest messages are left out (see window.fit).

    A form that is asked before message `upto` is shown the others without it; with it, where it is the first shown.
    """

    def written(shown: Conversation, last: int) -> list[int]:
        return encode(tokens, contract.messages(rubric, shown, last))

    whole, dropped = fit(written, conversation, upto, room=room, newest=newest, may_drop=may_drop)
    early = contract.before(rubric)
    before = whole
    if early and upto > dropped:
        shown = Conversation(conversation.id, conversation.messages[dropped:upto])
        before = written(shown, len(shown.messages) - 1)
    return {name: before if name in early else whole for name in contract.forms(rubric)}, dropped
