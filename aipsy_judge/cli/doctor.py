"""`aipsy-judge doctor`: what this machine can judge with."""

from __future__ import annotations

import click

from .judge_options import JudgeChoice, judge_options


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--prove", metavar="JUDGE", help="Replay the golden turns in a judge's manifest on this machine.")
@click.option("--probe/--no-probe", default=None, help="Time a short probe (default: for judges under 2 GB).")
@judge_options
@click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="The findings as JSON.")
def command(
    files: tuple[str, ...], prove: str | None, probe: bool | None, choice: JudgeChoice, json_file: str | None
) -> None:
    """Memory, processors, GPU and the build of llama.cpp; which known judges fit.

    With FILE: how many turns and tokens it holds, and how long the judge will take and how much memory (an estimate).
    With --judge openai:MODEL@URL or ollama:MODEL: whether that server keeps to a schema, and how long a prompt may be.
    With --prove: whether this machine reads the same probabilities as the one the judge was made on; exit 3 if not.
    """
    from .doctor_job import examine, prove_judge
    from .json_output import check_json_target

    check_json_target(json_file)
    if prove is not None:
        raise SystemExit(prove_judge(prove, choice, json_file))
    examine(files, choice, probe, json_file)
