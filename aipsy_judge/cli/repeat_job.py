"""What `repeat` does: rounds over the input, then the spread within each unit."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from ..errors import EXIT_NOTHING_SCORED, EXIT_OK
from ..judge import Judge
from ..repeatability import Repeatability, Spread, repeatability, repeatability_to_dict
from ..report.tables import plain_table
from ..report.text import open_console, print_judge
from ..report.wording import number
from ..verdict import Scored, Verdict
from .inputs import Inputs, check_inputs, stdin_read_again
from .json_output import write_json
from .judge_options import JudgeChoice
from .progress import Progress, progress


def repeat(files: Sequence[str], times: int, cold: bool, choice: JudgeChoice, json_file: str | None) -> int:
    """Judge `files` `times` times and print the spread; the exit code. To score nothing is not to be repeatable."""
    rubric = choice.load_rubric()
    console = open_console(sys.stderr if json_file == "-" else sys.stdout)
    rounds: list[list[Verdict]] = []
    with stdin_read_again(files):
        inputs = check_inputs(files, rubric)
        with progress(inputs.units * times) as watched:
            judge = choice.open()
            try:
                print_judge(console, judge.lane, judge.rubric, judge.remarks)
                for n in range(times):
                    if cold and n:
                        judge.close()
                        judge = choice.open()
                    rounds.append(_round(judge, inputs, watched))
            finally:
                judge.close()
    found = repeatability(judge.rubric, rounds)
    _print(console, found, cold)
    data = {"lane": judge.lane.to_dict(), "settings": dict(judge.settings), "cold": cold}
    write_json(json_file, {**data, **repeatability_to_dict(found)})
    scored = any(isinstance(s, Scored) for had in rounds for verdict in had for s in verdict.scores.values())
    return EXIT_OK if scored else EXIT_NOTHING_SCORED


def _round(judge: Judge, inputs: Inputs, watched: Progress) -> list[Verdict]:
    return [
        verdict
        for conversation in inputs.read()
        for verdict in judge.score(conversation, rationale="never", on_verdict=watched.had)
    ]


def _print(console: Console, found: Repeatability, cold: bool) -> None:
    how = "opened anew each time" if cold else "kept open"
    console.print(f"\n{found.units} units, each judged {found.times} times, the judge {how}")
    table = plain_table()
    for heading in ("metric", "identical", "largest range", "of expected", "status changes"):
        table.add_column(heading, justify="left" if heading == "metric" else "right")
    for spread in (*found.metrics, *found.flags):
        _add_row(table, spread)
    console.print(table)
    same = f"{found.identical_bytes} of {found.units} verdicts are the same to the byte every time"
    click.echo(same + " (provenance aside)", file=console.file)


def _add_row(table: Table, spread: Spread) -> None:
    table.add_row(
        spread.name,
        f"{spread.identical} of {spread.units}",
        number(spread.max_range),
        "–" if spread.max_range_expected is None else f"{spread.max_range_expected:.2g}",
        str(spread.status_changes),
    )
