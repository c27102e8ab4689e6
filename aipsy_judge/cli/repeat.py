"""`aipsy-judge repeat`: the same input several times."""

from __future__ import annotations

import click

from .judge_options import JudgeChoice, judge_options


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--times", type=click.IntRange(2), default=3, show_default=True, help="How often each is judged.")
@click.option("--cold", is_flag=True, help="Open the judge anew each time (nothing in its cache).")
@judge_options
@click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="Figures as JSON.")
def command(files: tuple[str, ...], times: int, cold: bool, choice: JudgeChoice, json_file: str | None) -> None:
    """Judge the same conversations several times with one judge, and say how far its scores spread.

    Measure this before any agreement: a judge that disagrees with itself agrees with nobody. No rationale is asked
    for. Nothing is kept but the figures.

    Exit codes: 0 done, 2 input, 3 judge, 4 nothing could be scored, 130 interrupted.
    """
    from .json_output import check_json_target
    from .repeat_job import repeat

    check_json_target(json_file)
    raise SystemExit(repeat(files, times, cold, choice, json_file))
