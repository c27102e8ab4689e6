"""`models pull`: a judge from the hub, or what a contract needs."""

from __future__ import annotations

import click

from ..bench_contract import NAME as BENCH
from ..contracts import CONTRACTS, load_contract, pull_bench_prompt
from ..errors import ContractError, InputError
from ..hub.pulling import Pulled, pull_judge
from ..hub.room import words
from ..known_judges import known_judges
from .byte_progress import byte_progress


def pull_named(name: str) -> None:
    """Fetch what `name` means; what is here and whole already is not fetched again."""
    if name == BENCH:
        click.echo(f"checked and kept at {pull_bench_prompt()}")
        return
    judge = next((j for j in known_judges() if j.name == name), None)
    if judge is None:
        names = ", ".join([*(j.name for j in known_judges() if j.hub is not None), BENCH])
        known = f"The contract {name} needs nothing pulled." if name in CONTRACTS else f"Can be pulled: {names}."
        raise InputError(f"nothing to pull under the name {name!r}", hint=known)
    with byte_progress() as tell:
        pulled = pull_judge(judge, tell)
    _say(pulled)
    _contract(judge.contract)
    click.echo(f"next: aipsy-judge score FILE --judge {name}")


def _say(pulled: Pulled) -> None:
    size = words(pulled.model.stat().st_size)
    if not pulled.fetched:
        click.echo(f"already here: {pulled.model} ({size}), its sha256 is the published one")
        return
    click.echo(f"fetched and checked: {pulled.model} ({size}), revision {pulled.revision}")
    for remark in pulled.remarks:
        click.echo(f"  {remark}")


def _contract(name: str) -> None:
    """A judge without the prompt that it was trained on cannot be asked."""
    try:
        load_contract(name)
    except ContractError:
        click.echo(f"fetching what the contract {name} needs")
        click.echo(f"checked and kept at {pull_bench_prompt()}")
