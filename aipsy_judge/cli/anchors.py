"""`aipsy-judge anchors`: draw items for experts, make the blind sheet, import what they filled in, settle disputes."""

from __future__ import annotations

from typing import Literal

import click

_DRAW = click.option("--draw", required=True, metavar="FILE", help="The draw that `anchors sample` wrote.")
_TEXTS = click.option(
    "--transcripts", multiple=True, required=True, metavar="FILE", help="What the judges read; again for each file."
)


@click.group()
def command() -> None:
    """Draw items for an expert, make the blind sheet, import the ratings."""


@command.command()
@click.argument("paths", nargs=-1, required=True, metavar="RUN_OR_RATINGS...")
@click.option("--n", type=click.IntRange(1), default=200, show_default=True, help="Items to draw.")
@click.option("--seed", type=int, default=14, show_default=True)
@click.option("--rubric", metavar="NAME", help="Rubric of a ratings table (runs bring theirs).")
@click.option("--share", "shares", multiple=True, metavar="STRATUM=SHARE", help="Share of the sample, 0 to 1.")
@click.option(
    "--disagreement",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.4,
    show_default=True,
    help="Range of judges' scores, as a share of the scale, that counts as disagreement.",
)
@click.option("--empty", type=click.Choice(["na", "missing"]), help="What a row without score and status means.")
@click.option("--out", required=True, metavar="FILE", help="Where the draw goes (JSON).")
def sample(
    paths: tuple[str, ...],
    n: int,
    seed: int,
    rubric: str | None,
    shares: tuple[str, ...],
    disagreement: float,
    empty: Literal["na", "missing"] | None,
    out: str,
) -> None:
    """Draw the items that experts shall rate.

    RUN_OR_RATINGS: run folders, the folder of a panel, or ratings tables. Items come from the strata crisis, failure,
    unscored, disagreement and rest, whichever is the first that a judge's ratings put them in. Each is drawn with a
    known probability, which goes with its ratings as `inclusion`. The draw is not for raters: it names judges and
    generators.
    """
    from .anchors_job import sample_items

    sample_items(paths, n, seed, rubric, shares, disagreement, empty, out)


@command.command()
@click.argument("draw", metavar="DRAW")
@_TEXTS
@click.option("--rater", default="", metavar="NAME", help="Who will fill it; each rater has an order of their own.")
@click.option("--out", required=True, metavar="FILE", help="Ends in .xlsx or .csv.")
def sheet(draw: str, transcripts: tuple[str, ...], rater: str, out: str) -> None:
    """Make the blind sheet for a rater.

    It shows the conversation up to the reply and the reply, and neither judge nor score nor generator. XLSX offers the
    legal answers in each cell and has the rubric's wording on a second sheet; beside a CSV goes a text file with it.
    """
    from .anchors_job import write_blind_sheet

    write_blind_sheet(draw, transcripts, rater, out)


@command.command("import")
@click.argument("sheets", nargs=-1, required=True, metavar="SHEET...")
@_DRAW
@click.option("--rater", required=True, metavar="NAME", help="Who filled them.")
@click.option("--kind", type=click.Choice(["expert", "adjudicated"]), default="expert", show_default=True)
@click.option("--rubric", metavar="NAME", help="Check that the draw was made with this rubric.")
@click.option("--out", required=True, metavar="FILE", help="Ratings table to add to: .csv, .jsonl or .parquet.")
def import_(
    sheets: tuple[str, ...],
    draw: str,
    rater: str,
    kind: Literal["expert", "adjudicated"],
    rubric: str | None,
    out: str,
) -> None:
    """Import filled sheets (XLSX or CSV, as a spreadsheet saves them).

    Everything is checked first; all faults are told at once, with their rows. An empty cell is missing. A rating that
    is in --out already is never changed: the same value is fine, another one is refused.
    """
    from .anchors_job import import_filled

    import_filled(sheets, draw, rater, kind, rubric, out)


@command.command()
@click.argument("ratings", nargs=-1, required=True, metavar="RATINGS...")
@_DRAW
@_TEXTS
@click.option(
    "--margin",
    type=click.FloatRange(0.0),
    default=1.0,
    show_default=True,
    help="Points that experts may lie apart without a dispute.",
)
@click.option("--rater", "raters", multiple=True, metavar="NAME", help="Only these experts; again for each.")
@click.option("--out", required=True, metavar="FILE", help="Ends in .xlsx or .csv.")
def adjudicate(
    ratings: tuple[str, ...],
    draw: str,
    transcripts: tuple[str, ...],
    margin: float,
    raters: tuple[str, ...],
    out: str,
) -> None:
    """Make a sheet of what experts disagree on, for somebody to settle.

    RATINGS: tables with the ratings of two or more experts. The sheet shows what they said, without names, and
    nothing of the judges. Import it with --kind adjudicated.
    """
    from .anchors_job import write_adjudication

    write_adjudication(ratings, draw, transcripts, margin, raters, out)
