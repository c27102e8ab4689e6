"""What the verbs under `anchors` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click

from ..anchors import (
    DEFAULT_SHARES,
    MEANINGS,
    Draw,
    Sheet,
    add_comments,
    add_ratings,
    draw_anchors,
    find_disputes,
    find_texts,
    import_sheets,
    judged_by,
    make_sheet,
    read_draw,
    refuse_existing,
    summary_rows,
    wording_path,
    write_csv,
    write_draw,
    write_xlsx,
)
from ..atomic import check_writable
from ..errors import InputError, RatingsError
from ..ratings import load_ratings, read_ratings
from ..report.visible import visible
from ..report.wording import plural
from ..rubric import load_rubric
from ..transcripts import iter_conversations

_KEPT = "Somebody may have filled it: name another file."


def sample_items(
    paths: Sequence[str],
    n: int,
    seed: int,
    rubric: str | None,
    shares: Sequence[str],
    disagreement: float,
    empty: Literal["na", "missing"] | None,
    out: str,
) -> None:
    """The whole of `anchors sample`. Raises AipsyJudgeError."""
    refuse_existing(out, "Sheets may have been made from it: name another file.")
    check_writable(out)
    wanted = {**DEFAULT_SHARES, **_shares(shares)}
    known = judged_by(paths, load_rubric(rubric) if rubric is not None else None)
    ratings = load_ratings(paths, empty=empty)
    for warning in ratings.warnings:
        _tell(f"warning: {warning}")
    draw = draw_anchors(
        ratings,
        known.rubric,
        n=n,
        seed=seed,
        shares=wanted,
        disagreement=disagreement,
        hashes=known.hashes,
        sources=paths,
    )
    write_draw(draw, out)
    _print_draw(draw, out)


def _shares(texts: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        name, _, share = text.partition("=")
        if name not in DEFAULT_SHARES:
            raise InputError(f"no stratum {name!r}", where="--share", hint=f"Strata: {', '.join(DEFAULT_SHARES)}.")
        try:
            found[name] = float(share)
        except ValueError as error:
            raise InputError(f"{share!r} is not a number", where=f"--share {name}") from error
    return found


def _print_draw(draw: Draw, out: str) -> None:
    conversations = len({i.conversation for i in draw.items if i.conversation is not None})
    of = f", of {plural(conversations, 'conversation')}" if conversations else ""
    click.echo(f"{plural(len(draw.items), 'item')} of {draw.population:,} drawn{of}; seed {draw.seed}")
    for stratum in draw.strata:
        chance = f"inclusion probability {stratum.drawn / stratum.items:.4f}" if stratum.items else "empty"
        click.echo(f"  {stratum.name}: {stratum.drawn} of {stratum.items:,}, {chance} ({MEANINGS[stratum.name]})")
    click.echo(visible(f"draw in {out}; it names judges and generators: raters get the sheet alone"))


def write_blind_sheet(draw_path: str, transcripts: Sequence[str], rater: str, out: str) -> None:
    """The whole of `anchors sheet`. Raises AipsyJudgeError."""
    draw = read_draw(draw_path)
    _check_target(out)
    sheet = make_sheet(draw, find_texts(draw, iter_conversations(transcripts)), rater)
    _write_sheet(sheet, out)


def import_filled(
    sheets: Sequence[str],
    draw_path: str,
    rater: str,
    kind: Literal["expert", "adjudicated"],
    rubric: str | None,
    out: str,
) -> None:
    """The whole of `anchors import`. Raises AipsyJudgeError."""
    draw = read_draw(draw_path)
    if rubric is not None and load_rubric(rubric).hash != draw.rubric.hash:
        raise InputError(f"the draw was made with another rubric than {rubric}", where=draw_path)
    if not rater.strip():
        raise InputError("the rater has no name", where="--rater")
    check_writable(out)
    found = import_sheets(draw, sheets, rater.strip(), kind)
    table, new = add_ratings(found.rows, out)
    click.echo(
        f"{plural(len(found.rows), 'rating')} by {visible(rater)} of {found.rated} of {plural(found.items, 'item')}: "
        f"{new} new, {len(found.rows) - new} there already; {visible(out)} holds {len(table):,}"
    )
    beside = add_comments(found.comments, rater.strip(), out)
    if beside is not None:
        click.echo(visible(f"{plural(len(found.comments), 'comment')} in {beside}"))
    _print_means(draw, found.rows, found.items)


def _print_means(draw: Draw, rows: Sequence[Any], items: int) -> None:
    click.echo(f"Means of what was drawn, and what they say of all {draw.population:,} items (weights 1 / inclusion):")
    for row in summary_rows(draw, rows, items):
        drawn, all_ = (f"{v:.2f}" if v is not None else "–" for v in (row.mean, row.weighted_mean))
        counts = f"{row.scored} scored, {row.not_applicable} N/A, {row.missing} missing"
        click.echo(f"  {row.field}: {drawn}, weighted {all_} ({counts})")


def write_adjudication(
    paths: Sequence[str], draw_path: str, transcripts: Sequence[str], margin: float, raters: Sequence[str], out: str
) -> None:
    """The whole of `anchors adjudicate`. Raises AipsyJudgeError."""
    draw = read_draw(draw_path)
    _check_target(out)
    found = find_disputes(draw, read_ratings(paths), raters, margin=margin)
    for field, n in found.compared.items():
        click.echo(f"  {field}: {found.disputed.get(field, 0)} of {plural(n, 'item')} in dispute")
    if not found.by_item:
        raise RatingsError(
            f"{' and '.join(found.raters)} agree within {margin:g} points: nothing to settle",
            hint="A smaller --margin shows smaller differences.",
        )
    texts = find_texts(draw, iter_conversations(transcripts))
    _write_sheet(make_sheet(draw, texts, disputes=found.by_item), out)


def _check_target(out: str) -> None:
    if Path(out).suffix.lower() not in (".xlsx", ".csv"):
        raise InputError("a sheet ends in .xlsx or .csv", where=out)
    written = [Path(out)]
    if written[0].suffix.lower() == ".csv":
        written.append(wording_path(written[0]))
    for path in written:
        refuse_existing(path, _KEPT)
        check_writable(path)


def _write_sheet(sheet: Sheet, out: str) -> None:
    path = Path(out)
    if path.suffix.lower() == ".xlsx":
        write_xlsx(sheet, path)
        beside = ""
    else:
        beside = f"; what to read first is in {write_csv(sheet, path)}"
    click.echo(visible(f"{plural(len(sheet.rows), 'item')} to rate in {out}{beside}"))


def _tell(text: str) -> None:
    click.echo(visible(text), err=True)
