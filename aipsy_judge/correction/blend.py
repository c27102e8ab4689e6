"""How much of each rung: by its error on anchors it was not fitted on, with prior mass on doing nothing.

Pseudo-Bayesian model averaging with a Bayesian bootstrap (Yao, Vehtari, Simpson and Gelman 2018, Bayesian Analysis
13(3), "pseudo-BMA+"): weight of rung k ~ share_k * mse_k^(-kappa n / 2), averaged over Dirichlet weights on the
conversations. kappa < 1 tempers it, for the errors of one anchor set are not as sure as their number says.
"""

from __future__ import annotations

import numpy as np

from .numbers import Floats, Ints

TEMPER = 0.25
RESAMPLES = 40
# Two pretended anchors with an error of a fifth of the scale: a rung that is exact on five anchors by luck does not
# take over, and nothing is divided by zero.
PRETENDED, PRETENDED_MSE = 2.0, 0.2**2


def blend_weights(errors: Floats, shares: Floats, groups: Ints, weights: Floats, seed: int) -> Floats:
    """(R,) not negative, sum 1.

    errors  (n, R) out-of-fold error of each rung at each anchor, unit scale
    shares  (R,) prior mass, any positive numbers
    groups  (n,) conversation of each anchor: resampled together
    weights (n,) of the anchors, mean 1
    """
    n = len(errors)
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max()) + 1
    drawn = np.random.default_rng([seed, n]).dirichlet(np.ones(count), RESAMPLES)[:, group] * weights
    drawn *= n / drawn.sum(axis=1, keepdims=True)
    mse = (drawn @ errors**2 + PRETENDED * PRETENDED_MSE) / (n + PRETENDED)
    log_weight = np.log(shares) - TEMPER * n / 2 * np.log(mse)
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    found: Floats = (weight / weight.sum(axis=1, keepdims=True)).mean(axis=0)
    return found
