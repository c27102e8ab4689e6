"""Every drawn reply judged as it is, under each change, and once more as it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aipsy_judge.judge import Judge
from aipsy_judge.repeatability import verdict_text
from aipsy_judge.verdict import Verdict

from .stability_changes import Change
from .stability_draw import JudgedReply
from .stability_figures import Seen, seen

AS_IT_IS, AGAIN = "as it is", "again"


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """`seen`: AS_IT_IS, AGAIN and every change that changes something of this reply -> name of metric or flag -> Seen.
    `same` says that the two verdicts on the unchanged text are the same to the byte."""

    reply: JudgedReply
    seen: Mapping[str, Mapping[str, Seen]]
    same: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """`seconds` a verdict, as the clock on the wall has it; `verdicts` were asked for."""

    turns: tuple[JudgedTurn, ...]
    verdicts: int
    seconds: float


def judged(
    judge: Judge, replies: Sequence[JudgedReply], changes: Sequence[Change], say: Callable[[str], None]
) -> Judged:
    """Each text is a plan of its own: what else is judged beside it would move last digits."""
    begun, turns, asked = time.perf_counter(), [], 0
    for number, reply in enumerate(replies, start=1):
        turns.append(_turn(judge, reply, changes))
        asked += len(turns[-1].seen)
        if number % 10 == 0 or number == len(replies):
            say(f"{number} of {len(replies)} turns, {time.perf_counter() - begun:.0f} s")
    return Judged(tuple(turns), asked, (time.perf_counter() - begun) / max(1, asked))


def pairs_of(found: Judged, change: str, name: str) -> list[tuple[Seen, Seen]]:
    """(as it is, changed) of one metric or flag, over the turns that the change concerns."""
    return [(t.seen[AS_IT_IS][name], t.seen[change][name]) for t in found.turns if change in t.seen]


def _turn(judge: Judge, reply: JudgedReply, changes: Sequence[Change]) -> JudgedTurn:
    first = _verdict(judge, reply)
    said = {AS_IT_IS: seen(judge.rubric, first)}
    for change in changes:
        other = change(reply)
        if other is not None:
            said[change.name] = seen(judge.rubric, _verdict(judge, other))
    again = _verdict(judge, reply)  # after the others: what a judge keeps between them may leave no trace
    said[AGAIN] = seen(judge.rubric, again)
    return JudgedTurn(reply, said, verdict_text(first) == verdict_text(again))


def _verdict(judge: Judge, reply: JudgedReply) -> Verdict:
    (verdict,) = judge.score(reply.conversation, rationale="never")
    return verdict
