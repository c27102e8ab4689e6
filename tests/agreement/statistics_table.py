"""All agreement statistics as functions of two raters' scores 0..5, so that a law is tried on every one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from aipsy_judge.agreement import (
    FORMS,
    LEVELS,
    WEIGHTINGS,
    Bootstrap,
    Estimate,
    bias,
    cohen_kappa,
    failure_auc,
    failure_precision,
    failure_recall,
    flag_precision,
    flag_recall,
    icc,
    krippendorff_alpha,
    mae,
    make_pairs,
    rmse,
    spearman,
)

LABELS = tuple(range(6))
NO_INTERVAL = Bootstrap(resamples=0)

# f(x, y, groups, bootstrap) -> Estimate
Statistic = Callable[..., Estimate]


def _paired(function: Callable[..., Estimate], x, y, groups=None, bootstrap=NO_INTERVAL, **options) -> Estimate:
    return function(make_pairs(x, y, groups=groups), bootstrap=bootstrap, **options)


def _stacked(function: Callable[..., Estimate], x, y, groups=None, bootstrap=NO_INTERVAL, **options) -> Estimate:
    return function(np.stack([x, y], axis=1), groups=groups, bootstrap=bootstrap, **options)


def _flags(function: Callable[..., Estimate], x, y, groups=None, bootstrap=NO_INTERVAL) -> Estimate:
    x, y = (np.where(np.isnan(v), np.nan, v < 2) for v in (np.asarray(x, float), np.asarray(y, float)))
    return function(make_pairs(x, y, groups=groups), bootstrap=bootstrap)


STATISTICS: dict[str, Statistic] = {
    **{f"icc {f}": partial(_stacked, icc, form=f) for f in FORMS},
    **{f"alpha {v}": partial(_stacked, krippendorff_alpha, level=v) for v in LEVELS},
    **{f"kappa {w}": partial(_paired, cohen_kappa, labels=LABELS, weighting=w) for w in WEIGHTINGS},
    "spearman": partial(_paired, spearman),
    "bias": partial(_paired, bias),
    "mae": partial(_paired, mae),
    "rmse": partial(_paired, rmse),
    "failure recall": partial(_paired, failure_recall, critical=2.0),
    "failure precision": partial(_paired, failure_precision, critical=2.0),
    "failure auc": partial(_paired, failure_auc, critical=2.0),
    "flag recall": partial(_flags, flag_recall),
    "flag precision": partial(_flags, flag_precision),
}

SYMMETRIC = tuple(n for n in STATISTICS if n.split()[0] in ("icc", "alpha", "kappa", "spearman", "mae", "rmse"))
# Functions of shares of score pairs alone, so that every item written twice changes nothing.
OF_SHARES = (*tuple(n for n in STATISTICS if n.split()[0] not in ("icc", "alpha")), "icc C,1")


def scores(seed: int = 0, items: int = 60, groups: int = 15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two raters who share half of what moves them, and the group of each item."""
    random = np.random.default_rng(seed)
    group = np.arange(items) % groups
    truth = random.normal(2.5, 1.2, items) + random.normal(0, 0.8, groups)[group]
    x, y = (np.clip(np.rint(truth + random.normal(shift, 1.0, items)), 0, 5) for shift in (0.4, 0.0))
    return x, y, group
