"""`models remove`: deletes what pull made, after asking."""

from __future__ import annotations

from pathlib import Path

import click

from ..bench_contract import NAME as BENCH
from ..bench_contract import pulled_files
from ..errors import InputError
from ..hub.pulled import Removal, plan_removal, remove
from ..hub.room import words
from ..known_judges import installed_at, known_judges
from ..report.visible import visible


def remove_named(name: str, *, yes: bool) -> None:
    """Say what would go, ask, delete, say what was freed. Raises InputError where pull made nothing of that name."""
    plan = _plan(name)
    for path in plan.files:
        click.echo(visible(f"{path} ({words(path.lstat().st_size)})"))
    if not yes and not click.confirm(f"Delete {'these files' if len(plan.files) > 1 else 'this file'}?"):
        click.echo("nothing deleted")
        return
    remove(plan)
    click.echo(f"freed {words(plan.size_bytes)}")
    for path in plan.kept:
        click.echo(visible(f"kept, for pull did not make it: {path}"))


def _plan(name: str) -> Removal:
    if name == BENCH:
        files = pulled_files()
        plan = Removal((files[0].parent,) if files else (), files, (), sum(p.stat().st_size for p in files))
    elif Path(name).name != name:
        raise InputError("a name is wanted, not a path: only what pull fetched is removed", where=name)
    else:
        plan = plan_removal(name)
    if not plan.files:
        raise InputError(f"pull has fetched nothing under the name {name!r}", hint=_elsewhere(name))
    return plan


def _elsewhere(name: str) -> str:
    judge = next((j for j in known_judges() if j.name == name), None)
    path = installed_at(judge) if judge is not None else None
    if judge is not None and path is not None and judge.package is not None:
        return f"It came with a package: pip uninstall {judge.package.name}"
    if path is not None:
        return f"The file {path} was put there by something else; delete it yourself if you want it gone."
    return "`aipsy-judge models list` shows what there is."
