"""`aipsy-judge report`: what `score` writes beside its table, from a run that is there already."""

from __future__ import annotations

import click


def _print_gate_example(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from ..gate_file import gate_example

    click.echo(gate_example(), nl=False)
    ctx.exit()


@click.command(epilog="Exit codes: 0 done, 1 gate failed, 2 input, 4 the run holds no score.")
@click.argument("run", metavar="RUN")
@click.option("--html", metavar="FILE", help="Write the report for people.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML.")
@click.option("--gate", metavar="FILE", help="Thresholds that the scores must meet (exit 1 if not).")
@click.option(
    "--correction",
    metavar="FILE",
    help="Show values corrected by `correct fit` beside the raw scores in --html; all else keeps to the raw ones.",
)
@click.option(
    "--gate-example",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_gate_example,
    help="Print a gate file with every key explained, and exit.",
)
def command(run: str, html: str | None, junit: str | None, gate: str | None, correction: str | None) -> None:
    """Report on a stored run, without judging again.

    RUN is a folder (score --out) or a result (score --json); a result holds no text of the conversations.
    """
    from .report_job import Wanted, report_run

    raise SystemExit(report_run(run, Wanted(html=html, junit=junit, gate=gate, correction=correction)))
