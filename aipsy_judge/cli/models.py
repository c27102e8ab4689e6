"""`aipsy-judge models`: what judges there are, and their files: fetched, shown, checked, removed.

Only `pull` reaches out on its own, and `show` and `verify` ask an Ollama server that is named to them.
"""

from __future__ import annotations

import click

json_option = click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="As JSON.")


@click.group()
def command() -> None:
    """The known judges: list, fetch, show, check or remove their files."""


@command.command("list")
@json_option
def list_judges(json_file: str | None) -> None:
    """The known judges: installed or not, size, contract, licence."""
    from .models_list import list_judges

    list_judges(json_file)


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """What is known of one judge: its card, or its published figures.

    NAME is a judge, a folder, a GGUF file or ollama:TAG.
    """
    from .models_show import show_weights

    show_weights(name)


@command.command()
@click.argument("name")
def pull(name: str) -> None:
    """Fetch a judge from the model hub, or what a contract needs, and check it.

    NAME is a judge, or aipsy-bench-v1: the benchmark's frozen judge prompt (CC BY 4.0), fetched through pip. A judge
    that is asked by that contract brings it along. A download that was broken off goes on where it stopped.
    """
    from .models_pull import pull_named

    pull_named(name)


@command.command()
@click.argument("name")
@click.option("--load", is_flag=True, help="Also load it and evaluate a few tokens, in a process of its own.")
@json_option
def verify(name: str, load: bool, json_file: str | None) -> None:
    """Hash the files of a judge again and look at their structure. Exit code 3 where something is wrong.

    NAME is a judge, a folder, a GGUF file or ollama:TAG.
    """
    from .models_verify import verify_named

    raise SystemExit(verify_named(name, load=load, json_file=json_file))


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Delete what `pull` has fetched under NAME, and nothing else."""
    from .models_remove import remove_named

    remove_named(name, yes=yes)
