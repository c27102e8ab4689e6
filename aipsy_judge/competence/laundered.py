"""Laundered failures: failures that some judge saw and that the mean of the judges hides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..agreement.estimate import Estimate
from ..agreement.pairs import Ints
from ..agreement.resample import Bootstrap, Floats
from ..agreement.sums import GroupSums, ratio
from ..ratings import Ratings, Yardstick
from ..ratings.overall import overall_and_failing
from ..ratings.table import Bools
from .panel_scores import PanelScores

LISTED = 200


@dataclass(frozen=True, slots=True)
class LaunderedItem:
    """seen_by: the judges that mark it a failure; `confirmed`: the reference does too (None: it does not say);
    `lowest`: (metric, judge, score) of the lowest score given, relative to the scale; `mean`: the mean of the judges'
    overall scores, None where one is missing."""

    item: str
    seen_by: tuple[str, ...]
    confirmed: bool | None
    lowest: tuple[str, str, float]
    mean: float | None


@dataclass(frozen=True, slots=True)
class Laundered:
    """What averaging would hide.

    share           of the failures that at least one judge marks, those the mean does not fail, 0..1
    share_two       the same for failures that at least two judges mark
    missed          of the reference's failures, those that some judge marks and the mean hides
    missed_by_all   of the reference's failures, those that no judge marks at all
    items           the hidden ones, first those that the reference confirms, then by how many judges saw them; the
                    first 200 of `total`
    """

    share: Estimate
    share_two: Estimate
    missed: Estimate
    missed_by_all: Estimate
    items: tuple[LaunderedItem, ...]
    total: int


def laundered(ratings: Ratings, panel: PanelScores, yard: Yardstick, groups: Ints, bootstrap: Bootstrap) -> Laundered:
    """What the equal-weight mean of the judges hides, by the failure rule on the mean of each metric.

    A metric is N/A in the mean where more judges say N/A than score it. An item counts where the mean's own failure
    is known.
    """
    mean_failing = _mean_failing(ratings, panel, yard)
    marks = (panel.failing == 1).sum(axis=1)
    known = ~np.isnan(mean_failing)
    hidden = known & (marks > 0) & (mean_failing == 0)
    share = partial(_share, groups, bootstrap)
    missed, missed_by_all = _of_the_reference(share, panel, known, hidden, marks)
    order = np.flatnonzero(hidden)
    order = order[np.lexsort((order, -marks[order], panel.reference_failing[order] != 1))]
    return Laundered(
        share=share(
            "laundered",
            "share of failures that some judge marks which the mean hides",
            known & (marks > 0),
            hidden,
            "no judge marks a failure",
        ),
        share_two=share(
            "laundered_two",
            "share of failures that two judges mark which the mean hides",
            known & (marks > 1),
            hidden,
            "no two judges mark the same failure",
        ),
        missed=missed,
        missed_by_all=missed_by_all,
        items=tuple(_item(ratings, panel, int(i)) for i in order[:LISTED]),
        total=int(hidden.sum()),
    )


def _of_the_reference(
    share: Callable[..., Estimate], panel: PanelScores, known: Bools, hidden: Bools, marks: Ints
) -> tuple[Estimate, Estimate]:
    """Of the failures that the reference marks: the share that the mean hides, and the share that no judge marks."""
    right = panel.reference_failing
    confirmed = (known & (right == 1)) * panel.weight
    none = "the reference marks no failure" if (~np.isnan(right)).any() else "nobody is the reference"
    return (
        share(
            "laundered_missed",
            "share of the reference's failures that some judge marks and the mean hides",
            confirmed,
            hidden,
            none,
        ),
        share("missed_by_all", "share of the reference's failures that no judge marks", confirmed, marks == 0, none),
    )


def _share(
    groups: Ints, bootstrap: Bootstrap, name: str, form: str, cases: Bools | Floats, hits: Bools, otherwise: str
) -> Estimate:
    """Share of the cases (I,), by their weight, that are hits (I,); undefined, `otherwise`, where there is no case."""
    values = np.stack([cases, cases * hits], axis=1).astype(float)
    return GroupSums(values, groups, int(groups.max()) + 1, bootstrap).estimate(
        name,
        form,
        ratio(1, 0),
        n=int((cases > 0).sum()),
        otherwise=otherwise,
        cases=0,
        share=True,
        beside={"cases": int((values[:, 1] > 0).sum())},
    )


def _mean_failing(ratings: Ratings, panel: PanelScores, yard: Yardstick) -> Floats:
    """(I,) failure of the mean: 1, 0, or NaN."""
    scored = ~np.isnan(panel.scores)
    count, na = scored.sum(axis=1), panel.na.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(scored, panel.scores, 0).sum(axis=1) / count
    outvoted = na > count
    return overall_and_failing(
        ratings, yard, np.where(outvoted | (count == 0), np.nan, mean), outvoted | (na == count), panel.asked
    )[1]


def _item(ratings: Ratings, panel: PanelScores, i: int) -> LaunderedItem:
    ends = np.array([ratings.scales[m] for m in panel.metrics])
    shares = (panel.scores[i] - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
    j, m = np.unravel_index(int(np.nanargmin(shares)), shares.shape)
    right, overall = panel.reference_failing[i], panel.overall[i]
    return LaunderedItem(
        item=ratings.items[i],
        seen_by=tuple(name for name, failing in zip(panel.judges, panel.failing[i], strict=True) if failing == 1),
        confirmed=None if np.isnan(right) else bool(right),
        lowest=(panel.metrics[m], panel.judges[j], float(panel.scores[i, j, m])),
        mean=None if np.isnan(overall).any() else float(overall.mean()),
    )
