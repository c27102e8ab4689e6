"""How long a file will take and how much memory, before it is judged: counted tokens, and a timed probe."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from .conversation import Conversation
from .errors import CapacityError
from .local_judge import LocalJudge
from .peak_memory import peak_bytes

# Conversations whose tokens are counted; the rest is taken to be like them.
COUNTED = 50
PROBE_TURNS = 2


@dataclass(frozen=True, slots=True)
class Forecast:
    """An estimate for a set of conversations.

    tokens            to evaluate, prompts of all conversations, what the judge keeps between them counted once
    counted           conversations whose tokens were counted; the others were taken to be like these
    cache_bytes       the largest cache that one conversation needs, compute buffers aside
    too_long          of the counted: those that do not fit the memory allowed
    memory_bytes      of this process at the longest of them, from what the probe took; None where no probe was made
    seconds           for all, without rationales; None where no probe was made
    seconds_to_start  until the first turn is begun: the rubric is evaluated once
    """

    conversations: int
    tokens: int
    counted: int
    cache_bytes: int
    too_long: int
    memory_bytes: int | None = None
    seconds: float | None = None
    seconds_to_start: float | None = None


def forecast(judge: LocalJudge, conversations: Iterable[Conversation], total: int, *, probe: bool) -> Forecast:
    """Count the tokens of the first conversations, time a short one, and put the two together.

    The probe judges the first turns of the shortest of them twice: the first time shows what a start costs, the
    second what a turn costs after it.
    """
    sample = list(islice(conversations, COUNTED))
    plans = [(c, _plan(judge, c)) for c in sample]
    fitting = [(c, p) for c, p in plans if p is not None]
    counted = sum(tokens for _, (tokens, _) in fitting)
    scale = total / len(sample) if sample else 0.0
    timing = _probe(judge, min((c for c, _ in fitting), key=_length)) if probe and fitting else None
    head = timing.head_tokens if timing is not None else 0
    beyond_head = (counted - head * len(fitting)) * scale
    cache = max((cells for _, (_, cells) in fitting), default=0) * judge.backend.cell_bytes
    return Forecast(
        conversations=total,
        tokens=round(beyond_head + head),
        counted=len(sample),
        cache_bytes=cache,
        too_long=len(plans) - len(fitting),
        memory_bytes=timing.peak_bytes + max(0, cache - timing.cache_bytes) if timing is not None else None,
        seconds=timing.start + beyond_head * timing.per_token if timing is not None else None,
        seconds_to_start=timing.start if timing is not None else None,
    )


@dataclass(frozen=True, slots=True)
class _Timing:
    head_tokens: int
    start: float
    per_token: float
    cache_bytes: int
    peak_bytes: int


def _plan(judge: LocalJudge, conversation: Conversation) -> tuple[int, int] | None:
    """(tokens to evaluate, cache cells); (0, 0) where nothing is asked, None where it does not fit."""
    try:
        plan = judge.forecast(conversation)
    except CapacityError:
        return None
    return (plan.tokens, plan.cells) if plan is not None else (0, 0)


def _probe(judge: LocalJudge, conversation: Conversation) -> _Timing:
    short = _first_turns(conversation)
    planned, cells = _plan(judge, short) or (0, 0)
    tokens: list[int] = []
    seconds: list[float] = []
    for _ in range(2):
        before, start = judge.backend.work.tokens, time.perf_counter()
        judge.score(short, rationale="never")
        seconds.append(time.perf_counter() - start)
        tokens.append(judge.backend.work.tokens - before)
    head = tokens[0] - tokens[1]
    # Not the difference of the two times: on a busy machine that may well be negative.
    start, per_token = seconds[0] * head / max(1, tokens[0]), seconds[1] / max(1, planned - head)
    return _Timing(head, start, per_token, cells * judge.backend.cell_bytes, peak_bytes())


def _first_turns(conversation: Conversation) -> Conversation:
    turns = conversation.turns[:PROBE_TURNS]
    return Conversation("probe", conversation.messages[: turns[-1].index + 1]) if turns else conversation


def _length(conversation: Conversation) -> int:
    return sum(len(m.content) for m in conversation.messages)
