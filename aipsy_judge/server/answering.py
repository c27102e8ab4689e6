"""A chat, whoever's wire it came by -> one whole answer, or a refusal. Everything the wires have in common.

warm-up           no system prompt, at most one token wanted: the judge is made ready, nothing is judged
benchmark's seat  the system prompt is the benchmark's: the conversation in it is judged, and no schema is kept
JSON schema       any other prompt: the schema's places are read as slots
anything else     refused: this is no chat model, and free text would look like an answer
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..bench_contract import NAME as BENCH_CONTRACT
from ..judge import Judge
from ..local_judge import LocalJudge
from ..strict_json import whole_characters
from .bench_answer import bench_answer, check_can_answer
from .naming import identity
from .refusal import Refusal
from .schema_slots import compile_schema
from .seat import is_bench_prompt, read_seat
from .serving import Served
from .slot_writer import Written, write_answer
from .waiting import Gone, result_of
from .working import CallTask, Judged, ScoreTask, Tokens

_SEAT_HINT = (
    "Start the server with --answer-as-own to have it answer by its own contract (said in every answer), "
    f"or serve a judge of the contract {BENCH_CONTRACT}."
)


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a client's prompt; its text is data, whatever its role."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Chat:
    """What a client asks. `limit`: most tokens that the answer may have; None: as many as it takes.

    `may_warm`: on this wire a single token is asked for to have the model loaded; on others it is an answer.
    """

    messages: tuple[Said, ...]
    schema: Mapping[str, Any] | None = None
    limit: int | None = None
    may_warm: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. `about` says who judged and how, for clients that look."""

    text: str
    tokens: Tokens = field(default_factory=Tokens)
    about: Mapping[str, Any] = field(default_factory=dict)


async def answer(served: Served, chat: Chat, gone: Gone) -> Answer:
    """Raises Refusal, or Cancelled where the client is `gone`."""
    # JSON can hold half of an emoji, UTF-8 cannot: it is read as the readers of files read it.
    chat = replace(chat, messages=tuple(Said(m.role, whole_characters(m.text)) for m in chat.messages))
    if not chat.messages:
        return await _load(served, gone)
    first, *others = chat.messages
    if first.role == "system" and is_bench_prompt(first.text):
        if chat.schema is not None:  # filled in, it would say what this judge holds back, and not who judged
            raise Refusal(422, "The benchmark's prompt is answered in its own layout: send no schema with it.")
        if [m.role for m in others] != ["user"]:
            raise Refusal(422, "The benchmark's prompt is followed by one user message.")
        return await _from_seat(served, chat, others[0].text, gone)
    if chat.schema is not None:
        return await _by_schema(served, chat, chat.schema, gone)
    if chat.may_warm and chat.limit == 1 and [m.role for m in chat.messages] == ["user"]:
        check_seat(served)  # a run that could not be judged should end here, not after the target was paid for
        return await _load(served, gone)
    raise Refusal(
        422,
        "This server judges, it does not chat: an unknown prompt is answered only by a JSON schema.",
        hint="Give one (`format` or `response_format`), or POST a conversation to /v1/score.",
    )


def check_seat(served: Served) -> bool:
    """Whether the benchmark is answered by the judge's own contract. Refusal(409) where it is not answered."""
    judge = served.judge
    not_validated = judge.weights.not_validated if isinstance(judge, LocalJudge) else {}
    check_can_answer(judge.rubric, not_validated)
    if judge.lane.contract == BENCH_CONTRACT:
        return False
    if not served.options.answer_as_own:
        raise Refusal(
            409,
            f"This judge is asked by the contract {judge.lane.contract}, not by the benchmark's prompt.",
            hint=_SEAT_HINT,
        )
    return True


async def _load(served: Served, gone: Gone) -> Answer:
    await result_of(served, CallTask(warm_up), gone)
    return Answer("", about=identity(served.judge))


def warm_up(judge: Judge) -> None:
    """Evaluate what every prompt of this judge begins with."""
    if isinstance(judge, LocalJudge):
        judge.warm_up()


async def _from_seat(served: Served, chat: Chat, text: str, gone: Gone) -> Answer:
    as_own = check_seat(served)
    seat = read_seat(text)
    judged: Judged = await result_of(served, ScoreTask(seat.conversation, served.options.rationale), gone)
    served.metrics.count_verdicts(judged.verdicts)
    (verdict,) = judged.verdicts
    who = identity(served.judge, as_own=as_own)
    content = bench_answer(verdict, served.judge.rubric, who)
    about = {
        **who,
        "turn": seat.turn,
        "content_hash": verdict.content_hash,
        "evaluated_tokens": judged.tokens.evaluated,
        "notes": [*verdict.notes, *([f"forged_layout:{seat.forged}"] if seat.forged else [])],
        "suspected_injection": list(verdict.suspected_injection),
        "provenance": dict(verdict.provenance),
    }
    return _within(served, chat, Answer(content, judged.tokens, about))


async def _by_schema(served: Served, chat: Chat, schema: Mapping[str, Any], gone: Gone) -> Answer:
    parts = compile_schema(schema)
    if not isinstance(served.judge, LocalJudge):
        raise Refusal(409, "This judge gives no probabilities: it cannot fill in a schema.")

    def call(judge: Judge) -> Written:
        assert isinstance(judge, LocalJudge)
        return write_answer(judge, [(m.role, m.text) for m in chat.messages], parts)

    written: Written = await result_of(served, CallTask(call), gone)
    about = {**identity(served.judge), "readings": written.readings, "notes": list(written.notes)}
    return _within(served, chat, Answer(written.text, written.tokens, about))


def _within(served: Served, chat: Chat, whole: Answer) -> Answer:
    """A limit is kept by refusing: a cut answer would be taken for one."""
    served.metrics.add("prompt_tokens_total", whole.tokens.prompt)
    served.metrics.add("answer_tokens_total", whole.tokens.answer)
    if chat.limit is not None and 0 < chat.limit < whole.tokens.answer:
        raise Refusal(
            422, f"The whole answer takes {whole.tokens.answer} tokens, {chat.limit} were allowed; it is not cut."
        )
    return whole
