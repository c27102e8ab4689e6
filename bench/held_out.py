"""Held-out items: the rated replies of one part of a recipe, each with its text and what it is held against.

The target of an item is the recipe's own (stage `targets`), its part and its group that of stage `sample`. Items of one
group (a conversation and its alternative replies, and whatever belongs together with them) are resampled together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError
from aipsy_judge.ratings import Ratings, load_ratings
from aipsy_judge.rubric import Rubric, load_rubric
from training.data_files import rating_paths
from training.recipe import Recipe
from training.split import Part
from training.target_rows import TargetRow

from .sampled import sampled


@dataclass(frozen=True, slots=True)
class Reply:
    """One assistant message to be judged (turn None: the whole conversation), and the group it is resampled with."""

    id: str
    conversation: Conversation
    turn: int | None
    group: str

    @property
    def shown(self) -> tuple[Message, ...]:
        """The messages up to and including the reply."""
        messages = self.conversation.messages
        return messages if self.turn is None else messages[: self.conversation.turns[self.turn - 1].index + 1]


@dataclass(frozen=True, slots=True)
class HeldItem(Reply):
    """A rated reply and its target."""

    target: TargetRow


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """items of the part that is judged, and `train` that rivals learn from; `ratings`: all ratings of the recipe."""

    rubric: Rubric
    part: Part
    items: tuple[HeldItem, ...]
    train: tuple[HeldItem, ...]
    ratings: Ratings


def held_out(recipe: Recipe, part: Part, work: Path) -> HeldOut:
    """Make (or reuse) targets and sample in the folder `work`, and take the items of `part`.

    Raises InputError where the part has no item, and whatever the two stages raise.
    """
    whole = sampled(recipe, work)
    found: dict[str, list[HeldItem]] = {}
    for row in whole.rows:
        target = whole.targets[row.item_id]
        item = HeldItem(row.item_id, whole.texts[target.conversation], target.turn, row.group, target)
        found.setdefault(row.part, []).append(item)
    if not found.get(part):
        raise InputError(f"no item of {recipe.name} lies in the part {part}", where="--part")
    ratings = load_ratings(rating_paths(recipe))
    return HeldOut(load_rubric(recipe.rubric), part, tuple(found[part]), tuple(found.get("train", ())), ratings)


def group_numbers(items: Sequence[Reply]) -> tuple[list[int], int]:
    """Each item's group as a number from 0, and how many groups there are."""
    known: Mapping[str, int] = {name: n for n, name in enumerate(dict.fromkeys(i.group for i in items))}
    return [known[i.group] for i in items], len(known)
