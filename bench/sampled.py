"""The items of a recipe as its stages `targets` and `sample` have them, made or reused, and the texts of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aipsy_judge.conversation import Conversation
from training.data_files import conversations
from training.recipe import Recipe
from training.sample import make_sample
from training.sample_rows import FILE as SAMPLE_FILE
from training.sample_rows import SampleRow, read_sample_rows
from training.target_rows import FILE as TARGETS_FILE
from training.target_rows import TargetRow, read_target_rows
from training.targets import NAME as TARGETS


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """rows: of every part, in the sample's order, each with its target by item_id; texts: by conversation id."""

    rows: tuple[SampleRow, ...]
    targets: Mapping[str, TargetRow]
    texts: Mapping[str, Conversation]


def sampled(recipe: Recipe, work: Path) -> Sampled:
    """Make (or reuse) both stages in the folder `work`. Raises whatever they raise."""
    folder = make_sample(recipe, work).folder
    targets = {row.item_id: row for row in read_target_rows(work / TARGETS / TARGETS_FILE)}
    return Sampled(tuple(read_sample_rows(folder / SAMPLE_FILE)), targets, conversations(recipe))
