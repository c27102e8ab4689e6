"""From a file to chunks of raw cells. The kind of file is read off its content, not off its name."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from ..errors import MissingExtraError, RatingsError

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
            head = file.read(4096)
            file.seek(0)
            if head.startswith(b"PAR1"):
                yield from _parquet(path)
            elif head.startswith(b"PK\x03\x04"):
                raise RatingsError("a zip or XLSX file, not a ratings table", where=str(path), hint="Save it as CSV.")
            else:
                yield from _text(file, head, path)
    except (OSError, EOFError) as error:
        raise RatingsError(f"cannot be read: {error}", where=str(path)) from error


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if zipped else path.open("rb")


def _text(file: IO[bytes], head: bytes, path: Path) -> Iterator[Chunk]:
    encoding = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    start = head.decode(encoding, errors="ignore").lstrip()
    if not start:
        raise RatingsError("the file is empty", where=str(path))
    try:
        with io.TextIOWrapper(file, encoding=encoding, newline="") as lines:
            yield from _jsonl(lines) if start.startswith("{") else _csv(lines, start, path)
    except UnicodeDecodeError as error:
        raise RatingsError(
            f"not {encoding.removesuffix('-sig').upper()} at byte {_bad_byte(path, encoding)}",
            where=str(path),
            hint="Save the file as UTF-8.",
        ) from error


def _bad_byte(path: Path, encoding: str) -> int:
    """Where in the (unzipped) file decoding fails: the wrapped reader only knows the place within its buffer."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    with _open(path) as file:
        while block := file.read(1 << 16):
            held = len(decoder.getstate()[0])
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                return done - held + error.start
            done += len(block)
    return done


def _csv(lines: Iterable[str], start: str, path: Path) -> Iterator[Chunk]:
    header_line = start.splitlines()[0]
    delimiter = max(",;\t", key=header_line.count)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise RatingsError(f"column written twice: {', '.join(twice)}", where=str(path))
        number = 1
        while batch := list(islice(reader, CHUNK_ROWS)):
            yield _csv_chunk(header, batch, number + 1)
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


def _jsonl(lines: Iterable[str]) -> Iterator[Chunk]:
    numbered = enumerate(lines, start=1)
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
