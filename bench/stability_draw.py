"""The replies that a stability run judges: a seeded draw from a part of a recipe, half of them failures by the target.

A reply is shown with the conversation up to it. Of its turns the last alone is judged: the earlier replies are marked
as not spoken, which changes no letter of the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError
from training.recipe import Recipe
from training.sample_rows import SampleRow
from training.split import Part
from training.target_rows import TargetRow

from .sampled import sampled


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """origin        the conversation of the files that it comes from; an alternative reply has an id of its own
    failure       by the target
    conversation  up to the reply, of which alone a verdict is asked
    """

    item: str
    origin: str
    failure: bool
    conversation: Conversation

    @property
    def target(self) -> int:
        """Index of the judged message: the last."""
        return len(self.conversation.messages) - 1


def drawn_replies(recipe: Recipe, work: Path, part: Part, turns: int, seed: int) -> tuple[JudgedReply, ...]:
    """`turns` replies in a seeded order; targets and parts are those of the recipe, made or reused in `work`.

    Raises InputError where the part has too few failures or passes.
    """
    whole = sampled(recipe, work)
    chosen = draw([r for r in whole.rows if r.part == part], turns, seed)
    return tuple(_reply(whole.targets[r.item_id], r, whole.texts) for r in chosen)


def draw(rows: Sequence[SampleRow], turns: int, seed: int) -> list[SampleRow]:
    """Half of `turns` failures (rounded down), half passes; what the target leaves undefined is never drawn."""
    strata = [r for r in rows if r.stratum in ("tail", "advice_boundary")], [r for r in rows if r.stratum == "pass"]
    wanted = turns // 2, turns - turns // 2
    if any(len(have) < n for have, n in zip(strata, wanted, strict=True)):
        raise InputError(
            f"{turns} turns need {wanted[0]} failures and {wanted[1]} passes; "
            f"the part has {len(strata[0])} and {len(strata[1])}",
            hint="Ask for fewer with --turns.",
        )

    def place(row: SampleRow) -> str:
        return sha256(f"{seed}:{row.item_id}".encode()).hexdigest()

    found = [r for have, n in zip(strata, wanted, strict=True) for r in sorted(have, key=place)[:n]]
    return sorted(found, key=place)


def only_last(conversation: Conversation) -> Conversation:
    """The same words, of whose turns the last alone is judged."""
    *before, target = conversation.messages
    kept = tuple(m if m.role != "assistant" else Message(m.role, m.content, spoken=False) for m in before)
    return replace(conversation, messages=(*kept, target))


def _reply(row: TargetRow, told: SampleRow, texts: Mapping[str, Conversation]) -> JudgedReply:
    whole = texts[row.conversation]
    if row.turn is None:
        raise InputError("the recipe rates whole conversations; this program judges single replies", where=row.item_id)
    upto = replace(whole, messages=whole.messages[: whole.turns[row.turn - 1].index + 1])
    origin = str(whole.metadata.get("origin", whole.id))
    return JudgedReply(row.item_id, origin, told.stratum != "pass", only_last(upto))
