"""The fitted correction as it stands in its file: one readable JSON document, all values in points of the scale.

These are plain frozen dataclasses; pydantic checks them where a file is read (extra keys are refused).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict

from .profile import Profile

FORMAT = "aipsy-correction-1"
STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Range:
    """A 95 % interval; low and high are None, with a reason, where there is none."""

    __pydantic_config__ = STRICT
    low: float | None
    high: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """value = at_centre + sum of judges[j] (score_j - mean_j) + steps + sum of others[m] (score_m - mean_m).

    steps  judge -> for each threshold, what is added where its score is at or above it (minus the share of items
           where it is); empty for rungs without steps
    """

    __pydantic_config__ = STRICT
    at_centre: float
    judges: dict[str, float]
    steps: dict[str, list[float]]
    others: dict[str, float]


@dataclass(frozen=True, slots=True)
class RungRecord:
    """One rung: its share in the blend, its error in and out of fold, its rule."""

    __pydantic_config__ = STRICT
    name: str
    about: str
    blend: float
    rmse_out_of_fold: float | None
    rmse_in_sample: float | None
    line: Line


@dataclass(frozen=True, slots=True)
class Centres:
    """Where scores are centred; `missing` is how a score that is absent is filled in (unit scale, see `fill`)."""

    __pydantic_config__ = STRICT
    judges: dict[str, float]
    others: dict[str, float]
    other_scales: dict[str, tuple[float, float]]
    other_loadings: dict[str, float]
    thresholds: list[float]
    shares: dict[str, list[float]]
    fill_means: list[float]
    fill_covariance: list[list[float]]


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """p_fail = 1 / (1 + exp(-x)), x linear in the columns of `failure.failure_columns`, on the unit scale.

    below           what the expert's score must be under (or `or_at`) to be a failure, in points
    flag_from       p_fail at which the metric counts as failed: 1 / (1 + miss_cost)
    failures        among the anchors; 0: p_fail rests on its prior
    A metric that was not fitted holds the prior's coefficients, which tell of no expert: see `MetricRecord.no_p_fail`
    """

    __pydantic_config__ = STRICT
    below: float
    or_at: bool
    coefficients: list[float]
    miss_cost: float
    flag_from: float
    failures: int
    basis: Literal["anchors", "prior"]


@dataclass(frozen=True, slots=True)
class TailRecord:
    """The tail-aware option: a squared error on a failure counts `price` times; `failing`: expected failing score."""

    __pydantic_config__ = STRICT
    price: float
    failing: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: value None with a reason where undefined."""

    __pydantic_config__ = STRICT
    value: float | None
    low: float | None
    high: float | None
    n: int
    form: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """How far the correction moves the judges' mean, over all items that judges rated."""

    __pydantic_config__ = STRICT
    mean: float
    interval: Range
    sentence: str


@dataclass(frozen=True, slots=True)
class MetricRecord:
    """One metric's correction and everything one must know to trust it or not."""

    __pydantic_config__ = STRICT
    metric: str
    scale: tuple[float, float]
    status: Literal["fitted", "too_few_anchors"]
    warnings: list[str]
    judges: list[str]
    anchors: int
    conversations: int
    items: int
    combined: Line
    weight_intervals: dict[str, Range]
    moved: Moved | None
    rungs: list[RungRecord]
    votes: dict[str, float]
    failure: FailureRecord | None
    families: dict[str, float] | None
    tail: TailRecord | None
    out_of_fold: dict[str, dict[str, Figure]]
    in_sample_rmse: float | None
    centres: Centres

    @property
    def no_p_fail(self) -> str | None:
        """Why p_fail and fails are undefined on every item; None where they are defined."""
        if self.failure is None:
            return "no critical threshold"
        if self.status == "fitted":
            return None
        if self.anchors == 0:
            return "no anchor: p_fail would be its prior alone"
        return f"too few anchors ({self.anchors}) to fit p_fail: it would be its prior alone"


@dataclass(frozen=True, slots=True)
class FlagRecord:
    """Votes of the judges on a flag; sum 1."""

    __pydantic_config__ = STRICT
    flag: str
    votes: dict[str, float]
    anchors: int
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class RubricRef:
    """The rubric a correction is bound to."""

    __pydantic_config__ = STRICT
    name: str
    hash: str


@dataclass(frozen=True, slots=True)
class Correction:
    """A fitted correction. It holds for these judges and this rubric, and for no others."""

    __pydantic_config__ = STRICT
    made_by: Literal["aipsy-judge"]
    format: Literal["aipsy-correction-1"]
    version: str
    profile: Profile
    rubric: RubricRef | None
    judges: list[str]
    experts: list[str]
    leniency: dict[str, dict[str, float]]
    seed: int
    metrics: dict[str, MetricRecord]
    flags: dict[str, FlagRecord]
    notes: list[str]
