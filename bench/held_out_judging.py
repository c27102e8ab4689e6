"""A judge's verdicts on rated replies, kept in a journal so that figures can be made again without judging.

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
from aipsy_judge.judge import Judge
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.runs_key import is_final, verdict_key
from aipsy_judge.verdict import Verdict, verdict_from_dict, verdict_to_dict

from .held_out import Reply
from .held_out_kept import Kept

# What a manifest holds back changes no reading, and is undone before anything is measured (held_out_readings.py).
RESERVATIONS = ("operating_points", "not_validated", "unblessed")
SAY_EVERY = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """One question to the judge: a conversation in which the turns of `items` alone are spoken, in order."""

    asked: Conversation
    items: tuple[Reply, ...]


@dataclass(frozen=True, slots=True)
class Spent:
    """What judging took, now or when the verdicts were made. processor_seconds: of all threads, whatever else the
    machine did; tokens: evaluated, None where that is not known."""

    turns: int
    seconds: float
    processor_seconds: float
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Judged:
    """item id -> verdict, and what it took; `lane` and `settings` say who judged, `remarks` what a reader must know."""

    lane: Mapping[str, str]
    settings: Mapping[str, Any]
    remarks: tuple[str, ...]
    verdicts: Mapping[str, Verdict]
    spent: Spent


def plans(items: Sequence[Reply]) -> list[Plan]:
    """Conversations in the order of their ids: a main line, then its alternatives, which begin as it does."""
    groups: dict[str, list[Reply]] = {}
    for item in sorted(items, key=lambda i: (i.conversation.id, i.turn or 0)):
        groups.setdefault(item.conversation.id, []).append(item)
    return [Plan(_asked(held), tuple(held)) for held in groups.values()]


def _asked(items: Sequence[Reply]) -> Conversation:
    """The conversation up to the last of the items, in which no other turn is asked about."""
    whole, wanted = items[0].conversation, {i.turn for i in items}
    if None in wanted:
        return whole
    rated = {t.index for t in whole.turns if t.number in wanted}
    skipped = {t.index for t in whole.turns} - rated
    messages = tuple(
        replace(m, spoken=False) if n in skipped else m for n, m in enumerate(whole.messages[: max(rated) + 1])
    )
    return Conversation(whole.id, messages)


def judge_items(
    judge: Judge, items: Sequence[Reply], kept: Path | None, say: Callable[[str], None] = lambda line: None
) -> Judged:
    """The verdict of every item; what `kept` holds of this judge and these texts is taken from there, the rest is
    judged and added. Raises InputError where the journal is damaged or in use."""
    if isinstance(judge, LocalJudge):
        judge.engine.trunks.keep(0)
    settings = {k: v for k, v in judge.settings.items() if k not in RESERVATIONS}
    todo = plans(items)
    keys = [verdict_key(p.asked.content_hash, p.asked.content_hash, judge.lane, settings) for p in todo]
    with Kept(kept) as shelf:
        missing = sum(key not in shelf.records for key in keys)
        say(f"{judge.lane.judge}: {len(todo) - missing} of {len(todo)} conversations are at hand")
        found, said = [], time.monotonic()
        for number, (key, plan) in enumerate(zip(keys, todo, strict=True), start=1):
            if key not in shelf.records:
                shelf.put(key, *_judge(judge, plan))
                if time.monotonic() - said >= SAY_EVERY:
                    said = time.monotonic()
                    say(f"{judge.lane.judge}: {number} of {len(todo)} conversations")
            found.append(shelf.records[key])
    verdicts = {i.id: v for plan, record in zip(todo, found, strict=True) for i, v in _restored(plan, record)}
    return Judged(judge.lane.to_dict(), dict(judge.settings), judge.remarks, verdicts, _spent(found))


def _judge(judge: Judge, plan: Plan) -> tuple[dict[str, Any], bool]:
    """The record, and whether it is worth keeping: what a server failed at is asked again."""
    before, begun, at_work = _evaluated(judge), time.perf_counter(), time.process_time()
    verdicts = judge.score(plan.asked, rationale="never")
    seconds, worked, after = time.perf_counter() - begun, time.process_time() - at_work, _evaluated(judge)
    record = {
        "judge": judge.lane.judge,
        "items": [i.id for i in plan.items],
        "seconds": round(seconds, 4),
        "processor_seconds": round(worked, 4),
        "tokens": after - before if after is not None and before is not None else None,
        "verdicts": [verdict_to_dict(v) for v in verdicts],
    }
    return record, all(is_final(v) for v in verdicts)


def _restored(plan: Plan, record: Mapping[str, Any]) -> list[tuple[Reply, Verdict]]:
    """The verdicts with the turn and the text that they are of."""
    found = []
    for item, data in zip(plan.items, record["verdicts"], strict=True):
        turn, conversation = item.turn, item.conversation
        text = conversation.content_hash if turn is None else conversation.turn_hash(conversation.turns[turn - 1])
        verdict = replace(verdict_from_dict(data), conversation_id=conversation.id, turn=turn, content_hash=text)
        found.append((item, verdict))
    return found


def _spent(records: Sequence[Mapping[str, Any]]) -> Spent:
    tokens = [r["tokens"] for r in records]
    return Spent(
        sum(len(r["verdicts"]) for r in records),
        float(sum(r["seconds"] for r in records)),
        float(sum(r["processor_seconds"] for r in records)),
        None if None in tokens else int(sum(tokens)),
    )


def _evaluated(judge: Judge) -> int | None:
    return judge.backend.work.tokens if isinstance(judge, LocalJudge) else None


def spent_to_dict(spent: Spent) -> dict[str, Any]:
    """With seconds and tokens a turn."""
    turns = max(1, spent.turns)
    each = {
        "seconds_a_turn": spent.seconds / turns,
        "processor_seconds_a_turn": spent.processor_seconds / turns,
        "tokens_a_turn": None if spent.tokens is None else spent.tokens / turns,
    }
    return {**asdict(spent), **each}
