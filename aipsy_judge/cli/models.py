"""`aipsy-judge models`: the known judges, and what a contract needs."""

from __future__ import annotations

import click


@click.group()
def command() -> None:
    """List the known judges; pull what a contract needs."""


@command.command("list")
@click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="The list as JSON.")
def list_judges(json_file: str | None) -> None:
    """The known judges: installed or not, size, contract, licence."""
    from ..known_judges import installed_at, known_judges
    from .json_output import check_json_target, write_json

    check_json_target(json_file)
    rows = [(j, installed_at(j)) for j in known_judges()]
    for judge, path in rows:
        size = f"{judge.file.bytes / 1e9:.1f} GB" if judge.file.bytes >= 1e9 else f"{judge.file.bytes / 1e6:.0f} MB"
        trained = "trained as a judge" if judge.trained else "not trained as a judge"
        state = "installed" if path is not None else "not installed"
        click.echo(
            f"{judge.name}: {state}, {size}, {trained}, contract {judge.contract}, {judge.licence}",
            err=json_file == "-",
        )
        if path is None:
            click.echo(f"  to get it: {judge.how_to_get}", err=json_file == "-")
    data = [{**j.model_dump(mode="json"), "installed_at": str(p) if p is not None else None} for j, p in rows]
    write_json(json_file, {"judges": data})


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """What is known of one judge, its published figures included."""
    from ..known_judges import installed_at, known_judge

    judge = known_judge(name)
    path = installed_at(judge)
    click.echo(judge.name)
    click.echo(f"  {judge.about}")
    click.echo(f"  installed at {path}" if path is not None else f"  not installed; {judge.how_to_get}")
    click.echo(f"  contract {judge.contract}, context {judge.context_tokens} tokens, licence {judge.licence}")
    click.echo(f"  file {judge.file.name}, {judge.file.bytes / 1e9:.2f} GB, sha256 {judge.file.sha256}")
    click.echo(f"  needs {judge.needs.resident:g} GiB of memory while it judges")
    for figure in judge.figures:
        click.echo(f"  published: {figure}")
    click.echo(f"  source: {judge.source}")


@command.command()
@click.argument("name", metavar="CONTRACT")
def pull(name: str) -> None:
    """Fetch what a contract needs (aipsy-bench-v1: the benchmark's frozen judge prompt, CC BY 4.0), and check it.

    The only verb that reaches out on its own: through pip, to the package index that pip is set up for.
    """
    from ..contracts import CONTRACTS, pull_bench_prompt
    from ..errors import InputError

    if name != "aipsy-bench-v1":
        known = f"The contract {name} needs nothing pulled." if name in CONTRACTS else "Only aipsy-bench-v1 is pulled."
        raise InputError(f"nothing to pull under the name {name!r}", hint=known)
    click.echo(f"checked and kept at {pull_bench_prompt()}")
