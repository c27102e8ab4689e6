"""Missing ratings: are they missing where it matters most?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..agreement.estimate import Beside, Estimate
from ..agreement.pairs import Ints
from ..agreement.resample import Bootstrap, Floats
from ..agreement.sums import GroupSums, ratio
from ..ratings import Ratings, Yardstick
from ..ratings.table import Bools
from .panel_scores import PanelScores


@dataclass(frozen=True, slots=True)
class Missingness:
    """Items on which a judge has no score for a metric that others scored; `by` says in which sense items differ.

    all      share of all items
    inside   share where the condition holds (a crisis, a failure), by the other raters; `outside` where it does not
    excess   inside - outside: above 0, the judge falls silent exactly there, and what rests on it is too good
    """

    judge: str
    by: str
    all: Estimate
    inside: Estimate
    outside: Estimate
    excess: Estimate


def missingness(
    ratings: Ratings,
    panel: PanelScores,
    yard: Yardstick,
    held_right: Sequence[str],
    groups: Ints,
    bootstrap: Bootstrap,
) -> list[Missingness]:
    """For every judge, by crisis (where there are flags) and by failure. The condition is taken from the other
    raters alone: a judge that is missing cannot speak for the item."""
    lacks = _lacks(panel)
    crisis = _flags(ratings, panel, yard, held_right)
    found = []
    for j, judge in enumerate(panel.judges):
        if crisis is not None:
            found.append(_one(judge, "crisis", lacks[:, j], _others(crisis, j), groups, bootstrap))
        failing = np.concatenate([panel.failing, panel.reference_failing[:, None]], axis=1)
        found.append(_one(judge, "failure", lacks[:, j], _others(failing, j), groups, bootstrap))
    return found


def _lacks(panel: PanelScores) -> Floats:
    """(I, J) 1 where the judge lacks a score for a metric that somebody scored; NaN where nobody scored anything."""
    has = ~np.isnan(panel.scores) | panel.na
    scored: Bools = (~np.isnan(panel.scores)).any(axis=1) | ~np.isnan(panel.reference_scores)
    lacks = (~has & np.expand_dims(scored, 1)).any(axis=2)
    return np.where(scored.any(axis=1, keepdims=True), lacks, np.nan)


def _flags(ratings: Ratings, panel: PanelScores, yard: Yardstick, held_right: Sequence[str]) -> Floats | None:
    """(I, J + 1) the flag that metrics hang on (else the first flag), by judge and, last, by the reference."""
    if not yard.flags:
        return None
    flag = next(iter(yard.flag_of.values()), yard.flags[0])
    matrix = ratings.matrix(flag)
    table = np.full((len(ratings.items), len(panel.judges) + 1), np.nan)
    for j, judge in enumerate(panel.judges):
        table[matrix.index, j] = matrix.column(judge)
    if held_right:
        right = np.stack([matrix.column(r) for r in held_right], axis=1)
        given = ~np.isnan(right)
        any_flag = np.where(given, right, 0).max(axis=1) >= 0.5
        table[matrix.index, -1] = np.where(given.any(axis=1), any_flag, np.nan)
    return table


def _others(marks: Floats, j: int) -> Floats:
    """(I,) 1 where another rater marks the item, 0 where others say and none marks it, NaN where none says."""
    rest = np.delete(marks, j, axis=1)
    said = ~np.isnan(rest)
    return np.where(said.any(axis=1), np.where(said, rest, 0).max(axis=1), np.nan)


def _one(judge: str, by: str, lacks: Floats, inside: Floats, groups: Ints, bootstrap: Bootstrap) -> Missingness:
    known, asked = ~np.isnan(lacks) & ~np.isnan(inside), ~np.isnan(lacks)
    a, b = np.where(asked, lacks, 0), np.where(known, inside, 0)
    values = np.stack([b, b * a, known - b, (known - b) * a, asked.astype(np.float64), a], axis=1)
    sums = GroupSums(values, groups, int(groups.max()) + 1, bootstrap)
    inside_n, outside_n = int(b.sum()), int((known - b).sum())
    beside: dict[str, Beside] = {"missing": int(a.sum())}

    def share(name: str, form: str, cases: int, n: int) -> Estimate:
        kernel = ratio(cases + 1, cases)
        return sums.estimate(name, form, kernel, n=n, otherwise="no such item", cases=cases, share=True, beside=beside)

    return Missingness(
        judge,
        by,
        share("missing", "share of items", 4, int(asked.sum())),
        share(f"missing_{by}", f"share of items with a {by}", 0, inside_n),
        share(f"missing_no_{by}", f"share of items without a {by}", 2, outside_n),
        sums.estimate(
            f"missing_excess_{by}",
            f"share with a {by} - share without",
            lambda s: s[:, 1] / s[:, 0] - s[:, 3] / s[:, 2],
            n=inside_n + outside_n,
            otherwise="no such item",
            beside=beside,
        ),
    )
