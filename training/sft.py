"""Stage sft: a LoRA adapter trained on the rows, judged as it learns, its probabilities calibrated at the end.

    python -m training.sft RECIPE          (several processes: accelerate launch -m training.sft RECIPE)

rows, targets, sample, conversations, base -> sft/adapter/, temperatures.json, validation.jsonl, log.jsonl, curves.png
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aipsy_judge.rubric import load_rubric

from .base_folder import base_folder
from .data_files import conversation_paths
from .processes import first_process
from .program import recipe_program
from .recipe import Recipe
from .resuming import clear
from .sample_rows import FILE as SAMPLE_FILE
from .stage import Made, Stage, finished, is_current, make, part_of
from .target_rows import FILE as TARGETS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

NAME, VERSION = "sft", 1


def train(recipe: Recipe, out: Path, say: Callable[[str], None] = click.echo) -> Made:
    """Reuse or make the stage; a killed run goes on from its last checkpoint."""
    # A run asks no network: what it needs has been named, and lies on this machine.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    base = base_folder(recipe)
    stage = _stage(recipe, out, base)

    def work(part: Path, say: Callable[[str], None] = say) -> None:
        from .quiet import without_notices

        with without_notices():
            from .sft_run import run

        run(recipe, out, base, part, say)

    if not first_process():  # the first process keeps the stage; the others compute with it
        if not is_current(out, stage):
            work(part_of(out, stage), lambda line: None)
        return Made(out / NAME, None)
    made = make(out, stage, work, resumable=True, say=say)
    clear(made.folder)  # not before it is in place: a kill until then goes on from a checkpoint
    return made


def _stage(recipe: Recipe, out: Path, base: Path) -> Stage:
    settings: dict[str, Any] = recipe.part("seed", "contract", "lora", "train", "validate")
    settings |= {
        "rubric": load_rubric(recipe.rubric).hash,
        "base_bits": recipe.memory.base_bits,
        "revision": recipe.base.revision,
        "window": recipe.render.window,
        "spread": recipe.targets.spread,
        "labels": recipe.render.labels,
    }
    inputs = {
        "rows": finished(out, "rows"),
        "targets": finished(out, "targets") / TARGETS_FILE,
        "sample": finished(out, "sample") / SAMPLE_FILE,
        "base": base,
        **{p.as_posix(): p for p in conversation_paths(recipe)},
    }
    return Stage(NAME, VERSION, settings, inputs)


@recipe_program
def main(recipe: Recipe, out: Path) -> None:
    """Train the adapter of RECIPE."""
    train(recipe, out)


if __name__ == "__main__":
    main()
