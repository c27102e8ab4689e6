"""Nine indices -> Outcome, Efficiency, Stability -> EPM-Q."""

from __future__ import annotations

import numpy as np

from .indices import GROUPS, NAMES
from .parameters import Parameters
from .space import Floats

SCORE_NAMES = ("outcome", "efficiency", "stability", "epm_q")


def compose(indices: Floats, parameters: Parameters) -> Floats:
    """Indices (..., 9) -> (..., 4): Outcome, Efficiency, Stability (each a mean of three), EPM-Q (their weighted sum).

    nan where an index is undefined. All of it is linear: the mean of cases' EPM-Q is the EPM-Q of mean indices.
    Source: arXiv:2603.00552 v1, section 9.3.
    """
    groups = [indices[..., [NAMES.index(n) for n in names]].mean(axis=-1) for names in GROUPS.values()]
    total = sum(w * g for w, g in zip(parameters.weights, groups, strict=True))
    return np.stack([*groups, np.asarray(total)], axis=-1)
