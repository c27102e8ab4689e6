"""What every workshop program shares: RECIPE, --set, --out, and how it ends. `--help` imports no torch.

@recipe_program
def main(recipe: Recipe, out: Path) -> None: ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from aipsy_judge.cli.ending import told_errors
from aipsy_judge.errors import EXIT_INTERRUPTED

from .recipe_reading import load_recipe

RUNS = Path("runs")


def recipe_program(work: Callable[..., None]) -> click.Command:
    """A command around `work(recipe, out, **own options)`; its help is the docstring of `work`.

    The recipe is read and checked whole first. `out` is the run's folder, runs/NAME unless `--out` says otherwise.
    """

    @functools.wraps(work)
    def run(recipe_path: Path, overrides: tuple[str, ...], out: Path | None, **options: object) -> None:
        with told_errors():
            recipe = load_recipe(recipe_path, overrides)
            try:
                work(recipe, out or RUNS / recipe.name, **options)
            except KeyboardInterrupt:
                click.echo("\ninterrupted; the same command goes on from here", err=True)
                raise SystemExit(EXIT_INTERRUPTED) from None

    command = click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})(run)
    command.params[:0] = [
        click.Argument(["recipe_path"], metavar="RECIPE", type=click.Path(path_type=Path)),
        click.Option(
            ["--set", "overrides"],
            multiple=True,
            metavar="KEY=VALUE",
            help="Override a key of the recipe, such as train.steps=100; may be given several times.",
        ),
        click.Option(
            ["--out"],
            type=click.Path(path_type=Path, file_okay=False),
            help=f"The run's folder.  [default: {RUNS}/NAME, NAME as in the recipe]",
        ),
    ]
    return command
