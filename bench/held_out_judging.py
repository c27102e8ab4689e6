"""A judge's verdicts on held-out items, kept in a journal so that figures can be made again without judging.

A main line is judged in one go. Of another conversation only the rated turns are asked about: the other replies are
marked as not spoken, which changes no prompt (role and text alone are shown). What conversations begin with alike is
evaluated once where the engine keeps it without changing a figure (engine.trunks).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from aipsy_judge.conversation import Conversation
from aipsy_judge.journal import Journal
from aipsy_judge.judge import Judge
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.runs_key import is_final, verdict_key
from aipsy_judge.verdict import Verdict, verdict_from_dict, verdict_to_dict

from .held_out import HeldItem

# What a manifest holds back changes no reading, and is undone before anything is measured (held_out_readings.py).
RESERVATIONS = ("operating_points", "not_validated", "unblessed")
SAY_EVERY = 10  # conversations


@dataclass(frozen=True, slots=True)
class Plan:
    """One question to the judge: a conversation in which the turns of `items` alone are spoken, in order."""

    asked: Conversation
    items: tuple[HeldItem, ...]


@dataclass(frozen=True, slots=True)
class Spent:
    """What judging took, now or when the verdicts were made. tokens: evaluated; None where that is not known."""

    turns: int
    seconds: float
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Judged:
    """item id -> verdict, and what it took; `lane` and `settings` say who judged, `remarks` what a reader must know."""

    lane: Mapping[str, str]
    settings: Mapping[str, Any]
    remarks: tuple[str, ...]
    verdicts: Mapping[str, Verdict]
    spent: Spent


def plans(items: Sequence[HeldItem]) -> list[Plan]:
    """Conversations in the order of their ids: a main line, then its alternatives, which begin as it does."""
    groups: dict[str, list[HeldItem]] = {}
    for item in sorted(items, key=lambda i: (i.conversation.id, i.target.turn or 0)):
        groups.setdefault(item.conversation.id, []).append(item)
    return [Plan(_asked(held), tuple(held)) for held in groups.values()]


def _asked(items: Sequence[HeldItem]) -> Conversation:
    """The conversation up to the last of the items, in which no other turn is asked about."""
    whole, wanted = items[0].conversation, {i.target.turn for i in items}
    if None in wanted:
        return whole
    rated = {t.index for t in whole.turns if t.number in wanted}
    skipped = {t.index for t in whole.turns} - rated
    messages = tuple(
        replace(m, spoken=False) if n in skipped else m for n, m in enumerate(whole.messages[: max(rated) + 1])
    )
    return Conversation(whole.id, messages)


def judge_items(
    judge: Judge, items: Sequence[HeldItem], kept: Path, say: Callable[[str], None] = lambda line: None
) -> Judged:
    """The verdict of every item; what `kept` holds of this judge and these texts is taken from there, the rest is
    judged and added. Raises InputError where the journal is damaged or in use."""
    if isinstance(judge, LocalJudge):
        judge.engine.trunks.keep(0)
    settings = {k: v for k, v in judge.settings.items() if k not in RESERVATIONS}
    records: dict[str, dict[str, Any]] = {}

    def take(record: dict[str, Any], offset: int) -> None:
        records[record["key"]] = record

    todo = plans(items)
    with Journal(kept, take) as journal:
        keys = [verdict_key(p.asked.content_hash, p.asked.content_hash, judge.lane, settings) for p in todo]
        missing = sum(key not in records for key in keys)
        say(f"{judge.lane.judge}: {len(todo) - missing} of {len(todo)} conversations are at hand")
        for number, (key, plan) in enumerate(zip(keys, todo, strict=True), start=1):
            if key in records:
                continue
            record, final = _judge(judge, plan, key)
            records[key] = record
            if final:
                journal.append(record)
            if number % SAY_EVERY == 0:
                say(f"{judge.lane.judge}: {number} of {len(todo)} conversations")
    found = [records[key] for key in keys]
    verdicts = {i.id: v for plan, record in zip(todo, found, strict=True) for i, v in _restored(plan, record)}
    return Judged(judge.lane.to_dict(), dict(judge.settings), judge.remarks, verdicts, _spent(found))


def _judge(judge: Judge, plan: Plan, key: str) -> tuple[dict[str, Any], bool]:
    before, begun = _evaluated(judge), time.perf_counter()
    verdicts = judge.score(plan.asked, rationale="never")
    seconds, after = time.perf_counter() - begun, _evaluated(judge)
    record = {
        "key": key,
        "judge": judge.lane.judge,
        "items": [i.id for i in plan.items],
        "seconds": round(seconds, 4),
        "tokens": after - before if after is not None and before is not None else None,
        "verdicts": [verdict_to_dict(v) for v in verdicts],
    }
    return record, all(is_final(v) for v in verdicts)


def _restored(plan: Plan, record: Mapping[str, Any]) -> list[tuple[HeldItem, Verdict]]:
    """The verdicts with the turn and the text that they are of."""
    found = []
    for item, data in zip(plan.items, record["verdicts"], strict=True):
        turn, conversation = item.target.turn, item.conversation
        text = conversation.content_hash if turn is None else conversation.turn_hash(conversation.turns[turn - 1])
        verdict = replace(verdict_from_dict(data), conversation_id=conversation.id, turn=turn, content_hash=text)
        found.append((item, verdict))
    return found


def _spent(records: Sequence[Mapping[str, Any]]) -> Spent:
    tokens = [r["tokens"] for r in records]
    return Spent(
        sum(len(r["verdicts"]) for r in records),
        float(sum(r["seconds"] for r in records)),
        None if None in tokens else int(sum(tokens)),
    )


def _evaluated(judge: Judge) -> int | None:
    return judge.backend.work.tokens if isinstance(judge, LocalJudge) else None


def spent_to_dict(spent: Spent) -> dict[str, Any]:
    """With seconds and tokens a turn."""
    turns = max(1, spent.turns)
    each = {
        "seconds_a_turn": spent.seconds / turns,
        "tokens_a_turn": None if spent.tokens is None else spent.tokens / turns,
    }
    return {**asdict(spent), **each}
