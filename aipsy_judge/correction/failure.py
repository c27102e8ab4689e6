"""p_fail: the probability that the expert would put a metric below its critical threshold.

logit p = a + b (value - cut) + c share of judges below the cut + d signed mean of the others + e_m other metric m

with strong priors, so that with few anchors (or none of them a failure) the order of items is the one that needs no
expert: low corrected value, judges who see a failure, low scores on what goes with this metric. `value` is the blend
out of fold while fitting, so that it is as uncertain then as it will be later.
"""

from __future__ import annotations

import numpy as np

from .design import Design
from .logistic import fit_logistic, sigmoid
from .numbers import Floats

# Prior means and standard deviations of a to e (unit scale). At the cut itself failing is as likely as not; a quarter
# of the scale above it about one in eight, within a factor of two or three. A judge who sees a failure counts for
# itself too, not only through the mean.
LEVEL = (0.0, 1.5)
SLOPE = (-8.0, 3.0)
ALARMED = (0.5, 1.0)
SIGNED = (-3.0, 2.0)
SINGLE = (0.0, 0.5)


def failure_columns(design: Design, value: Floats, judges: Floats, others: Floats, cut: float) -> Floats:
    """(n, 3) or (n, 4 + M): what p_fail is a logistic function of; value (n,), judges (n, J), others (n, M)."""
    columns = [np.ones(len(value)), value - cut, (judges < cut).mean(axis=1)]
    if not design.sizes[2]:
        return np.stack(columns, axis=1)
    centred = others - design.others
    signed = centred @ design.loadings / len(design.loadings)
    return np.column_stack([*columns, signed, centred])


def fit_failure(design: Design, value: Floats, judges: Floats, others: Floats, fails: Floats, cut: float) -> Floats:
    """Coefficients of `failure_columns`, from n anchors; n = 0 gives the prior."""
    x = failure_columns(design, value, judges, others, cut)
    metrics = design.sizes[2]
    prior = [LEVEL, SLOPE, ALARMED, *([SIGNED, *[SINGLE] * metrics] if metrics else [])]
    start, sd = np.array(prior, dtype=np.float64).T
    return fit_logistic(x, fails, start, sd)


def failure_probability(
    design: Design, coefficients: Floats, value: Floats, judges: Floats, others: Floats, cut: float
) -> Floats:
    """(n,) p_fail, 0..1."""
    return sigmoid(failure_columns(design, value, judges, others, cut) @ coefficients)
