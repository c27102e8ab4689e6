"""A judge fills the forms: the starting form once from the persona card, the turn form every K turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..conversation import Conversation, Message
from ..errors import InputError
from ..judge import Judge
from ..rubric import Rubric
from ..verdict import Scored, Unscored, Verdict
from .evidence import AsksOtherwise, Sentence, candidates, find_quotes
from .forms import Quote
from .pack import Pack
from .rubrics import metric_name, start_rubric, turn_rubric
from .vectors import turns_of

OpenJudge = Callable[[Rubric], Judge]

_CARD_ASKED = "Whom will the assistant talk to?"
_CARD_SHOWN = "The person who talks to the assistant:\n"


@dataclass(frozen=True)
class Filled:
    """One form as a judge filled it: by id its level, None where it could not be read, and the evidence.

    unread  what could not be read, in words; provenance as in a verdict
    quotes  by id, for levels other than 0; None: no evidence could be had
    """

    levels: Mapping[str, int | None]
    quotes: Mapping[str, Quote | None]
    unread: tuple[str, ...]
    suspected_injection: tuple[str, ...]
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class Judged:
    """All forms of one dialogue, and what a reader of them must know of the judge."""

    start: Filled
    turns: tuple[Filled, ...]
    every: int
    remarks: tuple[str, ...]


def judge_dialogue(
    conversation: Conversation,
    card: str,
    pack: Pack,
    open_judge: OpenJudge,
    *,
    every: int = 1,
    on_form: Callable[[int, int], None] = lambda done, total: None,
) -> Judged:
    """Fill the starting form from `card` and a turn form every `every` turns of `conversation`.

    `open_judge` gives a judge for a rubric; it is opened once for each of the two. Every form that could be read has
    its evidence, where the judge can be asked for it. `on_form` is told how many forms are done. InputError where
    there is nothing to judge.
    """
    if not card.strip():
        raise InputError("the persona card is empty")
    rated = _rated_turns(conversation, every)
    with open_judge(start_rubric(pack)) as judge:
        start = _fill_start(judge, card, pack)
        remarks = judge.remarks
    on_form(1, 1 + len(rated))
    with open_judge(turn_rubric(pack, every)) as judge:
        turns = _fill_turns(judge, conversation, card, rated, pack, every, on_form)
    return Judged(start, turns, every, remarks)


def _fill_start(judge: Judge, card: str, pack: Pack) -> Filled:
    # Judges rate what an assistant said: the card is told by one.
    shown = Conversation("card", (Message("user", _CARD_ASKED), Message("assistant", card)))
    (verdict,) = judge.score(shown, rationale="never")
    return _filled(judge, verdict, pack.space.indicator_ids, candidates({None: card}), "start")


def _fill_turns(
    judge: Judge,
    conversation: Conversation,
    card: str,
    rated: Sequence[tuple[int, ...]],
    pack: Pack,
    every: int,
    on_form: Callable[[int, int], None],
) -> tuple[Filled, ...]:
    done = [1]

    def count(_: Verdict) -> None:
        done[0] += 1
        on_form(done[0], 1 + len(rated))

    verdicts = judge.score(_with_card(conversation, card, rated), rationale="never", on_verdict=count)
    messages = conversation.messages
    return tuple(
        _filled(
            judge,
            verdict,
            pack.space.channel_ids,
            candidates({index: messages[index].content for index in indices}),
            turns_of(n, every),
        )
        for n, (verdict, indices) in enumerate(zip(verdicts, rated, strict=True))
    )


def _filled(judge: Judge, verdict: Verdict, ids: Sequence[str], found: Sequence[Sentence], place: str) -> Filled:
    levels: dict[str, int | None] = {}
    unread = []
    for level_id in ids:
        score = verdict.scores[metric_name(level_id)]
        levels[level_id] = int(score.value) if isinstance(score, Scored) else None
        if not isinstance(score, Scored):
            why = (
                f"{score.reason}{f' ({score.detail})' if score.detail else ''}"
                if isinstance(score, Unscored)
                else "N/A"
            )
            unread.append(f"{place}: {level_id}: {why}")
    metrics = {i: judge.rubric.metric(metric_name(i)) for i in ids}
    readable = {i: level for i, level in levels.items() if level is not None}
    quotes: dict[str, Quote | None] = {i: None for i, level in readable.items() if level != 0}
    if isinstance(judge, AsksOtherwise):
        quotes |= find_quotes(judge, readable, metrics, found)
    return Filled(levels, quotes, tuple(unread), verdict.suspected_injection, verdict.provenance)


def _rated_turns(conversation: Conversation, every: int) -> list[tuple[int, ...]]:
    """The indices of the assistant messages that each rating covers."""
    indices = [t.index for t in conversation.turns]
    if not indices:
        raise InputError("no assistant message in it: nothing to judge", where=conversation.source or conversation.id)
    return [tuple(indices[i : i + every]) for i in range(0, len(indices), every)]


def _with_card(conversation: Conversation, card: str, rated: Sequence[tuple[int, ...]]) -> Conversation:
    """The dialogue with the card before it; of each rating's messages only the last is left to be judged."""
    last = {indices[-1] for indices in rated}
    shown = tuple(
        m if m.role != "assistant" or not m.spoken or i in last else Message(m.role, m.content, spoken=False)
        for i, m in enumerate(conversation.messages)
    )
    return Conversation(conversation.id, (Message("system", _CARD_SHOWN + card), *shown))
