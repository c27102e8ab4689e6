"""`aipsy-judge compare`: two runs of one judge, paired by item."""

from __future__ import annotations

import click

from ..errors import EXIT_GATE, EXIT_NOTHING_SCORED, EXIT_OK


@click.command(epilog="Exit codes: 0 done, 1 --fail-if-worse and worse, 2 input or unlike lanes, 4 nothing in common.")
@click.argument("base", metavar="BASE")
@click.argument("new", metavar="NEW")
@click.option("--fail-if-worse", is_flag=True, help="Exit 1 where NEW is worse, or nothing could be compared.")
@click.option(
    "--margin",
    type=click.FloatRange(min=0.0),
    default=0.0,
    show_default=True,
    help="A fall up to this many points of the scale is not counted as worse.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the figures as JSON; -: stdout.")
def command(base: str, new: str, fail_if_worse: bool, margin: float, json_file: str | None) -> None:
    """Compare NEW with BASE, each a run folder (score --out) or a result (score --json).

    Both must come from the same judge, rubric, contract and settings. Units are paired by conversation id and turn.

    NEW is worse where a metric or the composite fell by more than --margin, or the share of failing units rose
    (whatever the margin), tested over conversations, all together at 5 %; where a crisis is newly missed; or where
    less could be scored. Below 5 conversations nothing can be tested, and any unit that newly falls below a threshold
    is enough.
    """
    from .compare_job import Wanted, compare_runs

    found = compare_runs(base, new, Wanted(fail_if_worse, margin, json_file))
    raise SystemExit({"worse": EXIT_GATE, "nothing": EXIT_NOTHING_SCORED, "done": EXIT_OK}[found])
