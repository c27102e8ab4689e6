"""What `python -m bench.human --judge NAME` does without ratings: the judge on a recipe's held-out part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from aipsy_judge.atomic import check_writable, write_text
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.strict_json import dumps
from training.recipe_reading import load_recipe

from .held_out_card import card_block, shipped_lines
from .held_out_points import point_lines, points_to_dict, proposals, set_from_lines, set_from_proposals
from .held_out_report import count_lines, difference_lines, mass_lines, plain_lines, tables
from .held_out_run import UNTRAINED, Found, Wanted, run, to_dict

RECIPE = Path("recipes/mini.yaml")
_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--recipe", "recipe_path", type=_FILE, default=RECIPE, show_default=True, help="Held-out: of this."),
    click.option("--part", type=click.Choice(["test", "validation"]), default="test", show_default=True),
    click.option("--work", type=_FILE, help="Folder for the recipe's targets and sample. Default: a temporary one."),
    click.option("--verdicts", type=_FILE, help="Keep verdicts in this JSONL, and take from it what is there."),
    click.option("--rival", "rivals", multiple=True, default=(UNTRAINED,), show_default=True, metavar="NAME"),
    click.option("--against-rivals", is_flag=True, help="With PATHS: the rivals too, against the people's ratings."),
    click.option("--adapter", type=_FILE, help="A LoRA GGUF that the judge wears."),
    click.option("--contract", help="How weights that were trained for no contract are asked. Default: the recipe's."),
    click.option("--unblessed", is_flag=True, help="Open a judge although its checks did not pass."),
    click.option("--threads", type=click.IntRange(0), default=1, show_default=True, help="0: all processors."),
    click.option("--most", type=click.IntRange(1), help="At most so many conversations, drawn by --seed."),
    click.option("--free", type=click.IntRange(1), metavar="N", help="Let it answer freely on N replies: what parses?"),
    click.option("--points", is_flag=True, help="Propose operating points; on --part validation only."),
    click.option("--card", type=_FILE, help="Write a description's not_validated and figures here, as YAML."),
    click.option("--resamples", type=click.IntRange(0), default=1000, show_default=True),
)


def held_out_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that concern a held-out part alone."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def measure_held_out(judge: str | None, seed: int, json_path: Path | None, told: Mapping[str, Any]) -> None:
    """Judge, measure, print, and write everything to `json_path`. `told`: the values of the options above."""
    if judge is None:
        raise click.UsageError("give ratings, or a judge to be held against a recipe's held-out part: --judge NAME")
    if told["points"] and told["part"] != "validation":
        raise click.UsageError("--points are chosen on --part validation: the test part must not be seen for that")
    for path in (json_path, told["card"]):
        if path is not None:
            check_writable(path)
    wanted = wanted_of(judge, seed, told)
    found = run(load_recipe(told["recipe_path"]), wanted, lambda line: click.echo(line, err=True))
    for line in lines(found):
        click.echo(line)
    data = to_dict(found)
    if told["points"]:
        verdicts = next(iter(found.judged.values())).verdicts
        points = proposals(found.rubric, verdicts, found.items)
        deciding = set_from_proposals(found.rubric, verdicts, found.items)
        for line in (*set_from_lines(deciding), *point_lines(points)):
            click.echo(line)
        data["points"] = points_to_dict(points) | {"set_from": {n: asdict(d) for n, d in deciding.items()}}
    if json_path is not None:
        write_text(json_path, dumps(data, indent=1) + "\n")
    if told["card"] is not None:
        write_text(told["card"], card_block(found))


def wanted_of(judge: str, seed: int, told: Mapping[str, Any]) -> Wanted:
    """From the values of the options."""
    same = ("rivals", "adapter", "contract", "part", "work", "verdicts", "most", "resamples", "free")
    return Wanted(judge, **{key: told[key] for key in same}, seed=seed, options=judge_options(told))


def judge_options(told: Mapping[str, Any]) -> JudgeOptions:
    """From the values of the options."""
    return JudgeOptions(threads=told["threads"], unblessed=told["unblessed"])


def refuse_unheeded(told: Mapping[str, Any], where: str, heeded: Collection[str] = ()) -> None:
    """UsageError naming the options on how to judge that are given and would change nothing."""
    defaults = {"adapter": None, "contract": None, "unblessed": False, "threads": 1}
    defaults |= {"verdicts": None, "most": None, "free": None, "points": False, "card": None}
    lost = [f"--{name}" for name, usual in defaults.items() if name not in heeded and told[name] != usual]
    if lost:
        raise click.UsageError(f"{where} nothing heeds {', '.join(lost)}")


def lines(found: Found) -> Iterator[str]:
    """The whole report."""
    groups = len({i.group for i in found.items})
    yield f"{len(found.items)} replies of {groups} conversations, part {found.part}, rubric {found.rubric.name}"
    for said in found.contestants:
        yield f"  {said.name}: {said.about}"
    for name, judged in found.judged.items():
        spent = judged.spent
        tokens = f", {spent.tokens / spent.turns:.0f} tokens" if spent.tokens is not None and spent.turns else ""
        each = "nothing judged"
        if spent.turns:
            worked = spent.processor_seconds / spent.turns
            each = f"{spent.seconds / spent.turns:.2f} s (processor {worked:.2f} s){tokens} a turn"
        yield f"  {name}: {spent.turns} turns, {each}{''.join(f'; {r}' for r in judged.remarks)}"
    if found.free is not None:
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.free["kinds"].items())
        yield f"  free answers of {found.judge.name} to {found.free['items']} replies: {kinds}"
    yield ""
    yield from count_lines(found.contestants, found.rubric)
    for said in found.contestants:
        yield from mass_lines(said)
    yield ""
    yield f"Figures [95 % interval, {found.bootstrap.resamples} resamples of conversations with all their replies]"
    for held in found.held:
        yield f"Held against: {held.name}, {held.about}"
        yield ""
        yield from tables(found.figures[held.name], found.rubric, held.name)
    yield from difference_lines(found.differences, found.judge.name)
    if found.shipped is not None:
        yield "As a user meets it, with what its manifest holds back and marks for review"
        yield from (f"  {line}" for line in shipped_lines(found))
        yield ""
    yield from _in_plain_words(found)


def _in_plain_words(found: Found) -> Iterator[str]:
    first = found.figures[found.held[0].name][found.judge.name]
    for view in ("expected", "likely"):
        yield f"In plain words, by the {'expected' if view == 'expected' else 'most likely'} value"
        for line in plain_lines(first, found.rubric, view):
            yield f"  {line}"
    yield ""
    if not found.reasons:
        yield "not_validated: nothing; better than a bag of words on every metric"
        return
    yield "not_validated:"
    for metric, reason in found.reasons.items():
        yield f"  {metric}: {reason}"
