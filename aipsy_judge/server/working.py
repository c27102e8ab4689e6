"""What the judge's thread does: judge conversations, or ask something else of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..conversation import Conversation
from ..judge import Judge, Rationale
from ..local_judge import LocalJudge
from ..verdict import Verdict
from .scheduler import Check, Job


def _nobody(_: Verdict) -> None:
    """Nobody listens turn by turn."""


@dataclass(frozen=True, slots=True)
class ScoreTask:
    """Judge a conversation; `on_verdict` hears of each verdict in the judge's thread."""

    conversation: Conversation
    rationale: Rationale
    on_verdict: Callable[[Verdict], None] = _nobody


@dataclass(frozen=True, slots=True)
class CallTask:
    """Call something with the judge."""

    call: Callable[[Judge], Any]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Counts of one answer. prompt and answer: as a client counts them; evaluated: what it cost, None where the
    judge does not say or several answers were made in one go."""

    prompt: int = 0
    answer: int = 0
    evaluated: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts of one conversation."""

    verdicts: tuple[Verdict, ...]
    tokens: Tokens


def may_join(first: Any, other: Any) -> bool:
    """Conversations that are asked about alike can be judged in one plan."""
    return isinstance(first, ScoreTask) and isinstance(other, ScoreTask) and first.rationale == other.rationale


def work_on(judge: Judge, jobs: Sequence[Job], check: Check) -> None:
    """Settle the jobs' futures. Raises Cancelled between two passes of the engine where nobody waits any more."""
    check()
    if not isinstance(judge, LocalJudge):
        _work_on(judge, jobs, check)
        return
    judge.watch(check)
    try:
        _work_on(judge, jobs, check)
    finally:
        judge.watch(lambda: None)


def _work_on(judge: Judge, jobs: Sequence[Job], check: Check) -> None:
    task = jobs[0].task
    if isinstance(task, CallTask):
        jobs[0].done.set_result(task.call(judge))
    elif len(jobs) > 1 and isinstance(judge, LocalJudge):
        _judge_together(judge, jobs)
    else:
        for job in jobs:
            job.done.set_result(_judge(judge, job.task, check))


def _judge(judge: Judge, task: ScoreTask, check: Check) -> Judged:
    def heard(verdict: Verdict) -> None:
        task.on_verdict(verdict)
        check()

    before = _evaluated(judge)
    verdicts = judge.score(task.conversation, rationale=task.rationale, on_verdict=heard)
    after = _evaluated(judge)
    cost = after - before if before is not None and after is not None else None
    return Judged(tuple(verdicts), _tokens(judge, task.conversation, verdicts, cost))


def _judge_together(judge: LocalJudge, jobs: Sequence[Job]) -> None:
    tasks: list[ScoreTask] = [job.task for job in jobs]
    found = judge.score_together(
        [t.conversation for t in tasks],
        rationale=tasks[0].rationale,
        on_verdict=lambda index, verdict: tasks[index].on_verdict(verdict),
    )
    for job, task, verdicts in zip(jobs, tasks, found, strict=True):
        job.done.set_result(Judged(tuple(verdicts), _tokens(judge, task.conversation, verdicts, None)))


def _evaluated(judge: Judge) -> int | None:
    return judge.backend.work.tokens if isinstance(judge, LocalJudge) else None


def _tokens(judge: Judge, conversation: Conversation, verdicts: Sequence[Verdict], cost: int | None) -> Tokens:
    if not isinstance(judge, LocalJudge) or not verdicts:
        return Tokens(evaluated=cost)
    answer = sum(len(judge.backend.tokenize(v.raw, special=False)) for v in verdicts if v.raw)
    return Tokens(judge.prompt_tokens(conversation), answer, cost)
