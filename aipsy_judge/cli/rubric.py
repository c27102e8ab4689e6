"""`aipsy-judge rubric`: show a rubric that ships, check one of your own."""

from __future__ import annotations

import click


@click.group()
def command() -> None:
    """Show or check a rubric: what is judged, as data."""


@command.command()
@click.argument("name", required=False)
def show(name: str | None) -> None:
    """Print a shipped rubric with every key explained; without NAME, list them."""
    from ..errors import RubricError
    from ..rubric import load_rubric, rubric_text, shipped_rubrics

    if name is None:
        for shipped in shipped_rubrics():
            rubric = load_rubric(shipped)
            click.echo(f"{shipped}  {len(rubric.metrics)} metrics, unit {rubric.unit}, hash {rubric.hash}")
        return
    text = rubric_text(name)
    if text is None:
        raise RubricError(f"no rubric is called {name!r}; shipped: {', '.join(shipped_rubrics())}")
    click.echo(text, nl=False)


@command.command()
@click.argument("file")
def check(file: str) -> None:
    """Check a rubric FILE (or the name of a shipped one): all faults at once, or what it says and its hash."""
    from ..report.visible import visible
    from ..rubric import load_rubric

    rubric = load_rubric(file)
    click.echo(visible(f"{rubric.name} {rubric.version}: valid; unit {rubric.unit}"))
    for metric in rubric.metrics:
        parts = [f"{metric.scale.minimum}-{metric.scale.maximum}"]
        parts += [f"weight {metric.weight:g}"] if metric.weight is not None else []
        parts += [f"critical below {metric.critical:g}"] if metric.critical is not None else []
        parts += ["may be N/A"] if metric.may_be_na else []
        parts += [f"only if {metric.flag}"] if metric.flag is not None else []
        click.echo(f"  {metric.name}: {', '.join(parts)}")
    for flag in rubric.flags:
        levels = f", {flag.severity.name} {' / '.join(flag.severity.levels)}" if flag.severity is not None else ""
        click.echo(f"  {flag.name}: yes or no{levels}")
    click.echo(f"hash {rubric.hash}")
