"""Panels of judges and an expert with known faults, for tests of the correction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.correction.design import thresholds
from aipsy_judge.correction.metric_fit import Basis, MetricFit, Panel, fit_metric, learn_basis
from aipsy_judge.ratings import Ratings, ratings_from_rows

Floats = NDArray[np.float64]
SPAN = 5.0
CUT = 2.5 / SPAN


def truth(items: int, seed: int, *, mean: float = 3.3, sd: float = 1.1) -> Floats:
    """(I,) an expert's scores on 0..5, whole numbers."""
    return np.clip(np.rint(np.random.default_rng([1, seed]).normal(mean, sd, items)), 0, 5)


def judged(expert: Floats, bias: Sequence[float], noise: float, seed: int) -> Floats:
    """(I, J) judges who add a bias and noise, whole numbers on 0..5."""
    random = np.random.default_rng([2, seed])
    drawn = expert[:, None] + np.asarray(bias) + random.normal(0, noise, (len(expert), len(bias)))
    return np.clip(np.rint(drawn), 0, 5)


def basis_of(judges: Floats, others: Floats | None = None) -> tuple[Basis, Panel]:
    beside = np.empty((len(judges), 0)) if others is None else others / SPAN
    panel = Panel(judges / SPAN, beside)
    return learn_basis(panel, thresholds(0, SPAN)), panel


def fitted(
    judges: Floats, expert: Floats, anchors: Any, *, groups: Any = None, others: Floats | None = None, seed: int = 14
) -> tuple[MetricFit, Panel]:
    """Fit to the anchors (places); the panel of all items beside it."""
    basis, panel = basis_of(judges, others)
    chosen = Panel(panel.judges[anchors], panel.others[anchors])
    group = np.arange(len(expert)) if groups is None else groups
    fit = fit_metric(
        basis, chosen, expert[anchors] / SPAN, expert[anchors] / SPAN < CUT, cut=CUT, groups=group[anchors], seed=seed
    )
    return fit, panel


def error(values: Floats, expert: Floats) -> float:
    """RMSE in points of the scale, values on the unit scale."""
    return float(np.sqrt(((SPAN * values - expert) ** 2).mean()))


def table(
    judges: Floats,
    expert: Floats,
    anchors: Any,
    *,
    metric: str = "empathy",
    names: Sequence[str] = (),
    conversation: Any = None,
    low: float = 0.0,
    high: float = 5.0,
) -> Ratings:
    """A ratings table: every item judged, `anchors` rated by "expert"; NaN is left out."""
    known = set(np.asarray(anchors).tolist())
    rows: list[dict[str, Any]] = []
    for i in range(len(judges)):
        about = {"item_id": f"i{i}", "metric": metric, "scale_min": low, "scale_max": high}
        if conversation is not None:
            about["conversation"] = f"c{conversation[i]}"
        for j in range(judges.shape[1]):
            name = names[j] if names else f"judge{j}"
            if not np.isnan(judges[i, j]):
                rows.append({**about, "rater": name, "rater_kind": "judge", "score": float(judges[i, j])})
        if i in known:
            rows.append({**about, "rater": "expert", "rater_kind": "expert", "score": float(expert[i])})
    return ratings_from_rows(rows)
