"""The prompt that rates one turn, as tokens: what a judge is asked with, what it is trained on, what proves a file."""

from __future__ import annotations

from .backends.protocol import Tokens
from .contract import Contract
from .conversation import Conversation
from .engine.encode import encode
from .rubric import Rubric
from .window import fit


def asked_prompt(
    tokens: Tokens, contract: Contract, rubric: Rubric, conversation: Conversation, upto: int, newest: int | None = None
) -> list[int]:
    """Token ids up to where the judge begins to answer, of the question about what message `upto` closes.

    Of the conversation only the `newest` messages up to there are shown (None: all); nothing beyond that is left out,
    however long it is. Raises WeightsError where the tokenizer has no chat template that takes it.
    """

    def written(shown: Conversation, last: int) -> list[int]:
        return encode(tokens, contract.messages(rubric, shown, last))

    return fit(written, conversation, upto, room=0, newest=newest, may_drop=False)[0]
