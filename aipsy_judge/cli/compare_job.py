"""What `compare` does: read both runs, compare, print, write, decide."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

import click

from ..atomic import check_writable, write_text
from ..compare import Comparison, compare, comparison_to_dict, worse
from ..errors import InputError
from ..report.comparison import print_comparison
from ..report.hidden import on_one_line
from ..report.text import open_console
from ..runs import RunView, load_run
from ..strict_json import dumps

Outcome = Literal["done", "worse", "nothing"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `compare`. `json` "-" is stdout, and then the tables go to stderr."""

    fail_if_worse: bool
    margin: float
    json: str | None


def compare_runs(base: str, new: str, wanted: Wanted) -> Outcome:
    """The whole of `compare`. Raises AipsyJudgeError."""
    if wanted.json is not None and wanted.json != "-":
        _check_target(wanted.json, (base, new))
    runs = load_run(base), load_run(new)
    found = compare(*runs)
    reasons = worse(found, wanted.margin)
    console = open_console(sys.stderr if wanted.json == "-" else sys.stdout)
    console.print(_lane_words(runs[0]))
    for name, path, run in (("BASE", base, runs[0]), ("NEW", new, runs[1])):
        console.print(f"{name}: {on_one_line(path)}, begun {on_one_line(run.created)}")
    print_comparison(console, found)
    if wanted.fail_if_worse:
        console.print("NEW is worse:" if reasons else "NEW is not shown to be worse.")
        for reason in reasons:
            console.print(f"  {reason}")
    _write(found, reasons, runs, wanted)
    if wanted.fail_if_worse and reasons:
        return "worse"
    return "done" if any(d.n for d in found.differences) else "nothing"


def _check_target(path: str, inputs: tuple[str, str]) -> None:
    if os.path.realpath(path) in {os.path.realpath(i) for i in inputs}:
        raise InputError("is an input; it is not overwritten with the output", where=path)
    check_writable(path)


def _lane_words(run: RunView) -> str:
    rubric = f"rubric {run.rubric.name} {on_one_line(run.rubric.version)} ({run.lane.rubric[:12]})"
    return f"Judge {on_one_line(run.lane.judge)}, {rubric}, contract {on_one_line(run.lane.contract)}"


def _write(found: Comparison, reasons: list[str], runs: tuple[RunView, RunView], wanted: Wanted) -> None:
    if wanted.json is None:
        return
    data = {
        "lane": runs[0].lane.to_dict(),
        "worse": reasons,
        "margin": wanted.margin,
        **comparison_to_dict(found),
    }
    text = dumps(data, indent=1) + "\n"
    if wanted.json == "-":
        click.echo(text, nl=False)
    else:
        write_text(wanted.json, text)
