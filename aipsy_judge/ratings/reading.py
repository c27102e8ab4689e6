"""Read a ratings table, check all of it, and only then hand it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RatingsError
from .checks import (
    Empty,
    Scale,
    check_kinds,
    check_required,
    check_scales,
    check_status,
    check_unique,
    item_inclusion,
    item_turns,
    item_words,
)
from .draft import Draft
from .files import read_chunks, rows_chunk
from .table import SCORED, Kind, Labels, Ratings


def read_ratings(
    paths: str | Path | Iterable[str | Path],
    *,
    empty: Empty | None = None,
    kinds: Mapping[str, Kind] | None = None,
    declared_scales: Mapping[str, Scale] | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Ratings:
    """One table from CSV, JSONL or Parquet files (gzipped or not).

    Columns: item_id, rater, metric, score, scale_min, scale_max; optional: rater_kind, status, conversation, turn,
    scenario, generator, generator_family, inclusion, run. Others are left unread, and `Ratings.warnings` names them.

    empty            what a row with neither score nor status means; None: such a row is a fault
    kinds            kind of a rater, before what the rows say; a rater with no kind at all gets the one its name
                     begins with (expert, adjudicated, crowd), else judge, with a warning
    declared_scales  scale of a metric ("*": of all) where the rows state none
    scales           scale to convert a metric ("*": all) to, linearly; without it unlike scales are a fault

    Raises RatingsError with all faults at once: row (as a spreadsheet counts, header = 1; line of JSONL; Parquet row
    from 1) and what is wrong with it.
    """
    draft = Draft()
    for path in [paths] if isinstance(paths, str | Path) else paths:
        draft.add_file(str(path), read_chunks(Path(path)))
    return _checked(draft, empty, kinds or {}, declared_scales or {}, scales or {})


def ratings_from_rows(
    rows: Iterable[Mapping[str, Any]],
    *,
    where: str = "ratings",
    empty: Empty | None = None,
    kinds: Mapping[str, Kind] | None = None,
    declared_scales: Mapping[str, Scale] | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Ratings:
    """The same from rows in memory, numbered from 1; `where` names them in errors."""
    draft = Draft()
    draft.add_file(where, [rows_chunk([(n, dict(row)) for n, row in enumerate(rows, start=1)])])
    return _checked(draft, empty, kinds or {}, declared_scales or {}, scales or {})


def _checked(
    draft: Draft,
    empty: Empty | None,
    kinds: Mapping[str, Kind],
    declared: Mapping[str, Scale],
    wanted: Mapping[str, Scale],
) -> Ratings:
    check_required(draft)
    status = check_status(draft, empty)
    score, scales = check_scales(draft, status == SCORED, declared, wanted)
    kind, warnings = check_kinds(draft, kinds)
    check_unique(draft)
    known = {c: item_words(draft, c) for c in ("conversation", "scenario", "generator", "generator_family")}
    turn, inclusion = item_turns(draft), item_inclusion(draft)
    draft.faults.raise_any()
    if len(status) == 0:
        raise RatingsError("no ratings in it", where=", ".join(draft.faults.sources) or None)
    if draft.unused:
        warnings.append(f"columns not used: {', '.join(draft.unused)}")
    return Ratings(
        item=Labels(*draft.words("item_id")),
        rater=Labels(*draft.words("rater")),
        metric=Labels(*draft.words("metric")),
        score=np.where(status == SCORED, score, np.nan),
        status=status,
        kinds=kind,
        scales=scales,
        turn=turn,
        inclusion=inclusion,
        run=Labels(*draft.words("run")),
        warnings=tuple(warnings),
        **{name: Labels(*column) for name, column in known.items()},
    )
