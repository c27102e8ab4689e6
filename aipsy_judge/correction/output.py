"""Corrected values as rows of a table, and whole targets as lines of JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ratings import Ratings
from ..rubric import Rubric
from ..strict_json import dumps
from .answers import answers_of_ratings
from .apply import apply_to_ratings
from .record import Correction, MetricRecord
from .target import make_targets

RATER = "target"


def metric_rows(correction: Correction, ratings: Ratings) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows, notes): a row a metric and item, with the columns of a ratings table and raw, p_fail, fails,
    filled, reason (why p_fail and fails are undefined)."""
    rows: list[dict[str, Any]] = []
    notes = _absent(correction, ratings)
    for metric, (index, found) in apply_to_ratings(correction, ratings).items():
        record = correction.metrics[metric]
        notes += _warned(record)
        if (count := int(found.filled.sum())) > 0:
            notes.append(f"{metric}: on {count} of {len(index)} items a judge's score was missing and filled in")
        for n, i in enumerate(index.tolist()):
            rows.append(
                {
                    "item_id": ratings.items[i],
                    "rater": RATER,
                    "rater_kind": "judge",
                    "metric": metric,
                    "score": round(float(found.value[n]), 6),
                    "status": "scored",
                    "scale_min": record.scale[0],
                    "scale_max": record.scale[1],
                    "conversation": ratings.conversation[i],
                    "raw": round(float(found.raw[n]), 6),
                    "p_fail": None if found.p_fail is None else round(float(found.p_fail[n]), 6),
                    "fails": None if found.fails is None else bool(found.fails[n]),
                    "filled": bool(found.filled[n]),
                    "reason": record.no_p_fail,
                }
            )
    return rows, notes


def target_rows(correction: Correction, ratings: Ratings, rubric: Rubric) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows, notes): an item a row, see `Targets.rows`."""
    answers = answers_of_ratings(ratings, correction.judges, rubric)
    targets = make_targets(correction, answers, rubric)
    judged = np.zeros(len(ratings.items), dtype=bool)
    for name in targets.metrics:
        judged |= (~np.isnan(answers.scores[name]) | answers.na[name]).any(axis=1)
    rows = [row for row, one in zip(targets.rows(), judged, strict=True) if one]
    notes = _absent(correction, ratings)
    for name in targets.metrics:
        notes += _warned(correction.metrics[name])
    missing = [m for m in rubric.metric_names if m not in targets.metrics]
    if missing:
        notes.append(f"the correction has no {', '.join(missing)}: the targets lack them")
    return rows, notes


def to_text(rows: Sequence[dict[str, Any]], *, as_csv: bool) -> str:
    """CSV with a header, or strict JSON a line."""
    if not as_csv:
        return "".join(dumps(row) + "\n" for row in rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]) if rows else ["item_id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _warned(record: MetricRecord) -> list[str]:
    """What a reader of these values must know: they are uncorrected, or no failure checks their p_fail."""
    unsure = record.status != "fitted" or (record.failure is not None and record.failure.basis == "prior")
    return [f"{record.metric}: {'; '.join(record.warnings)}"] if unsure else []


def _absent(correction: Correction, ratings: Ratings) -> list[str]:
    gone = [j for j in correction.judges if j not in ratings.raters]
    return [f"no ratings by {', '.join(gone)}: filled in by regression on the judges that are there"] if gone else []
