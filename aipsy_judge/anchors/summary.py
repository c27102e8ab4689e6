"""What one import says, field by field: counts, the mean of the drawn items, and what it means for all items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .draw_file import Draw
from .fields import fields
from .weighting import weighted_mean


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """mean           of the scored items, as drawn: failures and crises weigh more than they occur
    weighted_mean  estimate for all scored items of the population (see weighting.weighted_mean)
    missing        items whose cell is empty
    Both means are None where nothing is scored.
    """

    field: str
    scored: int
    not_applicable: int
    missing: int
    mean: float | None
    weighted_mean: float | None


def summary_rows(draw: Draw, rows: Sequence[Mapping[str, Any]], items: int) -> Iterator[FieldSummary]:
    """A summary a field, of the rows of one import of `items` items."""
    for field in fields(draw.rubric):
        own = [r for r in rows if r["metric"] == field.name]
        scored = [r for r in own if r["score"] is not None]
        values, chances = [r["score"] for r in scored], [r["inclusion"] for r in scored]
        yield FieldSummary(
            field=field.name,
            scored=len(scored),
            not_applicable=len(own) - len(scored),
            missing=items - len(own),
            mean=sum(values) / len(values) if values else None,
            weighted_mean=weighted_mean(values, chances),
        )
