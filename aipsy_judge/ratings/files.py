"""From a file to chunks of raw cells. The kind of file is read off its content, not off its name."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

from ..errors import MissingExtraError, RatingsError, TranscriptError
from ..transcripts.decoding import text_blocks

CHUNK_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of one file. `rows` are the numbers a person would look them up by (a spreadsheet's row, a line of
    JSONL, a Parquet row from 1); a cell is None where it is absent. `faults` are rows that could not be read."""

    rows: list[int]
    columns: dict[str, list[Any]]
    faults: tuple[tuple[int, str], ...] = ()


def read_chunks(path: Path) -> Iterator[Chunk]:
    """The rows of a CSV (comma, semicolon or tab), JSONL or Parquet file, gzipped or not. Raises RatingsError."""
    try:
        with _open(path) as file:
            head = file.read(4)
            file.seek(0)
            if head.startswith(b"PAR1"):
                yield from _parquet(path)
            elif head.startswith(b"PK\x03\x04"):
                raise RatingsError("a zip or XLSX file, not a ratings table", where=str(path), hint="Save it as CSV.")
            else:
                yield from _text(file, path)
    except (OSError, EOFError) as error:
        raise RatingsError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)) from error


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if zipped else path.open("rb")


def _text(file: IO[bytes], path: Path) -> Iterator[Chunk]:
    try:
        lines = _lines(text_blocks(file, str(path)))
        blank, start = 0, next(lines, "")
        while start and not start.strip():
            blank, start = blank + 1, next(lines, "")
        if not start:
            raise RatingsError("the file is empty", where=str(path))
        whole = chain([start], lines)
        if start.lstrip().startswith("{"):
            yield from _jsonl(enumerate(whole, start=blank + 1))
        else:
            yield from _csv(blank + 1, whole, start, path)
    except TranscriptError as error:  # not text
        raise RatingsError(error.message, where=error.where, hint=error.hint) from None


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    """Lines with their ends. Only a newline ends one: other separators may stand in a cell."""
    rest = ""
    for block in blocks:
        whole, newline, last = block.rpartition("\n")
        if newline:
            yield from io.StringIO(rest + whole + newline, newline="\n")
        rest = last if newline else rest + last
    if rest:
        yield rest


def _csv(first: int, lines: Iterable[str], start: str, path: Path) -> Iterator[Chunk]:
    reader = csv.reader(lines, delimiter=max(",;\t", key=start.count), strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise RatingsError(f"column written twice: {', '.join(twice)}", where=str(path))
        number = first + 1
        while batch := list(islice(reader, CHUNK_ROWS)):
            yield _csv_chunk(header, batch, number)
            number += len(batch)
    except csv.Error as error:
        raise RatingsError(f"not valid CSV at line {reader.line_num}: {error}", where=str(path)) from error


def _csv_chunk(header: list[str], batch: list[list[str]], first: int) -> Chunk:
    rows, faults = list(range(first, first + len(batch))), []
    if set(map(len, batch)) != {len(header)}:
        numbered = [(n, row) for n, row in zip(rows, batch, strict=True) if row]  # an empty line is no row
        faults = [
            (n, f"{len(row)} cells where the header has {len(header)}")
            for n, row in numbered
            if len(row) != len(header)
        ]
        numbered = [(n, row) for n, row in numbered if len(row) == len(header)]
        rows, batch = [n for n, _ in numbered], [row for _, row in numbered]
    cells = zip(*batch, strict=True) if batch else ([] for _ in header)
    return Chunk(rows, dict(zip(header, map(list, cells), strict=True)), tuple(faults))


def _jsonl(numbered: Iterator[tuple[int, str]]) -> Iterator[Chunk]:
    while batch := list(islice(numbered, CHUNK_ROWS)):
        rows: list[tuple[int, dict[str, Any]]] = []
        faults: list[tuple[int, str]] = []
        for number, line in batch:
            if not line.strip():
                continue
            try:
                rows.append((number, _json_row(line)))
            except (ValueError, RecursionError) as error:
                faults.append((number, str(error)))
        yield rows_chunk(rows, tuple(faults))


def _json_row(line: str) -> dict[str, Any]:
    row = json.loads(line, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return row


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key is written twice")
    return row


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def rows_chunk(rows: list[tuple[int, dict[str, Any]]], faults: tuple[tuple[int, str], ...] = ()) -> Chunk:
    """Numbered rows of named cells as one chunk; what a row does not name is None."""
    names = dict.fromkeys(name for _, row in rows for name in row)
    columns = {name: [row.get(name) for _, row in rows] for name in names}
    return Chunk([n for n, _ in rows], columns, faults)


def _parquet(path: Path) -> Iterator[Chunk]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "stats", "Reading Parquet") from error
    number = 1
    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=CHUNK_ROWS):
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
            yield Chunk(list(range(number, number + batch.num_rows)), columns)
            number += batch.num_rows
    except pyarrow.ArrowException as error:
        raise RatingsError(f"not a readable Parquet file: {error}", where=str(path)) from error
