"""A judge whose weights run in this process: prompts -> engine -> verdicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from . import __version__
from .answer import AnswerForm, full_form
from .asked_prompt import asked_prompt
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
from .readings import read_flags, read_scores
from .rubric import Rubric
from .subjects import Subject, subjects
from .verdict import Score, Verdict
from .weights import Weights, file_sha256
from .weights_fit import check_weights
from .window import fit

# Two conversations that differ from their first letter on; what their prompts share belongs to no conversation.
_MARK = ((Message("assistant", "a"),), (Message("assistant", "Z"),))
USUAL_TOKENS = 4096  # of a conversation that a server makes room for beforehand; more is made when it comes
RATIONALE_TOKENS = 96  # two sentences; the rubric asks for one or two


@dataclass(frozen=True, slots=True)
class _Asked:
    """A subject of the conversation at `place`, with its prompt; `dropped` counts the oldest messages that a window
    left out."""

    place: int
    conversation: Conversation
    subject: Subject
    prompt: list[int]
    dropped: int


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
        return asked_prompt(self._backend, self._contract, self.rubric, conversation, upto)

    # -- scoring ----------------------------------------------------------------------------------------------

    def forecast(self, conversation: Conversation) -> Plan | None:
        """What judging it without rationale will take; None where nothing of it can be asked. Evaluates nothing.

        Raises CapacityError where it does not fit the memory that was allowed.
        """
        asked, _ = self._prepare(conversation, 0)
        questions = self._questions(_alike(asked))
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

        asked: list[_Asked] = []
        for place, conversation in enumerate(conversations):
            askable, refused = self._prepare(conversation, prose_tokens, place)
            asked += askable
            for subject, reason, detail in refused:
                finish(place, subject, self._writer.unscored(conversation, subject, reason, detail))
        if asked:
            self._ask(_alike(asked), rationale, prose_tokens, finish, shared=len(conversations))
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
    ) -> tuple[list[_Asked], list[tuple[Subject, str, str | None]]]:
        """Prompts of the subjects that can be asked, and (subject, reason, detail) of those that cannot."""
        asked: list[_Asked] = []
        refused: list[tuple[Subject, str, str | None]] = []
        room = self._context_tokens - max(self._answer_tokens(f) for f in self._forms.values()) - prose_tokens
        for subject in subjects(conversation, self.rubric):
            self._engine.before_pass()  # many long prompts take long, and nobody may wait for them any more
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
                asked.append(_Asked(place, conversation, subject, prompt, dropped))
        return asked, refused

    def _answer_tokens(self, form: AnswerForm) -> int:
        reader = self.reader(form)
        return len(reader.request().feed) + reader.room

    @property
    def _context_tokens(self) -> int:
        own = self._weights.context_tokens
        return self._backend.context_tokens if own is None else min(own, self._backend.context_tokens)

    def _ask(
        self,
        asked: Sequence[Sequence[_Asked]],
        rationale: Rationale,
        prose_tokens: int,
        finish: Finish,
        *,
        shared: int,
    ) -> None:
        """Ask once for each group of alike prompts; every subject of it gets the answer."""
        names = list(self._forms)
        questions = self._questions(asked)
        readers = [[questions[i * len(names) + k].reader for k in range(len(names))] for i in range(len(asked))]
        finished: set[int] = set()

        def wants_prose(index: int) -> bool:
            if not questions[index].reader.takes_prose:
                return False
            return rationale == "always" or self._writer.flagged(readers[index // len(names)])

        def on_group(indices: list[int], prose: dict[int, Prose]) -> None:
            texts = {i // len(names): p for i, p in prose.items()}
            # the answers of one turn can lie in two groups: it is final with the last of them
            for i in sorted({index // len(names) for index in indices}):
                if not all(r.done for r in readers[i]):
                    continue
                finished.add(i)
                for item in asked[i]:
                    verdict = self._writer.verdict(
                        item.conversation, item.subject, item.dropped, readers[i], texts.get(i), shared
                    )
                    finish(item.place, item.subject, verdict)

        try:
            self._engine.answer(questions, prose_tokens=prose_tokens, wants_prose=wants_prose, on_group=on_group)
        except CapacityError as error:
            for item in (a for i, alike in enumerate(asked) if i not in finished for a in alike):
                lost = self._writer.unscored(item.conversation, item.subject, "context_overflow", error.message)
                finish(item.place, item.subject, lost)

    def _questions(self, asked: Sequence[Sequence[_Asked]]) -> list[Question]:
        """Of each group of alike prompts one for every form, in order."""
        found: list[Question] = []
        for alike in asked:
            self._engine.before_pass()  # tokenising every option takes long too where turns are many
            found += [Question(alike[0].prompt, self.reader(form)) for form in self._forms.values()]
        return found

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


def _alike(asked: Sequence[_Asked]) -> list[list[_Asked]]:
    """Subjects by prompt, in order. A window can leave the same words of two turns of a talk that repeats itself."""
    groups: dict[tuple[int, ...], list[_Asked]] = {}
    for item in asked:
        groups.setdefault(tuple(item.prompt), []).append(item)
    return list(groups.values())


def _judge_id(weights: Weights, model_sha256: str) -> str:
    """Name and content of the files: another quantisation or adapter is another judge."""
    parts = [weights.name, model_sha256[:12]]
    if weights.adapter is not None:
        parts.append(file_sha256(weights.adapter)[:12])
    return "@".join(parts)
