"""From several judges' scores and an expert's anchors to the target: a ladder of corrections, blended out of fold.

`fit_correction` makes one from a ratings table, `save_correction` and `load_correction` keep it, `apply_to_ratings`
and `apply_to_verdict` use it, `make_targets` gives whole targets with N/A, flags and severity fused.
"""

from .applied import Applied, load_applied
from .apply import Corrected, apply_to_ratings, correct_scores
from .corrected_verdict import CorrectedScore, apply_to_verdict, check_lane
from .files import correction_text, load_correction, save_correction
from .fit import fit_correction
from .options import FitOptions
from .rationale import rationale_source
from .record import Correction, MetricRecord
from .target import Targets, make_targets

__all__ = [
    "Applied",
    "Corrected",
    "CorrectedScore",
    "Correction",
    "FitOptions",
    "MetricRecord",
    "Targets",
    "apply_to_ratings",
    "apply_to_verdict",
    "check_lane",
    "correct_scores",
    "correction_text",
    "fit_correction",
    "load_applied",
    "load_correction",
    "make_targets",
    "rationale_source",
    "save_correction",
]
