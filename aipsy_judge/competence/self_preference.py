"""Self-preference: does a judge score what it wrote itself higher than it should?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..agreement.estimate import Estimate, undefined
from ..agreement.pairs import Ints
from ..agreement.resample import Bootstrap, Floats, Kernel
from ..agreement.sums import GroupSums
from ..ratings import Ratings
from .families import Own
from .panel_scores import PanelScores

FORMS = {
    "own_generator": "own replies - replies of others, by this judge's scores",
    "own_judge": "this judge - other judges, on own replies",
    "premium": "difference in differences: (this judge - other judges) on own replies - the same on others' replies",
}


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """Three readings of one judge's premium on its own replies, in points of the overall score.

    own_generator  own - others' replies, by its own scores: mixes preference with the true quality of its replies
    own_judge      its score - the other judges', on its own replies: mixes preference with general leniency
    premium        the headline: the second less the same difference on others' replies, free of both
    """

    judge: str
    own: Own | None
    own_generator: Estimate
    own_judge: Estimate
    premium: Estimate


def self_preferences(
    ratings: Ratings, panel: PanelScores, own: Mapping[str, Own], groups: Ints, bootstrap: Bootstrap
) -> list[SelfPreference]:
    """For every judge, over the items on which all judges have an overall score, so that a judge who is missing
    where replies are bad changes nobody's comparison. Means over generators weigh each generator alike."""
    whole = ~np.isnan(panel.overall).any(axis=1) & (ratings.generator.codes >= 0)
    dropped = int((~whole).sum())
    found = []
    for j, judge in enumerate(panel.judges):
        reason = _why_not(panel, own.get(judge), ratings)
        if reason is not None:
            none = [undefined(name, form, reason, n=0, dropped=dropped) for name, form in FORMS.items()]
            found.append(SelfPreference(judge, own.get(judge), *none))
            continue
        found.append(_one(ratings, panel, j, own[judge], whole, groups, bootstrap))
    return found


def _why_not(panel: PanelScores, own: Own | None, ratings: Ratings) -> str | None:
    if ratings.generator.is_empty():
        return "the table does not say who wrote the replies"
    if len(panel.judges) < 2:
        return "one judge: there is nobody to compare it with"
    if own is None:
        return "none of the generators is this judge or of its family"
    others = set(ratings.generator.names) - set(own.generators) - set(own.siblings)
    return None if others else "all replies are by its own family"


def _one(
    ratings: Ratings,
    panel: PanelScores,
    j: int,
    own: Own,
    whole: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    groups: Ints,
    bootstrap: Bootstrap,
) -> SelfPreference:
    names = [g for g in ratings.generator.names if g not in own.siblings]
    place = {code: names.index(g) for code, g in enumerate(ratings.generator.names) if g in names}
    column = np.array([place.get(int(code), -1) for code in ratings.generator.codes])
    use = whole & (column >= 0)
    mine = panel.overall[use, j]
    others = np.delete(panel.overall[use], j, axis=1).mean(axis=1)
    values = _by_generator(mine, others, column[use], len(names))
    sums = GroupSums(values, groups[use], int(groups.max()) + 1, bootstrap)
    own_places = [names.index(g) for g in own.generators if g in names]
    kernels = _kernels(own_places, len(names))
    own_items = int(np.isin(column[use], own_places).sum())
    readings = [
        sums.estimate(
            name,
            FORMS[name],
            kernel,
            n=int(use.sum()),
            dropped=int((~use).sum()),
            otherwise="a generator has no item that all judges scored",
            beside={"own_items": own_items, "other_items": int(use.sum()) - own_items},
        )
        for name, kernel in kernels.items()
    ]
    return SelfPreference(panel.judges[j], own, *readings)


def _by_generator(mine: Floats, others: Floats, column: Ints, n: int) -> Floats:
    """(I, 3 n): per generator a count, this judge's score and the other judges' mean."""
    values = np.zeros((len(mine), 3 * n))
    rows = np.arange(len(mine))
    values[rows, column], values[rows, n + column], values[rows, 2 * n + column] = 1.0, mine, others
    return values


def _kernels(own: list[int], n: int) -> dict[str, Kernel]:
    foreign = [g for g in range(n) if g not in own]

    def mine(sums: Floats) -> Floats:
        return sums[:, n : 2 * n] / sums[:, :n]

    def gap(sums: Floats) -> Floats:
        return mine(sums) - sums[:, 2 * n :] / sums[:, :n]

    return {
        "own_generator": lambda s: mine(s)[:, own].mean(axis=1) - mine(s)[:, foreign].mean(axis=1),
        "own_judge": lambda s: gap(s)[:, own].mean(axis=1),
        "premium": lambda s: gap(s)[:, own].mean(axis=1) - gap(s)[:, foreign].mean(axis=1),
    }
