"""Corrections against what one could do without them, on ratings that people and judges gave to the same items; and,
without such ratings, a judge against its rivals on the held-out part of a recipe.

    python -m bench.human RATINGS.csv[.gz] [--items ITEMS.jsonl[.gz] --map MAP.yaml --judge NAME] [--json FILE]
    python -m bench.human --judge NAME [--part test] [--recipe recipes/mini.yaml] [--verdicts FILE] [--json FILE]

For 10, 30, 100, 300 anchors (at most 60 % of the rated items) and 50 seeded draws of them: RMSE, MAE, Spearman, tail
AUC and tail recall at equal flag rate on items of other conversations, per metric, for every rival (equal mean,
constant, each judge, the judge best on the anchors with and without an offset, the published rule), every rung, the
blend and p_fail; the regret to the best rival (with hindsight) and its paired standard error. The tail is a score at
or below 40 % of the scale. With several experts the reference is their mean.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from aipsy_judge.agreement.pairs import Ints
from aipsy_judge.atomic import check_writable, write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.correction.metric_data import MetricData, Tail, metric_data
from aipsy_judge.errors import AipsyJudgeError, RatingsError
from aipsy_judge.ratings import Ratings, load_ratings, reference_raters
from aipsy_judge.strict_json import dumps

from .held_out_command import held_out_options, judge_options, measure_held_out, refuse_unheeded
from .human_cells import run_cells
from .human_judge import (
    JudgeRun,
    add_judge,
    agreement,
    agreement_lines,
    conversations_of,
    item_groups,
    read_map,
    regrouped,
)
from .human_report import cell_lines, summary_lines, to_dict
from .human_set_command import measure_set

ANCHORS = (10, 30, 100, 300)
TAIL_SHARE = 0.4
HEEDED = ("adapter", "contract", "unblessed", "threads")


def tables(ratings: Ratings, experts: tuple[str, ...], metrics: tuple[str, ...], severity: bool) -> list[MetricData]:
    """Every metric that experts and judges rated."""
    held = reference_raters(ratings, experts)
    if not held:
        raise RatingsError("nobody is an expert in this table", hint="Name one with --expert RATER.")
    judges = [j for j in ratings.judges if j not in held]
    if not judges:
        raise RatingsError("no judge in this table")
    found = []
    for metric in metrics or ratings.metrics:
        if not (_scored(ratings, metric, held) and _scored(ratings, metric, judges)):
            continue
        low, high = ratings.scales[metric]
        tail = Tail(low + TAIL_SHARE * (high - low), inclusive=True)
        beside = [m for m in ratings.metrics if _scored(ratings, m, judges)]
        found.append(
            metric_data(ratings, metric, judges=judges, experts=held, tail=tail, beside=beside, severity=severity)
        )
    if not found:
        raise RatingsError("no metric was rated by an expert and a judge")
    return found


def _scored(ratings: Ratings, metric: str, raters: tuple[str, ...] | list[str]) -> bool:
    return bool(ratings.matrix(metric, raters).scored.any())


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--expert", "experts", multiple=True, metavar="RATER", help="Who is right. Default: the experts.")
@click.option("--metric", "metrics", multiple=True, help="Only these metrics.")
@click.option("--anchors", multiple=True, type=click.IntRange(2), default=ANCHORS, show_default=True)
@click.option("--draws", "count", default=50, show_default=True, type=click.IntRange(2))
@click.option("--seed", default=14, show_default=True)
@click.option("--severity", is_flag=True, help="Adjust for how severe each of several experts is.")
@click.option("--items", type=click.Path(path_type=Path), help="The conversations, for --judge.")
@click.option("--map", "map_path", type=click.Path(path_type=Path), help="YAML: which metrics mean which.")
@click.option("--judge", "judge", metavar="NAME", help="Score the items with this judge too; alone: held-out part.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1))
@click.option("--brief", is_flag=True, help="Print the summary only.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every figure here.")
@held_out_options
def main(
    paths: tuple[Path, ...],
    experts: tuple[str, ...],
    metrics: tuple[str, ...],
    anchors: tuple[int, ...],
    count: int,
    seed: int,
    severity: bool,
    items: Path | None,
    map_path: Path | None,
    judge: str | None,
    workers: int,
    brief: bool,
    json_path: Path | None,
    **held_out: Any,
) -> None:
    """Corrections against rivals on ratings by people and judges; without PATHS, a judge on a held-out part."""
    if not paths:
        with told_errors():
            measure_held_out(judge, seed, json_path, held_out)
        return
    try:
        if json_path is not None:
            check_writable(json_path)
        ratings, of_set = _with_judge(load_ratings(paths), experts, judge, items, map_path, seed, held_out)
        found = tables(ratings, experts, metrics, severity) if reference_raters(ratings, experts) or not of_set else []
        mapped = read_map(map_path) if map_path is not None else None
        groups: Ints = ratings.groups()
        if mapped is not None and mapped.group is not None and items is not None:
            groups = item_groups(ratings, mapped.group, conversations_of(items))
            found = regrouped(found, groups)
    except AipsyJudgeError as error:
        hint = f"\n  next: {error.hint}" if error.hint else ""
        raise click.ClickException(f"{error}{hint}") from error
    if not found:
        _write(json_path, {"set": of_set})
        return
    agreed = agreement(found, ratings, groups, mapped.order_only if mapped is not None else ())
    for line in agreement_lines(agreed):
        click.echo(line)
    begun = time.perf_counter()
    cells = run_cells(found, sorted(set(anchors)), count=count, seed=seed, by_family=True, workers=workers)
    for line in [] if brief else [line for cell in cells for line in cell_lines(cell)]:
        click.echo(line)
    for line in summary_lines(cells):
        click.echo(line)
    click.echo(f"{len(cells)} cells in {time.perf_counter() - begun:.0f} s")
    judges = {m: {j: {f: e.to_dict() for f, e in row.items()} for j, row in of.items()} for m, of in agreed.items()}
    found_all = {"seed": seed, "tail_share": TAIL_SHARE, "judges": judges, "cells": to_dict(cells)}
    _write(json_path, found_all | ({"set": of_set} if of_set else {}))


def _with_judge(
    ratings: Ratings,
    experts: tuple[str, ...],
    judge: str | None,
    items: Path | None,
    map_path: Path | None,
    seed: int,
    told: dict[str, Any],
) -> tuple[Ratings, dict[str, Any]]:
    """The table with the judge as one more rater; and, where rivals are wanted or no person rated the set, all figures
    of judge and rivals against its reference."""
    if judge is None:
        refuse_unheeded(told, "without --judge")
        return ratings, {}
    if told["against_rivals"] or not reference_raters(ratings, experts):
        refuse_unheeded(told, "with PATHS and rivals", (*HEEDED, "verdicts", "most"))
        return measure_set(ratings, experts, judge, items, map_path, seed, told)
    refuse_unheeded(told, "with PATHS that people rated and no --against-rivals", HEEDED)
    asked = JudgeRun.make(judge, items, map_path, told["adapter"], told["contract"], judge_options(told))
    return add_judge(ratings, asked, click.echo), {}


def _write(path: Path | None, data: dict[str, Any]) -> None:
    if path is not None:
        write_text(path, dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
