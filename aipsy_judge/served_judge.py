"""A judge on a server: prompt -> free reply -> validated verdict. It gives no probabilities unless the server does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from . import __version__
from .backends.protocol import Reply, ReplyBackend
from .composite import wants_reason
from .contract import Contract
from .contracts import load_contract
from .conversation import Conversation
from .errors import AccessError, BackendError, CapacityError, ContractError, InputError
from .judge import Judge, JudgeOptions, Lane, Rationale
from .prompt import ChatMessage
from .reply import ParsedReply, failed_reply, read_reply
from .reply.probabilities import with_readings
from .rubric import Rubric
from .schema import answer_schema, conforms
from .strict_json import whole_characters
from .subjects import Subject, subjects
from .untrusted import suspicions
from .verdict import Score, Unscored, Verdict

MAX_TOKENS = 2048  # an answer takes about 300; models that think aloud need the rest
GIVE_UP_AFTER = 5  # failed items at the start of a run, when none has succeeded yet


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of asking about one unit. `failure`: of the server, where it gave no reply."""

    parsed: ParsedReply
    reply: Reply | None = None
    attempts: int = 0
    notes: tuple[str, ...] = ()
    failure: BackendError | None = None


class ServedJudge:
    """See judge.Judge. One request a unit, in order; a unit that fails is Unscored and the next one is asked.

    A judge that fails on every one of the first `give_up_after` units it is asked about, or has no access at all,
    raises BackendError (AccessError), so that a run does not grind on without it.
    """

    def __init__(
        self,
        backend: ReplyBackend,
        rubric: Rubric,
        contract: Contract,
        *,
        max_tokens: int = MAX_TOKENS,
        window: bool = False,
        give_up_after: int = GIVE_UP_AFTER,
    ) -> None:
        if set(contract.forms(rubric)) != {"answer"}:
            raise ContractError(
                f"the contract {contract.name} asks for many short answers and needs the model's probabilities",
                where=backend.name,
                hint="Ask a judge on a server by the contract full.",
            )
        self._backend, self._contract = backend, contract
        self._max_tokens, self._window, self._give_up_after = max_tokens, window, give_up_after
        self._answered = False
        self._failed = 0
        self.rubric = rubric
        self.lane = Lane(judge=backend.name, rubric=rubric.hash, contract=contract.name)
        self.settings: Mapping[str, Any] = {**backend.describe(), "max_tokens": max_tokens, "window": window}

    @property
    def backend(self) -> ReplyBackend:
        return self._backend

    @property
    def is_remote(self) -> bool:
        return self._backend.is_remote

    @property
    def remarks(self) -> tuple[str, ...]:
        return (f"the text was sent to {self._backend.name}",) if self.is_remote else ()

    def score(
        self,
        conversation: Conversation,
        *,
        rationale: Rationale = "flagged",
        on_verdict: Callable[[Verdict], None] | None = None,
        known: Collection[int | None] = (),
    ) -> list[Verdict]:
        """Verdicts in the order of the turns, those in `known` left out. Raises BackendError only as the class says."""
        verdicts = []
        for subject in subjects(conversation, self.rubric):
            if subject.turn in known:
                continue
            outcome = self._outcome(conversation, subject, rationale)
            verdict = self._verdict(conversation, subject, outcome, rationale)
            verdicts.append(verdict)
            if on_verdict is not None:
                on_verdict(verdict)
        return verdicts

    def ask(self, messages: Sequence[ChatMessage], rubric: Rubric) -> Mapping[str, Score]:
        """Scores of the metrics of another rubric, asked for in the caller's own words; validated as any reply is.

        Raises BackendError, and CapacityError where the question does not fit.
        """
        sent = [{"role": m.role, "content": m.text} for m in messages]
        reply = self._backend.ask(sent, schema=answer_schema(rubric, rationale=False), max_tokens=self._max_tokens)
        return read_reply(reply, rubric, prompt=[m["content"] for m in sent]).scores

    def close(self) -> None:
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- asking -----------------------------------------------------------------------------------------------

    def _outcome(self, conversation: Conversation, subject: Subject, rationale: Rationale) -> _Outcome:
        if subject.empty:
            return self._lost(Unscored("empty_turn"))
        try:
            outcome = self._ask_windowed(conversation, subject, rationale)
        except CapacityError as error:
            return self._lost(Unscored("context_overflow", error.message))
        except BackendError as error:
            self._count_failure(error)
            return self._lost(Unscored(error.reason, error.message), error)
        self._answered = True
        return outcome

    def _lost(self, why: Unscored, failure: BackendError | None = None) -> _Outcome:
        return _Outcome(failed_reply(self.rubric, why), failure=failure)

    def _count_failure(self, error: BackendError) -> None:
        if self._answered:
            return
        self._failed += 1
        if isinstance(error, AccessError):
            raise error
        if self._failed >= self._give_up_after:
            raise BackendError(
                f"the judge failed on all of the first {self._failed} items; the last time: {error.message}",
                where=self._backend.name,
                hint=error.hint,
                retryable=error.retryable,
            ) from error

    def _ask_windowed(self, conversation: Conversation, subject: Subject, rationale: Rationale) -> _Outcome:
        """Ask; with a window, leave out a quarter more of the oldest messages as long as the server says too long."""
        dropped = 0
        while True:
            shown = Conversation(conversation.id, conversation.messages[dropped:])
            try:
                return self._ask(shown, subject.upto - dropped, rationale, dropped)
            except CapacityError:
                left = subject.upto - dropped  # messages before the one that is judged
                if not self._window or left <= 0:
                    raise
                dropped += -(-left // 4)

    def _ask(self, conversation: Conversation, upto: int, rationale: Rationale, dropped: int) -> _Outcome:
        """One request; a reply that was cut off is asked for once more with twice the budget."""
        messages = [
            {"role": m.role, "content": m.text} for m in self._contract.messages(self.rubric, conversation, upto)
        ]
        schema = answer_schema(self.rubric, rationale=rationale != "never") if self._contract.name == "full" else None
        prompt = [m["content"] for m in messages]
        notes = [f"windowed:{dropped}"] if dropped else []
        attempts = 1
        reply = self._backend.ask(messages, schema=schema, max_tokens=self._max_tokens)
        parsed = read_reply(reply, self.rubric, prompt=prompt)
        if parsed.failure is not None and parsed.failure.reason in ("truncated", "thinking_exhausted"):
            # No room for twice the budget leaves the first outcome as it is.
            with suppress(CapacityError):
                longer = self._backend.ask(messages, schema=schema, max_tokens=2 * self._max_tokens)
                notes.append(f"asked_again:{parsed.failure.reason}")
                reply, parsed, attempts = longer, read_reply(longer, self.rubric, prompt=prompt), 2
        if schema is not None and reply.finish == "stop" and reply.text and not conforms(reply.text, schema):
            notes.append("unconstrained")
        return _Outcome(parsed, reply, attempts, tuple(notes))

    # -- verdicts ---------------------------------------------------------------------------------------------

    def _verdict(
        self, conversation: Conversation, subject: Subject, outcome: _Outcome, rationale: Rationale
    ) -> Verdict:
        parsed, reply = outcome.parsed, outcome.reply
        scores, flags = parsed.scores, parsed.flags
        notes = (*outcome.notes, *(reply.notes if reply else ()), *parsed.notes)
        if reply is not None:
            scores, flags = with_readings(reply, self.rubric, scores, flags)
            notes = notes if scores == parsed.scores else (*notes, "probabilities_from_server")
        wanted = rationale == "always" or (rationale == "flagged" and wants_reason(self.rubric, flags, scores))
        return Verdict(
            conversation_id=conversation.id,
            turn=subject.turn,
            content_hash=subject.content_hash,
            scores=scores,
            flags=flags,
            rationale=parsed.rationale if wanted else None,
            suspected_injection=suspicions(m.content for m in conversation.messages[: subject.upto + 1]),
            notes=notes,
            raw=whole_characters(reply.text) if reply is not None and reply.text is not None else None,
            provenance=self._provenance(outcome),
        )

    def _provenance(self, outcome: _Outcome) -> dict[str, Any]:
        made = {**self.lane.to_dict(), "aipsy_judge": __version__, "settings": dict(self.settings)}
        if outcome.failure is not None:
            return {**made, "failure": {"retryable": outcome.failure.retryable}}
        if outcome.reply is None:
            return made
        raw = outcome.reply.raw or {}
        told = {k: raw[k] for k in ("model", "system_fingerprint", "usage") if raw.get(k) is not None}
        return {**made, "reply": {"finish": outcome.reply.finish, "attempts": outcome.attempts, **told}}


def open_served(name: str, rubric: Rubric, contract: str, options: JudgeOptions) -> Judge:
    """The judge on a server that `name` names; `fake` is a stand-in for tests. See opening.open_judge."""
    if name == "fake":
        from .backends.fake import FakeJudge

        return FakeJudge(rubric)
    if name.startswith("fake"):
        raise InputError("the stand-in judge is called fake, without more", where=name)
    from .backends.server_name import parse_server_name

    server = parse_server_name(name)
    asked = load_contract(contract)
    backend: ReplyBackend
    if server.kind == "ollama":
        from .backends.ollama import OllamaBackend

        backend = OllamaBackend(server, timeout_seconds=options.timeout_seconds)
    else:
        from .backends.remote import OpenAIBackend

        backend = OpenAIBackend(server, timeout_seconds=options.timeout_seconds)
    try:
        return ServedJudge(backend, rubric, asked, window=options.window)
    except BaseException:
        backend.close()
        raise
