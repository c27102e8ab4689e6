"""Tokens of a question and its answer, counted by a rule where no tokenizer is at hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from ..answer import full_form
from ..contract import Contract
from ..conversation import Conversation
from ..judge import Rationale
from ..prompt import ChatMessage
from ..rubric import Rubric
from ..schema import answer_schema

# UTF-8 bytes a token. English prompts of this kind have 4.2 (Gemma, SmolLM2) to 4.5 (GPT-5.4 mini, as it billed 20 of
# them), so that the rule errs upwards by 5 to 12 %. Other scripts have more bytes a character and fewer characters a
# token: bytes serve for them too.
BYTES_PER_TOKEN = 4.0
JSON_BYTES_PER_TOKEN = 3.0  # braces, quotes and names: 2.4 to 2.8 by SmolLM2, more by larger vocabularies
MESSAGE_TOKENS = 8  # role and marks that a chat template puts around a message
RATIONALE_BYTES = 300  # two sentences
RULE = (
    f"UTF-8 bytes / {BYTES_PER_TOKEN:g}, of JSON / {JSON_BYTES_PER_TOKEN:g}, + {MESSAGE_TOKENS} a message; "
    "the provider's own count differs"
)


def text_tokens(text: str, bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """Tokens of a text, by the rule, rounded up.

    >>> text_tokens("twelve bytes"), text_tokens("thirteen byte")
    (3, 4)
    """
    return math.ceil(len(text.encode("utf-8", "replace")) / bytes_per_token)


def prompt_tokens(
    rubric: Rubric, contract: Contract, conversation: Conversation, upto: int, rationale: Rationale
) -> int:
    """Tokens of the question about what message `upto` closes, the schema that goes with it included."""
    messages: Sequence[ChatMessage] = contract.messages(rubric, conversation, upto)
    count = sum(MESSAGE_TOKENS + text_tokens(m.text) for m in messages)
    if contract.name == "full":
        count += text_tokens(json.dumps(answer_schema(rubric, rationale=rationale != "never")), JSON_BYTES_PER_TOKEN)
    return count


def answer_tokens(rubric: Rubric, rationale: Rationale) -> int:
    """Tokens of a plain answer: every slot filled, and two sentences of rationale where one is asked for."""
    parts = full_form(rubric).parts
    skeleton = "".join(p if isinstance(p, str) else max((o.text for o in p.options), key=len) for p in parts)
    prose = text_tokens("x" * RATIONALE_BYTES) if rationale != "never" else 0
    return text_tokens(skeleton, JSON_BYTES_PER_TOKEN) + prose
