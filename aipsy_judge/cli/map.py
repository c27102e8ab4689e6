"""`aipsy-judge map`: the competence map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .agree import COUNTS, pair_counts
from .figure_table import print_figures
from .ratings_options import TableOptions, ratings_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ..agreement import Estimate
    from ..competence import CompetenceMap

SHOWN = ("bias", "failure_recall", "failure_precision", "failure_auc", "icc", "spearman")
SENTENCES = 4  # of each kind of finding
SHOWN_FLAGS = ("kappa", "flag_recall", "flag_precision")


@click.command()
@ratings_options
@click.option("--own", multiple=True, metavar="JUDGE=GENERATOR", help="A judge's own generator, if names do not tell.")
@click.option("--html", "html_path", type=click.Path(path_type=Path), help="Write the map as one HTML page.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every figure here.")
def command(table: TableOptions, own: tuple[str, ...], html_path: Path | None, json_path: Path | None) -> None:
    """What each judge can be trusted with, against the experts and against each other.

    PATHS: ratings tables (CSV, JSONL, Parquet), run folders of `score --out`, aipsy-bench .eval logs. The map holds
    agreement, leniency, failures found, what averaging hides, self-preference, blindness, use of the scale and
    missing scores; the page (--html) shows them as heatmaps, each cell with n, interval and a plain sentence.
    """
    from ..atomic import check_writable, write_text
    from ..competence import competence_map
    from ..competence.page import render_map
    from ..strict_json import dumps

    for path in (html_path, json_path):
        if path is not None:
            check_writable(path)
    owned = _own(own)
    ratings = table.ratings()
    drawn = competence_map(
        ratings,
        table.yardstick(ratings),
        judges=table.raters,
        held_right=table.held_right,
        own=owned,
        by=table.by,
        bootstrap=table.bootstrap(),
    )
    if json_path is not None:
        write_text(json_path, dumps(drawn.to_dict(), indent=2) + "\n")
    if html_path is not None:
        write_text(html_path, render_map(drawn))
    show(drawn)


def _own(texts: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        judge, _, generator = text.partition("=")
        if not judge or not generator:
            raise click.UsageError(f"--own {text!r}: JUDGE=GENERATOR is wanted")
        found.setdefault(judge, []).append(generator)
    return found


def show(drawn: CompetenceMap) -> None:
    """Print the map."""
    from rich.console import Console

    from ..ratings.overall import OVERALL

    console = Console()
    counts = ", ".join(f"{n:,} {status}" for status, n in drawn.counts.items())
    held = drawn.reference or "nobody: no expert rated these items"
    console.print(f"{counts} ratings of {drawn.n_items:,} items; held against: {held}", markup=False, highlight=False)
    for note in drawn.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    console.print()
    _findings(console, drawn)
    for metric in (OVERALL, *drawn.metrics, *drawn.flags):
        _metric(console, drawn, metric)
    _judges(console, drawn)
    _laundered(console, drawn)


def _findings(console: Console, drawn: CompetenceMap) -> None:
    from ..competence.wording import finding_groups

    share = round((1 - drawn.bootstrap.level) * 100)
    told = f"({drawn.tested} figures tested; a faultless panel shows any in {share} of 100 maps)"
    console.print(f"[bold]Findings[/bold] {told}", highlight=False)
    for title, sentences in finding_groups(drawn.findings, drawn.reference):
        console.print(f"  {title}", markup=False, highlight=False)
        for sentence in sentences[:SENTENCES]:
            console.print(f"  - {sentence}", markup=False, highlight=False)
        if len(sentences) > SENTENCES:
            console.print(f"    ... and {len(sentences) - SENTENCES} more (--json, --html)", highlight=False)
    if not drawn.findings:
        console.print("  none beyond chance" if drawn.tested else "  nothing could be tested")
    console.print()


def _metric(console: Console, drawn: CompetenceMap, metric: str) -> None:
    from ..agreement.wording import NAMES

    pairs = [p for p in drawn.against if p.metric == metric]
    if not pairs:
        return
    names = [n for n in (SHOWN_FLAGS if metric in drawn.flags else SHOWN) if pairs[0].has(n)]
    cells: dict[str, list[Estimate | str]] = {p.rater: [*pair_counts(p), *(p[n] for n in names)] for p in pairs}
    print_figures(console, f"{metric}, against {drawn.reference}", [*COUNTS, *(NAMES[n] for n in names)], cells)


def _judges(console: Console, drawn: CompetenceMap) -> None:
    """What a judge is apart from the reference: blindness, self-preference, use of the scale, missing scores."""
    seen = {b.judge: b for b in drawn.blindness if b.metric is None}
    own = {s.judge: s for s in drawn.self_preference}
    silent = {(m.judge, m.by): m for m in drawn.missing}
    heads = ["others' failures seen", "... by all others", "self-preference", "... others' set aside"]
    heads += ["missing, failure", "missing, no failure"]
    by_crisis = any(by == "crisis" for _, by in silent)
    cells: dict[str, list[Estimate | str]] = {}
    for judge in drawn.judges:
        failure = silent[judge, "failure"]
        cells[judge] = [seen[judge].loose, seen[judge].strict, own[judge].premium, own[judge].cleared]
        cells[judge] += [failure.inside, failure.outside]
        if by_crisis:
            cells[judge] += [silent[judge, "crisis"].inside, silent[judge, "crisis"].outside]
    if cells:
        extra = ["missing, crisis", "missing, no crisis"] if by_crisis else []
        print_figures(console, f"The judges ({drawn.overall})", [*heads, *extra], cells)


def _laundered(console: Console, drawn: CompetenceMap) -> None:
    from ..agreement.wording import figure

    hidden = drawn.laundered
    console.print("[bold]What the mean of the judges hides[/bold]")
    for estimate in (hidden.share, hidden.share_two, hidden.missed, hidden.missed_by_all):
        text = figure(estimate) if estimate.reason is None else f"– ({estimate.reason})"
        console.print(f"  {estimate.form}: {text}, n {estimate.n:,}", markup=False, highlight=False)
    for item in hidden.items[:5]:
        metric, judge, score = item.lowest
        told = {True: ", a failure by the reference", False: ", no failure by the reference", None: ""}[item.confirmed]
        line = f"  {item.item}: seen by {', '.join(item.seen_by)}; {judge} gives {metric} {score:g}{told}"
        console.print(line, markup=False, highlight=False)
    if hidden.total > 5:
        console.print(f"  ... and {hidden.total - 5:,} more (--json, --html)", markup=False, highlight=False)
