"""The agreement report: every figure of a table with what it rests on, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ratings import Ratings, Yardstick, reference, reference_name, reference_raters
from .figures import (
    By,
    PairFigures,
    PanelFigures,
    against_reference,
    between_raters,
    overall_against_reference,
    panels,
    resampling_unit,
)
from .resample import Bootstrap, in_blocks


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One item on which a rater and the reference are far apart."""

    item: str
    metric: str
    rater: str
    score: float
    reference: float


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """reference: who is held to be right, or None; `judged`: the raters held against them; `counts`: rows a status;
    `panels`: everybody together; `experts`: several reference raters among themselves, the most that can be asked of
    a judge; `confusion`: metric -> rater -> [score, reference score, how often]; `farthest`: the items most apart."""

    reference: str | None
    reference_raters: tuple[str, ...]
    judged: tuple[str, ...]
    against: tuple[PairFigures, ...]
    between: tuple[PairFigures, ...]
    panels: tuple[PanelFigures, ...]
    experts: tuple[PanelFigures, ...]
    confusion: dict[str, dict[str, list[tuple[float, float, int]]]]
    farthest: tuple[Disagreement, ...]
    counts: dict[str, int]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as strict JSON data."""
        return {
            "reference": self.reference,
            "reference_raters": list(self.reference_raters),
            "judged": list(self.judged),
            "counts": self.counts,
            "against_reference": [pair_to_dict(p) for p in self.against],
            "between_raters": [pair_to_dict(p) for p in self.between],
            "together": [panel_to_dict(p) for p in self.panels],
            "experts_together": [panel_to_dict(p) for p in self.experts],
            "confusion": self.confusion,
            "farthest": [
                {"item": d.item, "metric": d.metric, "rater": d.rater, "score": d.score, "reference": d.reference}
                for d in self.farthest
            ],
            "notes": list(self.notes),
        }


def pair_to_dict(pair: PairFigures) -> dict[str, Any]:
    return {
        "metric": pair.metric,
        "rater": pair.rater,
        "reference": pair.reference,
        "estimates": [e.to_dict() for e in pair.estimates],
    }


def panel_to_dict(panel: PanelFigures) -> dict[str, Any]:
    return {
        "metric": panel.metric,
        "raters": list(panel.raters),
        "estimates": [e.to_dict() for e in panel.estimates],
        "applicability": panel.applicability.to_dict(),
    }


def agreement_report(
    ratings: Ratings,
    yardstick: Yardstick,
    *,
    raters: Sequence[str] | None = None,
    held_right: Sequence[str] | None = None,
    by: By = "conversation",
    bootstrap: Bootstrap | None = None,
    farthest: int = 20,
) -> AgreementReport:
    """Everything that can be said of how the raters of a table agree.

    raters      those held against the reference and each other; default: everybody who is not the reference
    held_right  the reference; default: the experts (see `reference_raters`); there may be none
    by          what is resampled as a whole
    """
    bootstrap = replace(bootstrap or Bootstrap(), unit=resampling_unit(ratings, by))
    right = reference_raters(ratings, held_right)
    judged = tuple(raters) if raters else tuple(r for r in ratings.raters if r not in right)
    groups, bootstrap = in_blocks(ratings.groups(by), bootstrap)
    everybody = (*judged, *(r for r in right if r not in judged))
    against: list[PairFigures] = []
    if right:
        against += against_reference(ratings, judged, right, yardstick, bootstrap, groups=groups)
        against += overall_against_reference(ratings, judged, right, yardstick, bootstrap, groups=groups)
    confusion, far = _confusion(ratings, judged, right, farthest) if right else ({}, ())
    return AgreementReport(
        reference=reference_name(ratings, right) if right else None,
        reference_raters=right,
        judged=judged,
        against=tuple(against),
        between=tuple(between_raters(ratings, everybody, yardstick, bootstrap, groups=groups)),
        panels=tuple(panels(ratings, everybody, bootstrap, groups=groups)) if len(everybody) > 1 else (),
        experts=tuple(panels(ratings, right, bootstrap, groups=groups)) if len(right) > 1 else (),
        confusion=confusion,
        farthest=far,
        counts=ratings.counts(),
        notes=(*ratings.warnings, *yardstick.notes),
    )


def _confusion(
    ratings: Ratings, judged: Sequence[str], right: Sequence[str], most: int
) -> tuple[dict[str, dict[str, list[tuple[float, float, int]]]], tuple[Disagreement, ...]]:
    tables: dict[str, dict[str, list[tuple[float, float, int]]]] = {}
    far: list[tuple[float, Disagreement]] = []
    for metric in ratings.metrics:
        held = reference(ratings, metric, right).values
        matrix = ratings.matrix(metric, judged)
        span = ratings.scales[metric][1] - ratings.scales[metric][0]
        for column, rater in enumerate(judged):
            mine, theirs = matrix.values[:, column], held[matrix.index]
            both = np.flatnonzero(~np.isnan(mine) & ~np.isnan(theirs))
            pairs = Counter(zip(mine[both].tolist(), theirs[both].tolist(), strict=True))
            tables.setdefault(metric, {})[rater] = [(s, r, n) for (s, r), n in sorted(pairs.items())]
            gap = np.abs(mine[both] - theirs[both])
            for n in both[np.argsort(-gap, kind="stable")[:most]]:
                item = Disagreement(matrix.item_ids[n], metric, rater, float(mine[n]), float(theirs[n]))
                far.append((abs(mine[n] - theirs[n]) / span, item))
    far.sort(key=lambda pair: -pair[0])
    return tables, tuple(item for gap, item in far[:most] if gap > 0)
