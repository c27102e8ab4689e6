"""Agreement between raters: each figure states its form, n, interval, and where it is undefined, why."""

from .alpha import LEVELS, krippendorff_alpha
from .detection import failure_auc, failure_precision, failure_recall, flag_precision, flag_recall
from .error import bias, mae, rmse
from .estimate import Estimate, Interval
from .icc import FORMS, icc
from .kappa import WEIGHTINGS, cohen_kappa
from .pairs import Pairs, make_pairs
from .rank import spearman
from .resample import Bootstrap

__all__ = [
    "FORMS",
    "LEVELS",
    "WEIGHTINGS",
    "Bootstrap",
    "Estimate",
    "Interval",
    "Pairs",
    "bias",
    "cohen_kappa",
    "failure_auc",
    "failure_precision",
    "failure_recall",
    "flag_precision",
    "flag_recall",
    "icc",
    "krippendorff_alpha",
    "mae",
    "make_pairs",
    "rmse",
    "spearman",
]
