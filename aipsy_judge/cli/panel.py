"""`aipsy-judge panel`: several judges over the same items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .judge_options import JudgeChoice, options_of_judges

if TYPE_CHECKING:
    from ..judge import Rationale


@click.command(
    epilog="Exit codes: 0 done, 2 input, 3 a judge failed or gave nothing (the others went on), 4 nothing could be "
    "scored, 130 interrupted."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="NAME",
    help="A known judge, a GGUF file, openai:MODEL@URL or ollama:MODEL[@URL]; again for each judge.",
)
@options_of_judges
@click.option(
    "--rationale",
    type=click.Choice(["always", "flagged", "never"]),
    default="flagged",
    show_default=True,
    help="When the judges also say why.",
)
@click.option(
    "--out", required=True, metavar="DIR", help="A run folder per judge, panel.json and ratings.csv go there."
)
@click.option("--resume", is_flag=True, help="Go on with the panel in --out; without --judge, with all of its judges.")
@click.option("--price", metavar="FILE", help="YAML with prices per million tokens; without it tokens alone are shown.")
@click.option("--yes", is_flag=True, help="Send to judges on other machines without asking.")
@click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="What came of it, as JSON.")
def command(
    files: tuple[str, ...],
    judges: tuple[str, ...],
    choice: JudgeChoice,
    rationale: Rationale,
    out: str,
    resume: bool,
    price: str | None,
    yes: bool,
    json_file: str | None,
) -> None:
    """Ask several judges about the same items.

    FILE is a transcript, a folder of them, or - for standard input. All of it is checked, and the tokens are
    estimated, before the first question. Judges of one machine take turns; machines work side by side. A judge that
    fails for good is given up and the others go on; --resume asks for what is missing.

    A price file reads: currency: USD, then judges: with a line MODEL: {input: 0.25, output: 2.0} for each, per
    million tokens.
    """
    from .panel_job import Wanted, ask_panel

    raise SystemExit(ask_panel(files, judges, choice, Wanted(rationale, out, resume, price, yes, json_file)))
