"""`aipsy-judge score`: the main verb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .judge_options import JudgeChoice, judge_options

if TYPE_CHECKING:
    from ..judge import Rationale


@click.command(
    epilog="Exit codes: 0 done, 1 gate failed, 2 input, 3 judge, 4 nothing could be scored, 130 interrupted."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@judge_options
@click.option(
    "--rationale",
    type=click.Choice(["always", "flagged", "never"]),
    default="flagged",
    show_default=True,
    help="When the judge also says why.",
)
@click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="Result as JSON; -: stdout.")
@click.option("--out", metavar="DIR", help="Keep the run in a folder, a verdict at a time.")
@click.option("--resume", is_flag=True, help="Go on with the run in --out: judge only what is missing.")
@click.option("--redact", is_flag=True, help="Keep no text anywhere: figures and hashes only.")
@click.option("--html", metavar="FILE", help="Write a report for people.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML.")
@click.option("--gate", metavar="FILE", help="Thresholds that the scores must meet (exit 1 if not); wants --judge.")
@click.option(
    "--correction",
    metavar="FILE",
    help="Show values corrected by `correct fit` too; --out, --gate and --junit keep to the raw scores.",
)
def command(
    files: tuple[str, ...],
    choice: JudgeChoice,
    rationale: Rationale,
    json_file: str | None,
    out: str | None,
    resume: bool,
    redact: bool,
    html: str | None,
    junit: str | None,
    gate: str | None,
    correction: str | None,
) -> None:
    """Judge every assistant turn of conversations.

    FILE is a transcript, a folder of them, or - for standard input. The format is told by content: this project's
    own JSON and JSONL, OpenAI messages, ShareGPT, exports of ChatGPT and Claude, Inspect logs, CSV, labelled text.

    Without --judge the best installed judge that fits is taken and named in the first line.

    --correction is one fitted to this judge alone: aipsy-judge correct fit RATINGS --rater JUDGE --expert RATER
    --rubric NAME --out FILE. Raw and corrected values stand side by side in the table, --json and --html; composite,
    findings and gate rest on the raw ones.
    """
    from .score_job import Outputs, score_files

    outputs = Outputs(
        json=json_file, out=out, resume=resume, redact=redact, html=html, junit=junit, gate=gate, correction=correction
    )
    raise SystemExit(score_files(files, choice, rationale, outputs))
