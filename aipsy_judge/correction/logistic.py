"""Logistic regression shrunk to a stated prior (the mode under independent normal priors)."""

from __future__ import annotations

import numpy as np

from .numbers import Floats

ROUNDS, CLOSE = 50, 1e-8


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    found: Floats = 0.5 * (1.0 + np.tanh(0.5 * x))
    return found


def fit_logistic(x: Floats, y: Floats, start: Floats, sd: Floats) -> Floats:
    """(K,) mode of the posterior for x (n, K), y (n,) of 0 and 1, prior b_k ~ N(start_k, sd_k^2). n may be 0.

    Newton steps, halved while they make it worse: the log posterior is concave, so this ends at its one mode.
    """
    precision, b = 1.0 / sd**2, start.copy()
    value = _log_posterior(x, y, b, start, precision)
    for _ in range(ROUNDS):
        p = sigmoid(x @ b)
        curve = x.T @ (x * (p * (1 - p))[:, None]) + np.diag(precision)
        step = np.linalg.solve(curve, x.T @ (y - p) - precision * (b - start))
        size = 1.0
        while (tried := _log_posterior(x, y, b + size * step, start, precision)) < value and size > 1e-6:
            size /= 2
        b, value = b + size * step, max(tried, value)
        if float(np.abs(size * step).max()) < CLOSE:
            break
    return b


def _log_posterior(x: Floats, y: Floats, b: Floats, start: Floats, precision: Floats) -> float:
    line = x @ b
    return float((y * line - np.logaddexp(0.0, line)).sum() - 0.5 * (precision * (b - start) ** 2).sum())
