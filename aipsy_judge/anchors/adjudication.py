"""Where two or more experts disagree, and what an adjudicator is shown of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import RatingsError
from ..ratings import Ratings
from ..rubric import Rubric
from .draw_file import Draw
from .fields import NO, NOT_APPLICABLE, YES, Field, fields
from .sheet import Dispute

MARGIN = 1.0  # points; two experts a point apart on a scale of 0 to 5 say the same thing in other words
# A score, or None for N/A.
Said = float | None


@dataclass(frozen=True, slots=True)
class Disputes:
    """What is to be settled.

    by_item   item id -> fields and words
    compared  field -> items that at least two raters answered
    disputed  field -> those of them on which they disagree
    """

    raters: tuple[str, ...]
    by_item: Mapping[str, Dispute]
    compared: Mapping[str, int]
    disputed: Mapping[str, int]


def find_disputes(draw: Draw, ratings: Ratings, raters: Sequence[str] = (), *, margin: float = MARGIN) -> Disputes:
    """Items and fields on which the experts disagree: scores more than `margin` points apart, N/A against a score,
    flags or severities that are not the same. Where a flag is in dispute, so is what hangs on it.

    `raters`: which experts; none: all of the table's. What only one of them answered is not in dispute.

    Raises RatingsError where there are not two experts, or the table is not on the rubric's scales.
    """
    experts = tuple(raters) or ratings.of_kind("expert")
    unknown = [r for r in experts if r not in ratings.raters]
    if unknown or len(experts) < 2:
        raise RatingsError(
            f"no rater {', '.join(unknown)}" if unknown else "two experts are needed to disagree",
            hint=f"Raters in the table: {', '.join(ratings.raters)}.",
        )
    asked = fields(draw.rubric)
    said = {f.name: _said(ratings, f, experts, draw.rubric) for f in asked}
    compared, disputed = Counter[str](), Counter[str]()
    by_item: dict[str, Dispute] = {}
    for item in draw.items:
        answers = {f.name: said[f.name].get(item.item_id, {}) for f in asked}
        compared.update(name for name, found in answers.items() if len(found) > 1)
        open_ = {f.name for f in asked if _differ(f, list(answers[f.name].values()), margin)}
        disputed.update(open_)
        if open_:
            open_ |= {f.name for f in asked if f.flag in open_}
            words = _words([f for f in asked if f.name in open_], answers, experts, f"{draw.id} {item.item_id}")
            by_item[item.item_id] = Dispute(frozenset(open_), words)
    return Disputes(experts, by_item, dict(compared), dict(disputed))


def _said(ratings: Ratings, field: Field, experts: tuple[str, ...], rubric: Rubric) -> dict[str, dict[str, Said]]:
    """Item id -> rater -> what was said; nothing where the table lacks the field."""
    if field.name not in ratings.metrics:
        return {}
    if ratings.scales[field.name] != field.scale:
        low, high = ratings.scales[field.name]
        raise RatingsError(f"{field.name} is on {low:g}..{high:g}, not on the scale of the rubric {rubric.name}")
    matrix = ratings.matrix(field.name, experts)
    found: dict[str, dict[str, Said]] = {}
    for row, item in enumerate(matrix.item_ids):
        for column, rater in enumerate(experts):
            if matrix.na[row, column]:
                found.setdefault(item, {})[rater] = None
            elif matrix.scored[row, column]:
                found.setdefault(item, {})[rater] = float(matrix.values[row, column])
    return found


def _differ(field: Field, said: Sequence[Said], margin: float) -> bool:
    scores = [s for s in said if s is not None]
    if not scores:
        return False
    if len(scores) < len(said):
        return True  # N/A against a score
    return max(scores) - min(scores) > (margin if field.kind == "metric" else 0)


def _words(open_: Sequence[Field], answers: Mapping[str, Mapping[str, Said]], experts: Sequence[str], seed: str) -> str:
    """What was said of each field, a line each. The raters have no names, and their order is the item's own."""
    order = list(experts)
    random.Random(seed).shuffle(order)
    lines = []
    for field in open_:
        said = [_word(field, answers[field.name][r]) if r in answers[field.name] else "no answer" for r in order]
        lines.append(f"{field.name}: {' / '.join(said)}")
    return "\n".join(lines)


def _word(field: Field, said: Said) -> str:
    if said is None:
        return NOT_APPLICABLE
    if field.kind == "flag":
        return YES if said else NO
    return field.answers[int(said)] if field.kind == "severity" else f"{said:g}"
