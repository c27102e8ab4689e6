"""Write a ratings table: CSV, JSONL or Parquet, as the name's ending says; `.gz` after the first two."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..atomic import write_bytes
from ..errors import InputError, MissingExtraError
from ..strict_json import dumps
from .table import Ratings


def write_ratings(ratings: Ratings, path: str | Path) -> None:
    """Write every rating as a row; columns that are empty throughout are left out. `read_ratings` reads it back.

    Raises InputError for an ending other than .csv, .jsonl, .parquet, .csv.gz, .jsonl.gz.
    """
    name = os.fspath(path).lower()
    plain = name.removesuffix(".gz")
    if plain.endswith(".csv"):
        data = _csv_text(ratings).encode()
    elif plain.endswith(".jsonl"):
        data = "".join(dumps(row) + "\n" for row in _rows(ratings)).encode()
    elif name.endswith(".parquet"):
        data = _parquet_bytes(ratings)
    else:
        raise InputError("a ratings file ends in .csv, .jsonl or .parquet", where=str(path))
    # The time stamp of the zipped file is left at 0: the same ratings give the same bytes.
    write_bytes(path, gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def _rows(ratings: Ratings) -> Iterator[dict[str, Any]]:
    known = {
        "conversation": not ratings.conversation.is_empty(),
        "turn": bool((ratings.turn > 0).any()),
        "scenario": not ratings.scenario.is_empty(),
        "generator": not ratings.generator.is_empty(),
        "generator_family": not ratings.generator_family.is_empty(),
        "inclusion": bool((ratings.inclusion > 0).any()),
        "run": not ratings.run.is_empty(),
    }
    for row in ratings.rows():
        yield {name: cell for name, cell in row.items() if known.get(name, True)}


def _csv_text(ratings: Ratings) -> str:
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in _rows(ratings):
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        # repr is the shortest text that reads back as the same number
        writer.writerow({k: repr(v).removesuffix(".0") if isinstance(v, float) else v for k, v in row.items()})
    return text.getvalue()


def _parquet_bytes(ratings: Ratings) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "stats", "Writing Parquet") from error
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(_rows(ratings))), file)
    return file.getvalue()
