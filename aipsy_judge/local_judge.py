"""A judge whose weights run in this process: prompts -> engine -> verdicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from . import __version__
from .answer import AnswerForm, full_form
from .backends.protocol import TokenBackend
from .composite import wants_reason
from .contract import Contract
from .conversation import Conversation, Message
from .engine.choice import SlotReading
from .engine.encode import answer_tokenizer, encode, marker_ids
from .engine.plan import Plan
from .engine.prose import Prose
from .engine.run import Engine, Question
from .engine.slots import AnswerReader
from .engine.tree import common_prefix
from .errors import CapacityError, ContractError
from .judge import Lane, Rationale
from .prompt import ChatMessage
from .readings import read_flags, read_scores
from .reservations import check_names, unsure, withhold
from .rubric import Rubric
from .subjects import Subject, subjects
from .untrusted import suspicions
from .verdict import Flag, Score, Unscored, Verdict
from .weights import Weights, file_sha256
from .window import fit, window_notes

# Two conversations that differ from their first letter on; what their prompts share belongs to no conversation.
_MARK = ((Message("assistant", "a"),), (Message("assistant", "Z"),))
RATIONALE_TOKENS = 96  # two sentences; the rubric asks for one or two


@dataclass(frozen=True, slots=True)
class _Asked:
    """A subject with its prompt; `dropped` counts the oldest messages that a window left out."""

    subject: Subject
    prompt: list[int]
    dropped: int


class LocalJudge:
    """See judge.Judge. One per process and model: the rubric stays evaluated between conversations."""

    def __init__(
        self,
        backend: TokenBackend,
        weights: Weights,
        rubric: Rubric,
        contract: Contract,
        *,
        memory_gb: float = 4.0,
        window: bool = False,
    ) -> None:
        if weights.rubric_hash is not None and weights.rubric_hash != rubric.hash:
            raise ContractError(
                f"{weights.name} was trained on the rubric {weights.rubric_hash[:12]}; asked for {rubric.hash[:12]}",
                hint="Score with the rubric it was trained on, or with a judge that takes any rubric.",
            )
        check_names(rubric, weights.operating_points, weights.not_validated, weights.name)
        self._backend, self._weights, self._contract = backend, weights, contract
        self.rubric = rubric
        self.remarks = weights.remarks
        self.is_remote = False
        self._window = window
        self._memory_gb = memory_gb
        self._forms = dict(contract.forms(rubric))
        self._tokenize = answer_tokenizer(backend)
        cells = int(memory_gb * 2**30 / backend.cell_bytes)
        self._engine = Engine(backend, self._head(), cells)
        self.lane = Lane(judge=_judge_id(weights), rubric=rubric.hash, contract=contract.name)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            **self._backend.describe(),
            "window": self._window,
            "memory_gb": self._memory_gb,
            "legal_mass_floor": self._weights.legal_mass_floor,
            "temperatures": dict(self._weights.temperatures),
            **self._reservations,
        }

    @property
    def _reservations(self) -> dict[str, Any]:
        """What the judge's manifest says beside it, where it says something."""
        weights = self._weights
        said = {
            "newest_messages": weights.window,
            "operating_points": {n: asdict(p) for n, p in weights.operating_points.items()},
            "not_validated": sorted(weights.not_validated),
            "unblessed": weights.blessed is False,
        }
        return {k: v for k, v in said.items() if v}

    @property
    def backend(self) -> TokenBackend:
        return self._backend

    @property
    def first_probe(self) -> int:
        """The first sequence number that the last conversation's branches did not use."""
        return self._engine.spare

    def _head(self) -> list[int]:
        """What every prompt begins with: the rubric, up to the last control token before the conversation."""
        prompts = [self._encode(Conversation("", _MARK[i], {}), 0) for i in range(2)]
        shared = prompts[0][: common_prefix(prompts)]
        markers = marker_ids(self._backend)
        cut = max((i + 1 for i, token in enumerate(shared) if token in markers), default=0)
        # No system role: the rubric opens the user's message. A few tokens back no tokenizer merges any more.
        return shared[:cut] if cut > len(shared) // 2 else shared[: max(0, len(shared) - 8)]

    def _encode(self, conversation: Conversation, upto: int) -> list[int]:
        messages: list[ChatMessage] = self._contract.messages(self.rubric, conversation, upto)
        return encode(self._backend, messages)

    # -- scoring ----------------------------------------------------------------------------------------------

    def forecast(self, conversation: Conversation) -> Plan | None:
        """What judging it without rationale will take; None where nothing of it can be asked. Evaluates nothing.

        Raises CapacityError where it does not fit the memory that was allowed.
        """
        asked, _ = self._prepare(conversation, 0)
        questions = [Question(a[0].prompt, self._reader(f)) for a in _alike(asked) for f in self._forms.values()]
        return self._engine.plan(questions)[1] if questions else None

    def score(
        self,
        conversation: Conversation,
        *,
        rationale: Rationale = "flagged",
        on_verdict: Callable[[Verdict], None] | None = None,
        known: Collection[int | None] = (),
    ) -> list[Verdict]:
        """See Judge.score. The plan is of the whole conversation, and so are the figures: `known` changes nothing."""
        prose_tokens = RATIONALE_TOKENS if rationale != "never" and self._takes_rationale else 0
        asked, done = self._prepare(conversation, prose_tokens)
        verdicts: dict[int, Verdict] = {}

        def finish(subject: Subject, verdict: Verdict) -> None:
            verdicts[subject.upto] = verdict
            if on_verdict is not None:
                on_verdict(verdict)

        for subject, reason, detail in done:
            finish(subject, self._unscored(conversation, subject, reason, detail))
        if asked:
            self._ask(conversation, _alike(asked), rationale, prose_tokens, finish)
        return [verdicts[s.upto] for s in subjects(conversation, self.rubric)]

    def ask(self, messages: Sequence[ChatMessage], rubric: Rubric) -> Mapping[str, Score]:
        """Scores of the metrics of another rubric, asked for in the caller's own words, by the engine that scores.

        The answer is one JSON object of the metrics in their order. Metrics should not be called like those of the
        judge's rubric, whose temperatures are theirs alone. CapacityError where the question does not fit.
        """
        form = full_form(rubric)
        prompt, reader = encode(self._backend, messages), self._reader(form)
        room = self._context_tokens - self._answer_tokens(form)
        if len(prompt) > room:
            raise CapacityError(f"a question of {len(prompt)} tokens; the judge takes {room}")
        if not reader.done:
            self._engine.answer([Question(prompt, reader)])
        floor = self._weights.legal_mass_floor
        return read_scores(rubric, reader.readings, read_flags(rubric, reader.readings, floor), floor)

    @property
    def _takes_rationale(self) -> bool:
        return any(form.rationale for form in self._forms.values())

    def _prepare(
        self, conversation: Conversation, prose_tokens: int
    ) -> tuple[list[_Asked], list[tuple[Subject, str, str | None]]]:
        """Prompts of the subjects that can be asked, and (subject, reason, detail) of those that cannot."""
        asked: list[_Asked] = []
        refused: list[tuple[Subject, str, str | None]] = []
        room = self._context_tokens - max(self._answer_tokens(f) for f in self._forms.values()) - prose_tokens
        for subject in subjects(conversation, self.rubric):
            if subject.empty:
                refused.append((subject, "empty_turn", None))
                continue
            own = self._weights.window
            prompt, dropped = fit(
                self._encode, conversation, subject.upto, room=room, newest=own, may_drop=self._window
            )
            if len(prompt) > room:
                detail = f"{len(prompt)} tokens with the rubric; the judge takes {room}"
                refused.append((subject, "context_overflow", detail))
            else:
                asked.append(_Asked(subject, prompt, dropped))
        return asked, refused

    def _answer_tokens(self, form: AnswerForm) -> int:
        reader = self._reader(form)
        return len(reader.request().feed) + reader.room

    @property
    def _context_tokens(self) -> int:
        own = self._weights.context_tokens
        return self._backend.context_tokens if own is None else min(own, self._backend.context_tokens)

    def _ask(
        self,
        conversation: Conversation,
        asked: Sequence[Sequence[_Asked]],
        rationale: Rationale,
        prose_tokens: int,
        finish: Callable[[Subject, Verdict], None],
    ) -> None:
        """Ask once for each group of alike prompts; every subject of it gets the answer."""
        names = list(self._forms)
        questions = [Question(a[0].prompt, self._reader(self._forms[n])) for a in asked for n in names]
        readers = [[questions[i * len(names) + k].reader for k in range(len(names))] for i in range(len(asked))]
        finished: set[int] = set()

        def wants_prose(index: int) -> bool:
            if not questions[index].reader.takes_prose:
                return False
            return rationale == "always" or self._flagged(readers[index // len(names)])

        def on_group(indices: list[int], prose: dict[int, Prose]) -> None:
            texts = {i // len(names): p for i, p in prose.items()}
            # the answers of one turn can lie in two groups: it is final with the last of them
            for i in sorted({index // len(names) for index in indices}):
                if not all(r.done for r in readers[i]):
                    continue
                finished.add(i)
                for item in asked[i]:
                    finish(item.subject, self._verdict(conversation, item, readers[i], texts.get(i)))

        try:
            self._engine.answer(questions, prose_tokens=prose_tokens, wants_prose=wants_prose, on_group=on_group)
        except CapacityError as error:
            for item in (a for i, alike in enumerate(asked) if i not in finished for a in alike):
                finish(item.subject, self._unscored(conversation, item.subject, "context_overflow", error.message))

    def _reader(self, form: AnswerForm) -> AnswerReader:
        return AnswerReader(form, self._tokenize, self._engine.vocabulary, self._weights.temperatures)

    def _meaning(self, readers: Sequence[AnswerReader]) -> tuple[dict[str, Flag], dict[str, Score], tuple[str, ...]]:
        """Flags, scores, and the names of those that are unsure."""
        readings: dict[str, SlotReading] = {}
        for reader in readers:
            readings |= reader.readings
        floor = self._weights.legal_mass_floor
        flags = read_flags(self.rubric, readings, floor)
        scores = read_scores(self.rubric, readings, flags, floor)
        flags, scores = withhold(self.rubric, flags, scores, self._weights.not_validated)
        return flags, scores, unsure(self.rubric, flags, scores, self._weights.operating_points)

    def _flagged(self, readers: Sequence[AnswerReader]) -> bool:
        """A unit that a human should look at: a flag, a failure, or something that could not be read or is unsure."""
        flags, scores, doubtful = self._meaning(readers)
        return wants_reason(self.rubric, flags, scores) or bool(doubtful)

    # -- verdicts ---------------------------------------------------------------------------------------------

    def _verdict(
        self, conversation: Conversation, asked: _Asked, readers: Sequence[AnswerReader], prose: Prose | None
    ) -> Verdict:
        flags, scores, doubtful = self._meaning(readers)
        notes = [*self._standing_notes, *window_notes(asked.subject.upto, asked.dropped, self._weights.window)]
        notes += [f"unsure:{name}" for name in doubtful]
        notes += [f"near_tie:{name}" for r in readers for name, reading in r.readings.items() if reading.near_tie]
        if prose is not None and prose.cut:
            notes.append("rationale_cut")
        text = prose.text if prose is not None else None
        return Verdict(
            conversation_id=conversation.id,
            turn=asked.subject.turn,
            content_hash=asked.subject.content_hash,
            scores=scores,
            flags=flags,
            rationale=text,
            suspected_injection=suspicions(m.content for m in conversation.messages[: asked.subject.upto + 1]),
            notes=tuple(notes),
            raw="".join(r.answer(text or "") for r in readers),
            provenance=self._provenance(),
        )

    @property
    def _standing_notes(self) -> tuple[str, ...]:
        return ("unblessed",) if self._weights.blessed is False else ()

    def _unscored(self, conversation: Conversation, subject: Subject, reason: str, detail: str | None) -> Verdict:
        lost = Unscored(reason, detail)
        return Verdict(
            conversation_id=conversation.id,
            turn=subject.turn,
            content_hash=subject.content_hash,
            scores=dict.fromkeys(self.rubric.metric_names, lost),
            flags={f.name: Flag(None, unscored=lost) for f in self.rubric.flags},
            suspected_injection=suspicions(m.content for m in conversation.messages[: subject.upto + 1]),
            notes=self._standing_notes,
            provenance=self._provenance(),
        )

    def _provenance(self) -> dict[str, Any]:
        return {**self.lane.to_dict(), "aipsy_judge": __version__, "settings": dict(self.settings)}

    def close(self) -> None:
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _alike(asked: Sequence[_Asked]) -> list[list[_Asked]]:
    """Subjects by prompt, in order. A window can leave the same words of two turns of a talk that repeats itself."""
    groups: dict[tuple[int, ...], list[_Asked]] = {}
    for item in asked:
        groups.setdefault(tuple(item.prompt), []).append(item)
    return list(groups.values())


def _judge_id(weights: Weights) -> str:
    """Name and content of the files: another quantisation or adapter is another judge."""
    parts = [weights.name, file_sha256(weights.model)[:12]]
    if weights.adapter is not None:
        parts.append(file_sha256(weights.adapter)[:12])
    return "@".join(parts)
