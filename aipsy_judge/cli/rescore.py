"""`aipsy-judge rescore`: stored raw replies read again, no model."""

from __future__ import annotations

import click


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--out", required=True, metavar="DIR", help="The new run.")
@click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="What changed, as JSON.")
def command(run: str, out: str, json_file: str | None) -> None:
    """Read the raw replies of RUN (a folder made by `score --out`) again into a new run.

    For when a reader was improved: no model is asked, and nothing of RUN is changed. Probabilities stay with the
    scores whose value stays.
    """
    from pathlib import Path

    from .json_output import check_json_target, write_json
    from .rescore_job import rescore

    check_json_target(json_file)
    found = rescore(Path(run), Path(out))
    to_stderr = json_file == "-"
    click.echo(
        f"{found.verdicts} verdicts: {found.reread} read again, {found.without_reply} without a reply", err=to_stderr
    )
    for change in found.changes:
        click.echo(f"  {change.words}", err=to_stderr)
    click.echo(f"{len(found.changes)} scores or flags changed; run kept in {out}", err=to_stderr)
    write_json(json_file, found.to_dict())
