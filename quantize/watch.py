"""Everything that is looked at on one side: tokens, free answers, distributions over given answers, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aipsy_judge.asked_prompt import Prompts
from aipsy_judge.backends.protocol import TokenBackend
from aipsy_judge.errors import CapacityError
from aipsy_judge.manifest import LEGAL_MASS_FLOOR
from aipsy_judge.verdict import Verdict

from .asked import Task, cells, distinct, texts_of, whole
from .closeness import Kept, follow, keep, place
from .drift import verdicts
from .free_answers import Written, write_answers
from .side import Side, opened
from .tokens_seen import HARD_TEXTS, Seen, look
from .trunk import Trunk

Tell = Callable[[str], None]
LINE_TOKENS = 24  # `affective_complexity:NA` and its end take fewer


@dataclass(frozen=True, slots=True)
class Settings:
    """budget: most tokens of a free answer of one JSON object; floor: of legal mass; memory_gb: of the cache."""

    threads: int = 0
    budget: int = 512
    floor: float = LEGAL_MASS_FLOOR
    memory_gb: float = 4.0


@dataclass(frozen=True, slots=True)
class Watched:
    """What one side did.

    followed  the answers that it was given: its own, or those of the other side
    kept      its distribution before every token of these, answer by answer; None where its vocabulary has not as
              many tokens as the one they were written in
    places    against the distributions it was compared with: divergence, and whether the first token is the same
    """

    seen: Seen
    written: tuple[Written, ...]
    followed: tuple[Written, ...]
    kept: tuple[tuple[Kept, ...], ...] | None
    places: tuple[tuple[float, bool], ...]
    verdicts: tuple[Verdict, ...]
    library: str


def watch(side: Side, task: Task, settings: Settings, against: Watched | None, tell: Tell) -> Watched:
    """Look at one side. The answers that are followed are its own, or those of `against`."""
    with opened(side, settings.threads) as backend:
        prompts, cues = task.prompts(backend), task.cues(backend)
        budget = LINE_TOKENS if task.contract.lines else settings.budget
        _check_room(prompts, cues, budget, backend.context_tokens, side)
        texts = [*HARD_TEXTS, *texts_of(task.conversations)]
        seen = look(backend, texts, [p for unit in prompts for p in distinct(unit)])
        trunk = Trunk(backend, max(cells(p, cues, budget) for p in prompts))
        tell(f"{side.words}: free answers to {len(prompts)} prompts, and distributions over those that are followed")
        given = _by_unit(against.followed) if against is not None else None
        written, answers = list[Written](), list[Written]()
        kept, places = list[tuple[Kept, ...]](), list[tuple[float, bool]]()
        for unit, prompt in enumerate(prompts):  # all that is asked of a prompt while it stands in the cache
            own = write_answers(backend, trunk, unit, prompt, cues, budget)
            followed = own if given is None else given.get(unit, [])
            rows, near = _followed(backend, trunk, prompts, cues, followed, against, first=len(answers))
            written += own
            answers += followed
            kept += rows
            places += near
        trunk.clear()
        tell(f"{side.words}: verdicts")
        said = verdicts(backend, side, task, floor=settings.floor, memory_gb=settings.memory_gb)
        library = str(backend.describe()["library"])
        whole = tuple(kept) if _comparable(backend, against) else None
        return Watched(seen, tuple(written), tuple(answers), whole, tuple(places), tuple(said), library)


def distance_from(side: Side, task: Task, settings: Settings, other: Watched, tell: Tell) -> list[tuple[float, bool]]:
    """Over the answers that `other` was given: the divergence of its distributions from this side's."""
    if other.kept is None:
        return []
    tell(f"{side.words}: without training, over the same answers")
    with opened(side, settings.threads) as backend:
        prompts, cues = task.prompts(backend), task.cues(backend)
        trunk = Trunk(backend, max(cells(p, cues, settings.budget) for p in prompts))
        return _followed(backend, trunk, prompts, cues, other.followed, other)[1]


def _by_unit(answers: Sequence[Written]) -> dict[int, list[Written]]:
    """Unit -> its answers, in order."""
    found: dict[int, list[Written]] = {}
    for answer in answers:
        found.setdefault(answer.unit, []).append(answer)
    return found


def _comparable(backend: TokenBackend, against: Watched | None) -> bool:
    """Whether answers that were written there can be followed here."""
    return against is None or len(against.seen.vocabulary) == len(backend.vocabulary)


def _followed(
    backend: TokenBackend,
    trunk: Trunk,
    prompts: Sequence[Prompts],
    cues: dict[str, list[int]],
    answers: Sequence[Written],
    against: Watched | None,
    first: int = 0,
) -> tuple[list[tuple[Kept, ...]], list[tuple[float, bool]]]:
    """Distributions over the answers, and places against those of the other side; `first`: how many of its answers
    stand before these."""
    kept: list[tuple[Kept, ...]] = []
    places: list[tuple[float, bool]] = []
    if not _comparable(backend, against):
        return kept, places
    for number, answer in enumerate(answers, first):
        asked = prompts[answer.unit]
        trunk.stand_on(whole(asked))
        rows = follow(trunk, [*asked[answer.form], *cues[answer.form]], answer.tokens)
        kept.append(tuple(keep(row) for row in rows))
        if against is not None and against.kept is not None:
            places += [place(p, row) for p, row in zip(against.kept[number], rows, strict=True)]
    return kept, places


def _check_room(prompts: Sequence[Prompts], cues: dict[str, list[int]], budget: int, context: int, side: Side) -> None:
    """Beyond the context that a model was made for it says something all the same, and figures would come of it.
    CapacityError."""
    most = max(len(whole(p)) for p in prompts) + max(len(cue) for cue in cues.values()) + budget
    if most > context:
        raise CapacityError(
            f"the longest prompt and its answer take {most} tokens; the model was made for {context}",
            where=side.words,
            hint="Give shorter conversations, or the judge's own --window.",
        )
