"""Self-preference: does a judge score what it wrote itself higher than it should?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..agreement.estimate import Beside, Estimate, undefined
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
    "cleared": "least squares: score of judge k for generator g = leniency k + quality g + premium k if g is its own",
}


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """One judge's premium on its own replies, in points of the overall score, read in several ways.

    own_generator  own - others' replies, by its own scores: mixes preference with the true quality of its replies
    own_judge      its score - the other judges', on its own replies: mixes preference with general leniency
    premium        the headline: the second less the same difference on others' replies, free of both
    cleared        the premium with those of all other judges set aside too: where another judge prefers its own
                   replies, `premium` takes the distance from that for a preference of this one. Findings rest on it;
                   undefined where the panel is too small to tell the premiums apart (two judges)
    """

    judge: str
    own: Own | None
    own_generator: Estimate
    own_judge: Estimate
    premium: Estimate
    cleared: Estimate

    @property
    def tested(self) -> Estimate:
        """What a finding rests on."""
        return self.cleared if self.cleared.value is not None else self.premium


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Sums hold, for each of g generators, a count and then each judge's scores: column generator * (J + 1) + 1 + j.

    own, siblings: (J, g) whether a generator is a judge's own, or another of its family.
    """

    judges: int
    generators: int
    own: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    siblings: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

    def means(self, sums: Floats) -> Floats:
        """(b, J, g) mean score of each judge on each generator's replies."""
        table = sums.reshape(len(sums), self.generators, self.judges + 1)
        found: Floats = (table[:, :, 1:] / table[:, :, :1]).transpose(0, 2, 1)
        return found


def self_preferences(
    ratings: Ratings, panel: PanelScores, own: Mapping[str, Own], groups: Ints, bootstrap: Bootstrap
) -> list[SelfPreference]:
    """For every judge, over the items on which all judges have an overall score, so that a judge who is missing
    where replies are bad changes nobody's comparison. Means over generators weigh each generator alike; generators
    that are not a judge's own but of its family are neither its own nor others'."""
    whole = ~np.isnan(panel.overall).any(axis=1) & (ratings.generator.codes >= 0)
    names, column = _present(ratings, whole)
    layout = _Layout(
        len(panel.judges),
        len(names),
        np.array([[j in own and g in own[j].generators for g in names] for j in panel.judges], dtype=bool),
        np.array([[j in own and g in own[j].siblings for g in names] for j in panel.judges], dtype=bool),
    )
    n, dropped = int(whole.sum()), int((~whole).sum())
    if n == 0:
        nothing = "no item has a known generator and an overall score by every judge"
        return [_undefined(j, own.get(j), nothing, dropped) for j in panel.judges]
    values = _values(panel.overall[whole], column, layout)
    sums = GroupSums(values, groups[whole], int(groups.max()) + 1, bootstrap)
    found = []
    for j, judge in enumerate(panel.judges):
        reason = _why_not(layout, j)
        if reason is not None:
            found.append(_undefined(judge, own.get(judge), reason, dropped))
            continue
        mine = int(np.isin(column, np.flatnonzero(layout.own[j])).sum())
        beside: dict[str, Beside] = {"own_items": mine, "other_items": n - mine}
        estimates = [
            sums.estimate(name, FORMS[name], kernel, n=n, dropped=dropped, beside=beside, otherwise=_TOO_SMALL)
            for name, kernel in _kernels(layout, j).items()
        ]
        found.append(SelfPreference(judge, own.get(judge), *estimates))
    return found


_TOO_SMALL = "the panel is too small to tell the judges' premiums apart"


def _present(ratings: Ratings, whole: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[list[str], Ints]:
    """The generators of the items in use, and each item's place among them."""
    codes, column = np.unique(ratings.generator.codes[whole], return_inverse=True)
    return [ratings.generator.names[c] for c in codes], column


def _undefined(judge: str, own: Own | None, reason: str, dropped: int) -> SelfPreference:
    none = [undefined(name, form, reason, n=0, dropped=dropped) for name, form in FORMS.items()]
    return SelfPreference(judge, own, *none)


def _why_not(layout: _Layout, j: int) -> str | None:
    if layout.judges < 2:
        return "one judge: there is nobody to compare it with"
    if not layout.own[j].any():
        return "none of the replies is by this judge or its family"
    return None if (~layout.own[j] & ~layout.siblings[j]).any() else "all replies are by its own family"


def _values(overall: Floats, column: Ints, layout: _Layout) -> Floats:
    """(I, g (J + 1)): the item's count and scores, in the columns of its generator."""
    values = np.zeros((len(overall), layout.generators, layout.judges + 1))
    values[np.arange(len(overall)), column] = np.column_stack([np.ones(len(overall)), overall])
    return values.reshape(len(overall), -1)


def _kernels(layout: _Layout, j: int) -> dict[str, Kernel]:
    own, foreign = layout.own[j], ~layout.own[j] & ~layout.siblings[j]

    def gap(sums: Floats) -> Floats:
        means = layout.means(sums)
        found: Floats = means[:, j] - np.delete(means, j, axis=1).mean(axis=1)
        return found

    def own_generator(sums: Floats) -> Floats:
        mine = layout.means(sums)[:, j]
        found: Floats = mine[:, own].mean(axis=1) - mine[:, foreign].mean(axis=1)
        return found

    return {
        "own_generator": own_generator,
        "own_judge": lambda s: gap(s)[:, own].mean(axis=1),
        "premium": lambda s: gap(s)[:, own].mean(axis=1) - gap(s)[:, foreign].mean(axis=1),
        "cleared": _cleared(layout, j),
    }


def _cleared(layout: _Layout, j: int) -> Kernel:
    """The premium of judge j in the least squares fit to all means; NaN where it is not determined."""
    design, used = _design(layout)
    solution = np.linalg.pinv(design)
    wanted = layout.judges + layout.generators + j
    determined = abs((solution @ design)[wanted] - np.eye(design.shape[1])[wanted]).max() < 1e-9

    def kernel(sums: Floats) -> Floats:
        if not determined:
            return np.full(len(sums), np.nan)
        found: Floats = layout.means(sums).reshape(len(sums), -1)[:, used] @ solution[wanted]
        return found

    return kernel


def _design(layout: _Layout) -> tuple[Floats, Sequence[int]]:
    """A row for each mean in use (judge x generator, siblings left out): leniency, quality, premium."""
    rows, used = [], []
    for k in range(layout.judges):
        for g in range(layout.generators):
            if not layout.siblings[k, g]:
                leniency, quality = np.eye(layout.judges)[k], np.eye(layout.generators)[g]
                rows.append(np.concatenate([leniency, quality, leniency * layout.own[k, g]]))
                used.append(k * layout.generators + g)
    return np.array(rows), used
