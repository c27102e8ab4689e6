"""Estimates in words, for tables and people."""

from __future__ import annotations

from .estimate import Estimate

NAMES = {
    "icc": "ICC(A,1)",
    "icc_c1": "ICC(C,1)",
    "icc_ak": "ICC(A,k)",
    "kappa": "kappa",
    "kappa_linear": "kappa lin.",
    "kappa_quadratic": "kappa quad.",
    "alpha": "alpha ordinal",
    "alpha_nominal": "alpha nominal",
    "alpha_interval": "alpha interval",
    "spearman": "Spearman",
    "bias": "bias",
    "mae": "MAE",
    "rmse": "RMSE",
    "failure_recall": "failure recall",
    "failure_precision": "failure precision",
    "failure_auc": "failure AUC",
    "flag_recall": "flag recall",
    "flag_precision": "flag precision",
}


def figure(estimate: Estimate, digits: int = 2) -> str:
    """The value and its interval, or a dash: "0.34 [0.27, 0.40]", "0.34 [?]" where there is no interval."""
    if estimate.value is None:
        return "–"
    sign = "+" if estimate.name == "bias" and estimate.value > 0 else ""
    text = f"{sign}{estimate.value:.{digits}f}"
    if estimate.interval is None:
        return text
    if estimate.low is None or estimate.high is None:
        return f"{text} [?]"
    return f"{text} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def why(estimate: Estimate) -> str | None:
    """Why the figure or its interval is missing; None where both are there."""
    if estimate.reason is not None:
        return estimate.reason
    if estimate.interval is not None and estimate.interval.reason is not None:
        return f"no interval: {estimate.interval.reason}"
    return None
