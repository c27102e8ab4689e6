"""Judging a conversation into a run: what has a final verdict is not judged again."""

from __future__ import annotations

from collections.abc import Callable

from .conversation import Conversation
from .errors import JudgeError
from .judge import Judge
from .runs_store import Run
from .verdict import Verdict


def score_into(
    run: Run,
    judge: Judge,
    conversation: Conversation,
    *,
    on_kept: Callable[[Verdict], None] = lambda _: None,
    on_verdict: Callable[[Verdict], None] = lambda _: None,
) -> list[Verdict]:
    """The verdicts of one conversation in the order of its turns, each on the disk before the next is waited for.

    The judge is told which turns have one. It may judge them again with the others, because a figure may depend on
    what is judged in one go; verdicts that were there already stay as they are. `on_kept` is called for those,
    `on_verdict` for new ones. Raises JudgeError where the judge leaves a turn out or invents one.
    """
    keys = run.keys(conversation)
    verdicts = run.begin(conversation)
    for verdict in verdicts.values():
        on_kept(verdict)

    def keep(verdict: Verdict) -> None:
        if verdict.turn not in keys or verdict.conversation_id != conversation.id:
            raise JudgeError(f"a verdict for a turn that is not there: {verdict.turn}", where=conversation.id)
        if verdict.turn not in verdicts:
            verdicts[verdict.turn] = run.add(verdict, keys[verdict.turn], conversation.content_hash)
            on_verdict(verdicts[verdict.turn])

    if len(verdicts) < len(keys):
        known = frozenset(verdicts)
        for verdict in judge.score(conversation, rationale=run.info.rationale, on_verdict=keep, known=known):
            keep(verdict)
    missing = [turn for turn in keys if turn not in verdicts]
    if missing:
        raise JudgeError(f"the judge gave no verdict for turns {missing}", where=conversation.id)
    return [verdicts[turn] for turn in keys]
