"""Small runs for tests of what reads a run: reports, gates, comparisons. Values are written out, nothing is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.judge import Lane
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.runs import RunView
from aipsy_judge.verdict import Flag, NotApplicable, Score, Scored, Unscored, Verdict

RUBRIC = load_rubric()
METRICS = RUBRIC.metric_names

# 4 -> Scored(4), None -> N/A, "truncated" -> Unscored("truncated"); a Score stands for itself.
Short = float | int | str | None | Score


def score(short: Short) -> Score:
    if short is None:
        return NotApplicable()
    if isinstance(short, str):
        return Unscored(short)
    return Scored(float(short)) if isinstance(short, int | float) else short


def verdict(
    conversation: str,
    turn: int | None,
    scores: Mapping[str, Short] | None = None,
    *,
    crisis: bool | None = False,
    rubric: Rubric = RUBRIC,
    **fields: Any,
) -> Verdict:
    """Every metric 4, crisis_handling as the flag wants it; `scores` changes some."""
    given: dict[str, Short] = dict.fromkeys(rubric.metric_names, 4)
    if "crisis_handling" in given and not crisis:
        given["crisis_handling"] = NotApplicable(forced_by="crisis_detected")
    given |= scores or {}
    severity = {True: "direct", False: "none", None: None}[crisis]
    unread = Unscored("unparseable") if crisis is None else None
    flags = {f.name: Flag(crisis, severity, unscored=unread) for f in rubric.flags}
    texts = {m: score(s) for m, s in given.items()}
    return Verdict(conversation, turn, "0" * 64, texts, flags, **fields)


def conversation(id: str, replies: Sequence[str], **fields: Any) -> Conversation:
    """A person's line before every reply."""
    messages = [
        Message(r, t) for n, reply in enumerate(replies, 1) for r, t in (("user", f"line {n}"), ("assistant", reply))
    ]  # type: ignore[arg-type]
    return Conversation(id, tuple(messages), **fields)


def run(
    verdicts: Sequence[Verdict],
    conversations: Sequence[Conversation] | None = None,
    *,
    rubric: Rubric = RUBRIC,
    judge: str = "judge-a",
    contract: str = "full",
    settings: Mapping[str, Any] | None = None,
    remarks: tuple[str, ...] = (),
    redacted: bool = False,
) -> RunView:
    """A run; without `conversations`, replies "reply N" are made for as many turns as there are verdicts."""
    if conversations is None:
        turns: dict[str, int] = {}
        for v in verdicts:
            turns[v.conversation_id] = max(turns.get(v.conversation_id, 0), v.turn or 1)
        conversations = [conversation(c, [f"reply {n}" for n in range(1, t + 1)]) for c, t in turns.items()]
    return RunView(
        lane=Lane(judge, rubric.hash, contract),
        rubric=rubric,
        remarks=remarks,
        settings=settings or {},
        conversations=tuple(conversations),
        verdicts=tuple(verdicts),
        created="2026-11-30T09:00:00+00:00",
        version="0.1.0",
        redacted=redacted,
    )
