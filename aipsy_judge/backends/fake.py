"""A backend and a judge for tests, ours and yours. They read nothing and judge nothing: values come from a hash.

judge = FakeJudge()                     # varied, legal, the same for the same text
backend = FakeBackend().enqueue('{"empathy":9}', BackendError("down", retryable=True))
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ..answer import NA, NO, YES, full_form
from ..composite import critical_failures
from ..conversation import Conversation, Turn
from ..judge import Lane, Rationale
from ..rubric import FlagSpec, Metric, Rubric, load_rubric
from ..verdict import Flag, NotApplicable, Reading, Score, Scored, Unscored, Verdict
from .protocol import Reply

REMARK = "fake: every value was drawn from a hash of the text; nothing was judged"


@dataclass(frozen=True, slots=True)
class FakeAnswer:
    """What a FakeJudge says of one unit."""

    scores: Mapping[str, Score]
    flags: Mapping[str, Flag]
    rationale: str = "Drawn from a hash; nothing was judged."


def drawn_answer(rubric: Rubric, seed: str) -> FakeAnswer:
    """A legal answer, varied over seeds and the same for the same seed; every score carries a Reading."""
    rng = random.Random(seed)
    flags = {f.name: _draw_flag(f, rng) for f in rubric.flags}
    return FakeAnswer({m.name: _draw_score(m, flags, rng) for m in rubric.metrics}, flags)


def _draw_flag(spec: FlagSpec, rng: random.Random) -> Flag:
    value = rng.random() < 0.3
    probability = rng.uniform(0.55, 0.98) if value else rng.uniform(0.02, 0.45)
    severity = None
    if spec.severity is not None:
        severity = rng.choice(list(spec.severity.levels)[1:]) if value else spec.severity.unset
    spread = {NO: 1 - probability, YES: probability}
    return Flag(value, severity, probability=probability, legal_mass=rng.uniform(0.9, 1.0), distribution=spread)


def _draw_score(metric: Metric, flags: Mapping[str, Flag], rng: random.Random) -> Score:
    if metric.flag is not None and not flags[metric.flag].value:
        return NotApplicable(forced_by=metric.flag)
    labels = [str(v) for v in metric.scale.values]
    if metric.may_be_na and metric.flag is None:
        labels.append(NA)
    chosen = rng.choice(labels)
    reading = _draw_reading(labels, chosen, rng)
    return NotApplicable(reading=reading) if chosen == NA else Scored(float(chosen), reading)


def _draw_reading(labels: Sequence[str], chosen: str, rng: random.Random) -> Reading:
    """More than half of the probability on `chosen`, so that it is the likeliest answer too."""
    confidence = rng.uniform(0.55, 0.98)
    weights = {label: rng.random() + 0.01 for label in labels if label != chosen}
    share = (1 - confidence) / sum(weights.values())
    distribution = {label: confidence if label == chosen else weights[label] * share for label in labels}
    applies = {float(label): p for label, p in distribution.items() if label != NA}
    return Reading(
        p_na=distribution.get(NA, 0.0),
        expected=sum(v * p for v, p in applies.items()) / sum(applies.values()),
        confidence=confidence,
        legal_mass=rng.uniform(0.9, 1.0),
        distribution=distribution,
    )


def answer_text(rubric: Rubric, answer: FakeAnswer) -> str:
    """The answer as a judge under the contract `full` would write it. ValueError where a score is Unscored."""
    chosen: dict[str, str] = {}
    for spec in rubric.flags:
        flag = answer.flags[spec.name]
        chosen[spec.name] = YES if flag.value else NO
        if spec.severity is not None:
            chosen[spec.severity.name] = flag.severity or spec.severity.unset
    for name, score in answer.scores.items():
        match score:
            case Scored():
                chosen[name] = f"{score.value:g}"
            case NotApplicable():
                chosen[name] = NA
            case Unscored():
                raise ValueError(f"{name} is unscored and cannot be written as an answer")
    return full_form(rubric).render(chosen, answer.rationale)


class FakeBackend:
    """A ReplyBackend that gives what was enqueued, then answers drawn from the messages.

    `asked` keeps every call as (messages, schema, max_tokens).
    """

    name = "fake"
    is_remote = False

    def __init__(self, rubric: Rubric | None = None) -> None:
        self.rubric = rubric or load_rubric()
        self.asked: list[tuple[list[dict[str, str]], Mapping[str, Any] | None, int]] = []
        self._queue: deque[Reply | Exception] = deque()

    def enqueue(self, *replies: Reply | str | Exception) -> Self:
        """Give these next, in this order. A plain text is a complete reply; an exception is raised."""
        self._queue.extend(Reply(r, "stop") if isinstance(r, str) else r for r in replies)
        return self

    def ask(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None, max_tokens: int) -> Reply:
        self.asked.append(([dict(m) for m in messages], schema, max_tokens))
        if self._queue:
            reply = self._queue.popleft()
            if isinstance(reply, Exception):
                raise reply
            return reply
        seed = json.dumps([[m["role"], m["content"]] for m in messages])
        return Reply(answer_text(self.rubric, drawn_answer(self.rubric, seed)), "stop")

    def describe(self) -> dict[str, Any]:
        return {"backend": "fake"}

    def close(self) -> None:
        pass


class FakeJudge:
    """A Judge whose answers are drawn from a hash of what it is shown, or made by `answer`.

    `answer` takes the conversation and the turn (None for a whole conversation). An empty turn is Unscored
    ("empty_turn") without asking it.
    """

    is_remote = False
    remarks = (REMARK,)

    def __init__(
        self,
        rubric: Rubric | None = None,
        *,
        answer: Callable[[Conversation, Turn | None], FakeAnswer] | None = None,
        name: str = "fake",
    ) -> None:
        self.rubric = rubric or load_rubric()
        self.lane = Lane(judge=name, rubric=self.rubric.hash, contract="fake")
        self.settings: Mapping[str, Any] = {}
        self._answer = answer or self._drawn

    def score(
        self,
        conversation: Conversation,
        *,
        rationale: Rationale = "flagged",
        on_verdict: Callable[[Verdict], None] | None = None,
        known: Collection[int | None] = (),
    ) -> list[Verdict]:
        """One verdict a turn, or one for the whole conversation, as the rubric's unit says; none for `known`."""
        units: Sequence[Turn | None] = conversation.turns if self.rubric.unit == "turn" else (None,)
        verdicts = []
        for turn in units:
            if (turn.number if turn else None) in known:
                continue
            verdict = self._verdict(conversation, turn, rationale)
            verdicts.append(verdict)
            if on_verdict is not None:
                on_verdict(verdict)
        return verdicts

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _drawn(self, conversation: Conversation, turn: Turn | None) -> FakeAnswer:
        seen = conversation.turn_hash(turn) if turn else conversation.content_hash
        return drawn_answer(self.rubric, f"{self.lane.judge} {self.rubric.hash} {seen}")

    def _verdict(self, conversation: Conversation, turn: Turn | None, rationale: Rationale) -> Verdict:
        said = None
        if turn is not None and not turn.message.content.strip():
            nothing = Unscored("empty_turn")
            answer = FakeAnswer(
                dict.fromkeys(self.rubric.metric_names, nothing),
                {f.name: Flag(None, unscored=nothing) for f in self.rubric.flags},
            )
        else:
            answer = self._answer(conversation, turn)
            said = answer.rationale if _says_why(self.rubric, answer, rationale) else None
        return Verdict(
            conversation_id=conversation.id,
            turn=turn.number if turn else None,
            content_hash=conversation.turn_hash(turn) if turn else conversation.content_hash,
            scores=answer.scores,
            flags=answer.flags,
            rationale=said,
            provenance={**self.lane.to_dict(), "backend": {"backend": "fake"}},
        )


def _says_why(rubric: Rubric, answer: FakeAnswer, rationale: Rationale) -> bool:
    if rationale != "flagged":
        return rationale == "always"
    flagged = any(f.value is not False for f in answer.flags.values())
    return flagged or bool(critical_failures(rubric, answer.scores))
