"""Several experts: how severe each is, so that the reference does not depend on who happened to rate an item."""

from __future__ import annotations

import numpy as np

from .numbers import Floats

# Experts differ by about a tenth of the scale from each other before anything is known.
SEVERITY_SD = 0.1
LEAST_NOISE = 0.02
ROUNDS = 20


def severities(scores: Floats) -> Floats:
    """(E,) leniency of each expert relative to their mean: scores (I, E) on the unit scale, NaN where none.

    score_ie = item_i + leniency_e + noise, leniency ~ N(0, .1^2), noise estimated; items are free. Only items that at
    least two experts rated tell anything; an expert who shares none gets 0. What all experts have in common cannot be
    seen: they are lenient or severe only relative to each other.
    """
    shared = scores[(~np.isnan(scores)).sum(axis=1) >= 2]
    found = np.zeros(scores.shape[1])
    if len(shared) == 0:
        return found
    seen = (~np.isnan(shared)).astype(np.float64)
    centred = _within(np.where(seen > 0, shared, 0.0), seen)
    gram = np.einsum("ie,if->ef", seen, -seen / seen.sum(axis=1, keepdims=True))
    gram[np.diag_indices_from(gram)] += seen.sum(axis=0)
    pull = (centred * seen).sum(axis=0)
    free = max(1.0, seen.sum() - len(shared) - scores.shape[1] + 1)
    for _ in range(ROUNDS):
        rest = _within(np.where(seen > 0, shared - found, 0.0), seen)
        noise = max(LEAST_NOISE**2, float((rest**2).sum() / free))
        found = np.linalg.solve(gram + np.eye(len(found)) * noise / SEVERITY_SD**2, pull)
    return found


def adjusted(scores: Floats, leniency: Floats) -> Floats:
    """(I,) mean over the experts who rated the item of score - leniency; NaN where none did."""
    seen = ~np.isnan(scores)
    total = np.where(seen, scores - leniency, 0.0).sum(axis=1)
    count = seen.sum(axis=1)
    found: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found


def _within(values: Floats, seen: Floats) -> Floats:
    """Deviations from the item's mean, 0 where there is no score."""
    mean = (values * seen).sum(axis=1, keepdims=True) / seen.sum(axis=1, keepdims=True)
    found: Floats = (values - mean) * seen
    return found
