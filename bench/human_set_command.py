"""What `python -m bench.human PATHS --judge NAME` does first where rivals are wanted, or no person rated the set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.errors import InputError
from aipsy_judge.ratings import Ratings, reference_raters
from training.recipe_reading import load_recipe

from .held_out import held_out
from .held_out_command import wanted_of
from .held_out_run import contestants_of, judge_all, work_folder
from .human_judge import conversations_of, read_map
from .human_sets import rated_set, set_figures, set_lines, sets_to_dict, with_judge


def measure_set(
    ratings: Ratings,
    experts: tuple[str, ...],
    judge: str,
    items: Path | None,
    map_path: Path | None,
    seed: int,
    told: Mapping[str, Any],
) -> tuple[Ratings, dict[str, Any]]:
    """Judge the set, hold everybody against its reference, print; the table with the judge in it, and all figures.

    `told`: the options of a held-out part (held_out_command), of which the rivals learn on the recipe's train part.
    """
    if items is None or map_path is None:
        raise InputError("--judge needs --items (what to score) and --map (what its metrics mean)")
    held = reference_raters(ratings, experts)
    rated = rated_set(ratings, held, read_map(map_path), conversations_of(items), told["most"], seed)
    wanted, recipe = wanted_of(judge, seed, told), load_recipe(told["recipe_path"])
    replies = rated.replies

    def say(line: str) -> None:
        click.echo(line, err=True)

    judged, _ = judge_all(recipe, wanted, replies, say)
    with work_folder(wanted.work) as work:
        whole = held_out(recipe, wanted.part, work)
    contestants, _ = contestants_of(whole, replies, judged, wanted.verdicts, say)
    found = set_figures(rated, contestants, whole.rubric, Bootstrap(resamples=wanted.resamples))
    for line in set_lines(found, rated):
        click.echo(line)
    return with_judge(rated, contestants[0], whole.rubric), sets_to_dict(found, rated)
