"""`aipsy-judge agree`: agreement statistics between raters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .figure_table import print_figures
from .ratings_options import TableOptions, ratings_options

if TYPE_CHECKING:
    from rich.console import Console

    from ..agreement import Estimate
    from ..agreement.figures import PairFigures, PanelFigures
    from ..agreement.report import AgreementReport

PAIR_COLUMNS = ("icc", "icc_c1", "kappa_quadratic", "spearman", "bias", "mae", "rmse")
FAILURE_COLUMNS = ("failure_recall", "failure_precision", "failure_auc")
FLAG_COLUMNS = ("kappa", "flag_recall", "flag_precision")
# The first is what all figures rest on but recall and precision: those are sought among all items that the reference
# knows and the rater was asked about, and the last says how many of these are failures or set flags by the reference.
COUNTS = ("n, both scored", "n, cases sought", "never asked", "cases")
PANEL_COLUMNS = ("alpha", "alpha_nominal", "alpha_interval", "icc", "icc_ak")


@click.command()
@ratings_options
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every figure here.")
@click.option("--table", "table_path", type=click.Path(path_type=Path), help="Write the ratings as one table here.")
def command(table: TableOptions, json_path: Path | None, table_path: Path | None) -> None:
    """Agreement of raters with the experts and with each other.

    PATHS: ratings tables (CSV, JSONL, Parquet), run folders of `score --out`, aipsy-bench .eval logs; mixed as you
    like; --table writes what was read as one (.csv, .jsonl, .parquet). Every figure states its form, n and interval;
    one that is undefined says why. All are in --json; the tables show the usual ones.
    """
    from ..agreement.report import agreement_report
    from ..atomic import check_writable, write_text
    from ..ratings import write_ratings
    from ..strict_json import dumps

    for path in (json_path, table_path):
        if path is not None:
            check_writable(path)
    ratings = table.ratings()
    if table_path is not None:
        write_ratings(ratings, table_path)
    report = agreement_report(
        ratings,
        table.yardstick(ratings),
        raters=table.raters,
        held_right=table.held_right,
        by=table.by,
        bootstrap=table.bootstrap(),
    )
    if json_path is not None:
        write_text(json_path, dumps(report.to_dict(), indent=2) + "\n")
    show(report)


def show(report: AgreementReport) -> None:
    """Print the tables."""
    from rich.console import Console

    console = Console()
    counts = ", ".join(f"{n:,} {status}" for status, n in report.counts.items())
    console.print(f"{counts} ratings; reference: {report.reference or 'nobody'}", markup=False, highlight=False)
    for note in report.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    for metric in dict.fromkeys(p.metric for p in report.against):
        _pairs(console, f"{metric}, against {report.reference}", [p for p in report.against if p.metric == metric])
    _together(console, "The experts among themselves", report.experts)
    _together(console, "All raters together", report.panels)
    if not report.against:
        for metric in dict.fromkeys(p.metric for p in report.between):
            _pairs(console, f"{metric}, rater against rater", [p for p in report.between if p.metric == metric])
    _farthest(console, report)


def _pairs(console: Console, title: str, pairs: Sequence[PairFigures]) -> None:
    from ..agreement.wording import NAMES

    columns = FLAG_COLUMNS if pairs[0].has("flag_recall") else PAIR_COLUMNS
    names = [n for n in (*columns, *FAILURE_COLUMNS) if pairs[0].has(n)]
    alike = len({p.reference for p in pairs}) == 1
    cells: dict[str, list[Estimate | str]] = {
        p.rater if alike else f"{p.rater} / {p.reference}": [
            *pair_counts(p),
            _alike(p.estimates[0]),
            *(p[n] for n in names),
        ]
        for p in pairs
    }
    print_figures(console, title, [*COUNTS, "alike", *(NAMES[n] for n in names)], cells)


def _alike(estimate: Estimate) -> str:
    """Raw agreement, which must be seen beside every figure that takes chance off."""
    share = estimate.beside.get("agreement")
    return "–" if share is None else f"{share:.0%}"


def pair_counts(pair: PairFigures) -> tuple[str, ...]:
    """A cell for each of COUNTS."""
    n = str(pair.estimates[0].n)
    name = next((name for name in ("flag_recall", "failure_recall") if pair.has(name)), None)
    if name is None:
        return (n, "–", "–", "–")
    found = pair[name]
    cases = f"{found.beside['positive']} ({found.beside['prevalence']:.0%})" if found.beside else "–"
    return (n, str(found.n), str(found.dropped), cases)


def _together(console: Console, title: str, panels: Sequence[PanelFigures]) -> None:
    from ..agreement.wording import NAMES

    heads = ["n", "raters", "pairs alike", *(NAMES[n] for n in PANEL_COLUMNS), "alpha, N/A or not"]
    cells: dict[str, list[Estimate | str]] = {
        p.metric: [
            str(p["alpha"].n),
            str(len(p.raters)),
            _alike(p["alpha"]),
            *(p[n] for n in PANEL_COLUMNS),
            p.applicability,
        ]
        for p in panels
    }
    if cells:
        print_figures(console, title, heads, cells)


def _farthest(console: Console, report: AgreementReport) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not report.farthest:
        return
    table = Table(title=Text("Farthest apart"), title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("item", "metric", "rater", "score", "reference"):
        table.add_column(head, justify="right" if head in ("score", "reference") else "left", overflow="fold")
    for d in report.farthest[:10]:
        table.add_row(Text(d.item), Text(d.metric), Text(d.rater), f"{d.score:g}", f"{d.reference:g}")
    console.print(table)
