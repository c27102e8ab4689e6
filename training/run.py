"""The whole chain from one recipe: targets, sample, render, sft, and export where the recipe has that section.

    python -m training.run RECIPE [--until STAGE]

Each stage is a program of its own and is run as one, so that its memory is free again before the next begins. A run
that was killed goes on with the same command; what rests on nothing that changed is reused.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from aipsy_judge.errors import EXIT_INTERRUPTED

from .child import run_child
from .data_files import inputs
from .program import recipe_program
from .provenance import RECIPE, record
from .recipe import Recipe

STAGES = ("targets", "sample", "render", "sft", "export")


def commands(recipe: Recipe, out: Path, until: str | None = None) -> list[list[str]]:
    """The programs in their order, each reading the resolved recipe: all of them run with the same one."""
    wanted = [s for s in STAGES if s != "export" or recipe.export is not None]
    if until in wanted:
        wanted = wanted[: wanted.index(until) + 1]
    return [[sys.executable, "-m", f"training.{stage}", str(out / RECIPE), "--out", str(out)] for stage in wanted]


def run(programs: Sequence[Sequence[str]]) -> int:
    """The exit code of the first program that fails, else 0."""
    for program in programs:
        code = run_child(program)
        if code != 0:
            # Killed by a signal: as a shell reports it.
            return EXIT_INTERRUPTED if code == -2 else code if code > 0 else 128 - code
    return 0


@recipe_program
@click.option("--until", type=click.Choice(STAGES), help="Stop after this stage.")
def main(recipe: Recipe, out: Path, until: str | None) -> None:
    """Run the whole chain of RECIPE: targets, sample, render, sft, export."""
    inputs(recipe, "targets.correction", "split.file")  # a file that is not there is said before anything runs
    record(out, recipe)
    code = run(commands(recipe, out, until))
    if code != 0:
        click.echo("the chain stopped; the same command goes on from here", err=True)
        sys.exit(code)


if __name__ == "__main__":
    main()
