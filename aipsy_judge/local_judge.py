"""A judge whose weights run in this process: prompts -> engine -> verdicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from . import __version__
from .answer import AnswerForm, full_form
from .asked_prompt import Prompts, fitted_prompts
from .backends.protocol import Interruptible, TokenBackend
from .contract import Contract
from .conversation import Conversation, Message
from .engine.encode import answer_tokenizer, encode, marker_ids
from .engine.plan import Plan
from .engine.prose import Prose
from .engine.run import Engine, Question
from .engine.slots import AnswerReader
from .engine.tree import common_prefix
from .errors import CapacityError
from .judge import Lane, Rationale
from .local_verdict import VerdictWriter
from .prompt import ChatMessage
from .questions import Asked, Questions, questions_of
from .readings import read_flags, read_scores
from .rubric import Rubric
from .subjects import Subject, subjects
from .verdict import Score, Verdict
from .weights import Weights, file_sha256
from .weights_fit import check_weights

# Two conversations that differ from their first letter on; what their prompts share belongs to no conversation.
_MARK = ((Message("assistant", "a"),), (Message("assistant", "Z"),))
USUAL_TOKENS = 4096  # of a conversation that a server makes room for beforehand; more is made when it comes
RATIONALE_TOKENS = 96  # two sentences; the rubric asks for one or two


Finish = Callable[["int", Subject, Verdict], None]


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
        check_weights(weights, rubric, contract)
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
        # Of the files as they were opened: what lies there later may be another judge.
        self.model_sha256, self.model_bytes = file_sha256(weights.model), weights.size_bytes
        self.lane = Lane(judge=_judge_id(weights, self.model_sha256), rubric=rubric.hash, contract=contract.name)
        self._writer = VerdictWriter(weights, rubric, self._provenance)

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
            "set_from": dict(weights.set_from),
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
        return encode(self._backend, self._contract.messages(self.rubric, conversation, upto))

    # -- scoring ----------------------------------------------------------------------------------------------

    def forecast(self, conversation: Conversation) -> Plan | None:
        """What judging it without rationale will take; None where nothing of it can be asked. Evaluates nothing.

        Raises CapacityError where it does not fit the memory that was allowed.
        """
        asked, _ = self._prepare(conversation, 0)
        return self._engine.plan(self._questions(asked).asked)[1] if asked else None

    def score(
        self,
        conversation: Conversation,
        *,
        rationale: Rationale = "flagged",
        on_verdict: Callable[[Verdict], None] | None = None,
        known: Collection[int | None] = (),
    ) -> list[Verdict]:
        """See Judge.score. The plan is of the whole conversation, and so are the figures: `known` changes nothing."""
        heard = None if on_verdict is None else lambda _, verdict: on_verdict(verdict)
        return self.score_together([conversation], rationale=rationale, on_verdict=heard)[0]

    def score_together(
        self,
        conversations: Sequence[Conversation],
        *,
        rationale: Rationale = "flagged",
        on_verdict: Callable[[int, Verdict], None] | None = None,
    ) -> list[list[Verdict]]:
        """The verdicts of several conversations, judged in one plan; `on_verdict` hears of which one a verdict is.

        What else is in the plan moves the last digits of a figure, so the provenance says how many shared it.
        """
        prose_tokens = RATIONALE_TOKENS if rationale != "never" and self._takes_rationale else 0
        verdicts: list[dict[int, Verdict]] = [{} for _ in conversations]

        def finish(place: int, subject: Subject, verdict: Verdict) -> None:
            verdicts[place][subject.upto] = verdict
            if on_verdict is not None:
                on_verdict(place, verdict)

        asked: list[Asked] = []
        for place, conversation in enumerate(conversations):
            askable, refused = self._prepare(conversation, prose_tokens, place)
            asked += askable
            for subject, reason, detail in refused:
                finish(place, subject, self._writer.unscored(conversation, subject, reason, detail))
        if asked:
            self._ask(asked, rationale, prose_tokens, finish, shared=len(conversations))
        return [
            [found[s.upto] for s in subjects(c, self.rubric)] for found, c in zip(verdicts, conversations, strict=True)
        ]

    def ask(self, messages: Sequence[ChatMessage], rubric: Rubric) -> Mapping[str, Score]:
        """Scores of the metrics of another rubric, asked for in the caller's own words, by the engine that scores.

        The answer is one JSON object of the metrics in their order. Metrics should not be called like those of the
        judge's rubric, whose temperatures are theirs alone. CapacityError where the question does not fit.
        """
        form = full_form(rubric)
        prompt, reader = encode(self._backend, messages), self.reader(form)
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
        self, conversation: Conversation, prose_tokens: int, place: int = 0
    ) -> tuple[list[Asked], list[tuple[Subject, str, str | None]]]:
        """Prompts of the subjects that can be asked, and (subject, reason, detail) of those that cannot."""
        asked: list[Asked] = []
        refused: list[tuple[Subject, str, str | None]] = []
        room = self._context_tokens - max(self._answer_tokens(f) for f in self._forms.values()) - prose_tokens
        for subject in subjects(conversation, self.rubric):
            self._engine.before_pass()  # many long prompts take long, and nobody may wait for them any more
            if subject.empty:
                refused.append((subject, "empty_turn", None))
                continue
            prompts, dropped = self._prompts(conversation, subject, room)
            longest = max(map(len, prompts.values()))
            if longest > room:
                detail = f"{longest} tokens with the rubric; the judge takes {room}"
                refused.append((subject, "context_overflow", detail))
            else:
                asked.append(Asked(place, conversation, subject, prompts, dropped))
        return asked, refused

    def _prompts(self, conversation: Conversation, subject: Subject, room: int) -> tuple[Prompts, int]:
        return fitted_prompts(
            self._backend,
            self._contract,
            self.rubric,
            conversation,
            subject.upto,
            room=room,
            newest=self._weights.window,
            may_drop=self._window,
        )

    def _answer_tokens(self, form: AnswerForm) -> int:
        reader = self.reader(form)
        return len(reader.request().feed) + reader.room

    @property
    def _context_tokens(self) -> int:
        own = self._weights.context_tokens
        return self._backend.context_tokens if own is None else min(own, self._backend.context_tokens)

    def _ask(
        self, asked: Sequence[Asked], rationale: Rationale, prose_tokens: int, finish: Finish, *, shared: int
    ) -> None:
        """Ask; a subject is finished with the last of its answers."""
        questions = self._questions(asked)
        subjects_of = questions.subjects()
        finished: set[int] = set()

        def wants_prose(index: int) -> bool:
            if not questions.asked[index].reader.takes_prose:
                return False
            return rationale == "always" or self._writer.flagged(questions.readers(subjects_of[index][0]))

        def on_group(indices: list[int], prose: dict[int, Prose]) -> None:
            texts = {i: p for index, p in prose.items() for i in subjects_of[index]}
            # the answers of one turn can lie in two groups: it is final with the last of them
            for i in sorted({i for index in indices for i in subjects_of[index]} - finished):
                readers = questions.readers(i)
                if not all(r.done for r in readers):
                    continue
                finished.add(i)
                item = asked[i]
                verdict = self._writer.verdict(
                    item.conversation, item.subject, item.dropped, readers, texts.get(i), shared
                )
                finish(item.place, item.subject, verdict)

        try:
            self._engine.answer(questions.asked, prose_tokens=prose_tokens, wants_prose=wants_prose, on_group=on_group)
        except CapacityError as error:
            for item in (a for i, a in enumerate(asked) if i not in finished):
                lost = self._writer.unscored(item.conversation, item.subject, "context_overflow", error.message)
                finish(item.place, item.subject, lost)

    def _questions(self, asked: Sequence[Asked]) -> Questions:
        return questions_of(asked, self._forms, self.reader, self._engine.before_pass)

    def reader(self, form: AnswerForm) -> AnswerReader:
        return AnswerReader(form, self._tokenize, self._engine.vocabulary, self._weights.temperatures)

    def _provenance(self) -> dict[str, Any]:
        return {**self.lane.to_dict(), "aipsy_judge": __version__, "settings": dict(self.settings)}

    # -- for a server, which keeps one judge open for long --------------------------------------------------------

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def weights(self) -> Weights:
        return self._weights

    def watch(self, check: Callable[[], None]) -> None:
        """`check` is called before every pass; what it raises ends the judging, and the judge stays usable."""
        self._engine.before_pass = check
        if isinstance(self._backend, Interruptible):
            self._backend.before_pass = check

    def warm_up(self) -> None:
        """Evaluate what all prompts begin with, and make room for a conversation of usual length."""
        room = len(self._engine.head) + USUAL_TOKENS
        self._engine.warm_up(min(room, self._engine.limits.cells))

    @property
    def context_tokens(self) -> int:
        """Longest prompt and answer."""
        return self._context_tokens

    def tokenize_answer(self, text: str) -> list[int]:
        """Tokens of an answer's text, as the engine feeds it."""
        return self._tokenize(text)

    def prompt_tokens(self, conversation: Conversation) -> int:
        """Tokens of the prompt that rates the last of its subjects; 0 where there is none."""
        last = subjects(conversation, self.rubric)[-1:]
        return sum(len(self._encode(conversation, s.upto)) for s in last)

    def close(self) -> None:
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _judge_id(weights: Weights, model_sha256: str) -> str:
    """Name and content of the files: another quantisation or adapter is another judge."""
    parts = [weights.name, model_sha256[:12]]
    if weights.adapter is not None:
        parts.append(file_sha256(weights.adapter)[:12])
    return "@".join(parts)
