"""The key of a verdict: what it depends on, and so when it may stand in for judging again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .conversation import Conversation
from .judge import Lane
from .rubric import Rubric
from .strict_json import dumps
from .verdict import Unscored, Verdict

# Reasons that say nothing about the text: the same question may well be answered next time. Every other reason is
# the judge's answer to this text. A refusal (`blocked`) and a reply that cannot be read come again, and asking until
# a readable reply turns up would choose among replies.
RETRYABLE = frozenset({"server_error", "timeout"})


def unit_hashes(conversation: Conversation, rubric: Rubric) -> dict[int | None, str]:
    """What is to be judged: {turn number: content hash}, or {None: content hash} for whole conversations."""
    if rubric.unit == "conversation":
        return {None: conversation.content_hash}
    return {t.number: conversation.turn_hash(t) for t in conversation.turns}


def verdict_key(content_hash: str, conversation_hash: str, lane: Lane, settings: Mapping[str, Any]) -> str:
    """sha256 (hex) over everything a figure depends on.

    The hash of the whole conversation is part of it beside the unit's own: the batch plan is a function of the
    conversation, and with it the last digits of a figure. Ids, file names and positions are not.
    """
    parts = {
        "content": content_hash,
        "conversation": conversation_hash,
        "rubric": lane.rubric,
        "judge": lane.judge,
        "contract": lane.contract,
        "settings": dict(settings),
    }
    return hashlib.sha256(dumps(parts, sort_keys=True).encode()).hexdigest()


def is_final(verdict: Verdict) -> bool:
    """False where some score or flag failed for a reason that says nothing about the text (see RETRYABLE)."""
    found = [s for s in verdict.scores.values() if isinstance(s, Unscored)]
    found += [f.unscored for f in verdict.flags.values() if f.unscored is not None]
    return not any(u.reason in RETRYABLE for u in found)
