"""Ratings from whatever holds them: tables, runs of this project, Inspect logs, several together."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from ..errors import RatingsError
from .checks import Empty, Scale
from .from_inspect import from_inspect_eval
from .from_runs import from_runs
from .reading import ratings_from_rows, read_ratings
from .table import Kind, Ratings


def load_ratings(
    paths: Sequence[str | Path],
    *,
    empty: Empty | None = None,
    kinds: Mapping[str, Kind] | None = None,
    declared_scales: Mapping[str, Scale] | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Ratings:
    """One table from files and folders; each is told by its content. See `read_ratings` for the options.

    A folder is a run (`score --out`), or a panel (`panel --out`), which stands for its table. Raises RatingsError
    where nothing is given, or two sources rate the same item by the same rater.
    """
    if not paths:
        raise RatingsError("no ratings given")
    paths = [_table_of_panel(Path(p)) or p for p in paths]
    runs = [p for p in paths if _is_run(Path(p))]
    logs = [p for p in paths if p not in runs and _is_zip(Path(p))]
    tables = [p for p in paths if p not in runs and p not in logs]
    found = []
    if tables:
        found.append(read_ratings(tables, empty=empty, kinds=kinds, declared_scales=declared_scales, scales=scales))
    if runs:
        found.append(from_runs(runs))
    if logs:
        found.append(from_inspect_eval(logs))
    return found[0] if len(found) == 1 else merge_ratings(found, kinds=kinds, scales=scales)


def merge_ratings(
    tables: Sequence[Ratings],
    *,
    kinds: Mapping[str, Kind] | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Ratings:
    """Several tables as one, checked as one."""
    merged = ratings_from_rows(
        chain.from_iterable(t.rows() for t in tables), where="the tables together", kinds=kinds, scales=scales
    )
    return merged.with_warnings(w for t in tables for w in t.warnings)


def _table_of_panel(path: Path) -> Path | None:
    table = path / "ratings.csv"
    return table if (path / "panel.json").is_file() and table.is_file() else None


def _is_run(path: Path) -> bool:
    if path.is_dir():
        return True
    if path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".eval" or (path.suffix.lower() != ".xlsx" and zipfile.is_zipfile(path))
