"""Adding an expert's ratings to a table without ever changing one that is there."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..atomic import write_bytes
from ..errors import InputError, RatingsError
from ..ratings import Ratings, merge_ratings, ratings_from_rows, read_ratings, write_ratings
from .sheet_csv import guarded

_SHOWN = 50


def add_ratings(rows: Sequence[Mapping[str, Any]], path: str | Path) -> tuple[Ratings, int]:
    """The table at `path` (made if need be) with `rows` added, written in one step; and how many were new.

    A rating that is there with the same value is left alone. Raises RatingsError where one is there with another, all
    of them listed, and where the file is no table or has columns that would be lost; the file is untouched then.
    """
    path = Path(path)
    if not rows:
        raise RatingsError("the sheets hold no rating", hint="Fill some cells; empty ones are not ratings.")
    if not path.exists():
        table = ratings_from_rows(rows, where="the sheets")
        write_ratings(table, path)
        return table, len(rows)
    there = read_ratings(path)
    lost = [w for w in there.warnings if w.startswith("columns not used")]
    if lost:
        raise RatingsError(f"{lost[0]}: they would be lost", where=str(path), hint="Import into a file of its own.")
    known = {_key(row): row for row in there.rows()}
    _refuse_other_values(rows, known, str(path))
    new = [row for row in rows if _key(row) not in known]
    if not new:
        return there, 0
    table = merge_ratings([there, ratings_from_rows(new, where="the sheets")])
    write_ratings(table, path)
    return table, len(new)


def _refuse_other_values(
    rows: Sequence[Mapping[str, Any]], known: Mapping[tuple[str, str, str], Mapping[str, Any]], where: str
) -> None:
    unlike = [
        f"  {row['item_id']}, {row['metric']}: {_value(there)} is there, the sheet says {_value(row)}"
        for row in rows
        if (there := known.get(_key(row))) is not None and _value(there) != _value(row)
    ]
    if not unlike:
        return
    more = [f"  ... and {len(unlike) - _SHOWN} more"] if len(unlike) > _SHOWN else []
    raise RatingsError(
        f"{len(unlike)} ratings by {rows[0]['rater']} are there with another value:\n"
        + "\n".join(unlike[:_SHOWN] + more),
        where=where,
        hint="Nothing was changed. Import under another rater's name or into another file, or mend the sheet.",
    )


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["item_id"], row["rater"], row["metric"]


def _value(row: Mapping[str, Any]) -> str:
    return f"{row['score']:g}" if row["status"] == "scored" else {"na": "N/A", "unscored": "unscored"}[row["status"]]


def comments_path(path: Path) -> Path:
    """Where the comments go that belong to a table of ratings.

    >>> comments_path(Path("a/expert.csv")).as_posix()
    'a/expert.comments.csv'
    """
    return path.with_name(f"{path.name.split('.')[0]}.comments.csv")


def add_comments(comments: Sequence[tuple[str, str]], rater: str, path: str | Path) -> Path | None:
    """Add comments to the file beside a table; those that are there stay. The file, or None where there is none."""
    if not comments:
        return None
    target = comments_path(Path(path))
    known = _read_comments(target)
    rows = list(dict.fromkeys([*known, *((item, rater, guarded(text)) for item, text in comments)]))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([("item_id", "rater", "comment"), *rows])
    write_bytes(target, text.getvalue().encode("utf-8-sig"))
    return target


def _read_comments(path: Path) -> list[tuple[str, str, str]]:
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = list(csv.reader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    if header != ["item_id", "rater", "comment"] or any(len(row) != 3 for row in rows):
        raise InputError("not a file of comments", where=str(path), hint="Move it away; it is not overwritten.")
    return [(row[0], row[1], row[2]) for row in rows]
