"""Corrected values as rows of a table, and whole targets as lines of JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ratings import Ratings
from ..rubric import Rubric
from ..strict_json import dumps
from .answers import answers_of_ratings
from .apply import Corrected, apply_to_ratings
from .record import Correction, MetricRecord
from .target import NO_SCORE, NOT_APPLICABLE, make_targets

RATER = "target"


@dataclass(frozen=True, slots=True)
class Output:
    """Rows, what a reader of them must know, and how many corrected values stand in them: an N/A or unscored one is
    none, nor is the plain mean of a metric that had too few anchors."""

    rows: list[dict[str, Any]]
    notes: list[str]
    corrected: int


def metric_rows(correction: Correction, ratings: Ratings) -> Output:
    """A row for every metric of the correction and item that came in, N/A and unscored ones too.

    The columns are those of a ratings table and raw, p_fail, fails, filled, reason (why what is undefined is so).
    """
    rows: list[dict[str, Any]] = []
    notes = [*_absent(correction, ratings), *_strange(correction, ratings)]
    applied = apply_to_ratings(correction, ratings)
    for metric, record in correction.metrics.items():
        if metric not in ratings.metrics:
            continue
        cells: dict[int, dict[str, Any]] = {}
        if metric in applied:
            index, found = applied[metric]
            notes += [*_warned(record), *_filled(found)]
            cells = {i: _values(record, found, n) for n, i in enumerate(index.tolist())}
        came = ratings.matrix(metric).index.tolist()
        not_applicable = _not_applicable(ratings, record)
        rows += [_row(record, ratings, i, cells.get(i) or _nothing(na=i in not_applicable)) for i in came]
    return Output(rows, notes, sum(_is_corrected(correction, r["metric"], r["status"]) for r in rows))


def target_rows(correction: Correction, ratings: Ratings, rubric: Rubric) -> Output:
    """A row for every item that came in, see `Targets.rows`."""
    targets = make_targets(correction, answers_of_ratings(ratings, correction.judges, rubric), rubric)
    notes = _absent(correction, ratings)
    for name in targets.metrics:
        notes += _warned(correction.metrics[name])
    missing = [m for m in rubric.metric_names if m not in targets.metrics]
    if missing:
        notes.append(f"the correction has no {', '.join(missing)}: the targets lack them")
    statuses = [(name, status) for name, target in targets.metrics.items() for status in target.status]
    return Output(list(targets.rows()), notes, sum(_is_corrected(correction, *cell) for cell in statuses))


def to_text(rows: Sequence[dict[str, Any]], *, as_csv: bool) -> str:
    """CSV with a header, or strict JSON a line."""
    if not as_csv:
        return "".join(dumps(row) + "\n" for row in rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]) if rows else ["item_id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(record: MetricRecord, ratings: Ratings, i: int, cells: dict[str, Any]) -> dict[str, Any]:
    about = {
        "item_id": ratings.items[i],
        "rater": RATER,
        "rater_kind": "judge",
        "metric": record.metric,
        "score": None,
        "status": None,
        "scale_min": record.scale[0],
        "scale_max": record.scale[1],
        "conversation": ratings.conversation[i],
    }
    return about | cells


def _values(record: MetricRecord, found: Corrected, n: int) -> dict[str, Any]:
    return {
        "score": round(float(found.value[n]), 6),
        "status": "scored",
        "raw": round(float(found.raw[n]), 6),
        "p_fail": None if found.p_fail is None else round(float(found.p_fail[n]), 6),
        "fails": None if found.fails is None else bool(found.fails[n]),
        "filled": bool(found.filled[n]),
        "reason": record.no_p_fail,
    }


def _nothing(*, na: bool) -> dict[str, Any]:
    status, reason = ("na", NOT_APPLICABLE) if na else ("unscored", NO_SCORE)
    empty = dict.fromkeys(("score", "raw", "p_fail", "fails"))
    return {**empty, "status": status, "filled": False, "reason": reason}


def _not_applicable(ratings: Ratings, record: MetricRecord) -> set[int]:
    """Places of the items of which a judge said that the metric does not apply. One who is unscored has no say."""
    here = [j for j in record.judges if j in ratings.raters]
    if not here:
        return set()
    matrix = ratings.matrix(record.metric, here)
    return set(matrix.index[matrix.na.any(axis=1)].tolist())


def _is_corrected(correction: Correction, metric: str, status: str) -> bool:
    return status == "scored" and correction.metrics[metric].status == "fitted"


def _filled(found: Corrected) -> list[str]:
    count = int(found.filled.sum())
    told = f"{found.metric}: on {count} of {len(found.filled)} items a judge's score was missing and filled in"
    return [told] if count else []


def _strange(correction: Correction, ratings: Ratings) -> list[str]:
    strange = [m for m in ratings.metrics if m not in correction.metrics]
    return [f"the correction has no {', '.join(strange)}: the rows lack them"] if strange else []


def _warned(record: MetricRecord) -> list[str]:
    """What a reader of these values must know: they are uncorrected, or no failure checks their p_fail."""
    unsure = record.status != "fitted" or (record.failure is not None and record.failure.basis == "prior")
    return [f"{record.metric}: {'; '.join(record.warnings)}"] if unsure else []


def _absent(correction: Correction, ratings: Ratings) -> list[str]:
    gone = [j for j in correction.judges if j not in ratings.raters]
    return [f"no ratings by {', '.join(gone)}: filled in by regression on the judges that are there"] if gone else []
