"""`aipsy-judge correct`: fit a correction to an expert's anchors, apply it, show what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from .ratings_options import TableOptions, ratings_options

NOTHING = (
    "Nothing was corrected: every row is N/A, unscored, or the plain mean of a metric with too few anchors.\n"
    "Give ratings with scores by the correction's judges on its metrics, or fit it to more anchors."
)


@click.group()
def command() -> None:
    """Fit a correction per metric, or apply one.

    Several judges' scores and an expert's ratings of some of the items (the anchors) make a correction: per metric a
    blend of simple rules, weighted by their error on anchors they did not see, and a probability that the expert
    would see a failure. The expert's own leniency comes with it; the report says which way each metric moved.
    """


@command.command()
@ratings_options
@click.option("--expert", "experts", multiple=True, metavar="RATER", help="Who is right (as --reference).")
@click.option("--metric", "metrics", multiple=True, help="Only these metrics.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Write the correction here.")
@click.option(
    "--profile",
    type=click.Choice(["ladder", "published"]),
    default="ladder",
    show_default=True,
    help="ladder: the blend; published: weights by alignment and recall, no offset.",
)
@click.option("--others/--no-others", default=True, show_default=True, help="Let the other metrics' scores help.")
@click.option("--families", is_flag=True, help="A bias per generator family.")
@click.option("--severity", is_flag=True, help="Adjust for how severe each of several experts is.")
@click.option(
    "--tail-price",
    type=click.FloatRange(1, 100),
    default=1.0,
    show_default=True,
    help="A squared error on a failure counts this many times.",
)
@click.option(
    "--miss-cost",
    type=click.FloatRange(0.1, 1000),
    default=4.0,
    show_default=True,
    help="False alarms that one missed failure is worth; p_fail flags from 1 / (1 + this).",
)
def fit(
    table: TableOptions,
    experts: tuple[str, ...],
    metrics: tuple[str, ...],
    out: Path,
    profile: Literal["ladder", "published"],
    others: bool,
    families: bool,
    severity: bool,
    tail_price: float,
    miss_cost: float,
) -> None:
    """Fit a correction to the experts' ratings in PATHS and write it to --out.

    PATHS are ratings tables or runs with judges and experts in them; --rater names the judges to correct. The file is
    bound to these judges and to the rubric, readable, and holds every figure; `correct report` shows them.
    """
    from ..atomic import check_writable
    from ..correction.files import save_correction
    from ..correction.fit import fit_correction
    from ..correction.options import FitOptions
    from .correct_report import print_correction

    check_writable(out)
    ratings = table.ratings()
    correction = fit_correction(
        ratings,
        table.yardstick(ratings),
        experts=tuple(dict.fromkeys((*experts, *table.held_right))),
        judges=table.raters,
        metrics=metrics,
        options=FitOptions(
            profile=profile,
            others=others,
            families=families,
            severity=severity,
            tail_price=tail_price,
            miss_cost=miss_cost,
            seed=table.seed,
        ),
        often=table.bootstrap(),
    )
    save_correction(out, correction)
    print_correction(correction)
    click.echo(f"written: {out}")


@command.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--correction", "file", required=True, type=click.Path(path_type=Path), help="From `correct fit`.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="CSV, or JSONL by its name.")
@click.option("--rubric", metavar="NAME", help="Make whole targets: N/A, flags and severity fused too (JSONL).")
@click.option("--empty", type=click.Choice(["na", "missing"]), help="What a row without score and status means.")
def apply(
    paths: tuple[Path, ...], file: Path, out: Path, rubric: str | None, empty: Literal["na", "missing"] | None
) -> None:
    """Apply a correction to the judges' ratings in PATHS.

    Without --rubric: a row a metric and item, raw mean and corrected value, as a table that every verb reads (rater
    "target"), with p_fail beside it. With --rubric: an item a line, with N/A, flags and severity fused. What the
    judges left N/A or unscored stands there as that. Exit code 4: nothing was corrected.
    """
    from ..atomic import check_writable, write_text
    from ..correction.files import load_correction
    from ..correction.output import metric_rows, target_rows, to_text
    from ..errors import EXIT_NOTHING_SCORED
    from ..ratings import load_ratings
    from ..rubric import load_rubric

    check_writable(out)
    correction = load_correction(file)
    ratings = load_ratings(paths, empty=empty)
    if rubric is not None:
        found = target_rows(correction, ratings, load_rubric(rubric))
        as_csv = False
    else:
        found = metric_rows(correction, ratings)
        as_csv = out.suffix != ".jsonl"
    write_text(out, to_text(found.rows, as_csv=as_csv))
    for note in found.notes:
        click.echo(f"note: {note}")
    click.echo(f"{len(found.rows):,} rows: {out}")
    if found.corrected == 0:
        click.echo(NOTHING, err=True)
        raise SystemExit(EXIT_NOTHING_SCORED)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
def report(file: Path) -> None:
    """Show what a correction is worth: each rung and rival out of fold, weights, p_fail, which way metrics moved."""
    from ..correction.files import load_correction
    from .correct_report import print_correction

    print_correction(load_correction(file))
