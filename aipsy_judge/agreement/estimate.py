"""Estimate: a figure that says what it is, what it rests on and how sure it is, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Beside = float | int | None


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval from resampling whole groups (conversations).

    low, high  its ends, in units of the figure; None with a `reason` where resampling cannot tell
    level      nominal coverage, 0..1
    method     how it was had, with seed and number of resamples
    groups     how many groups were resampled
    se         standard deviation of the figure over the resamples; None where there are none
    """

    low: float | None
    high: float | None
    level: float
    method: str
    groups: int
    se: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        ends = [v for v in (self.low, self.high) if v is not None]
        if len(ends) == 1 or any(not math.isfinite(v) for v in ends) or (not ends) != (self.reason is not None):
            raise ValueError(f"an interval has two finite ends, or a reason: {self}")

    def holds(self, value: float) -> bool:
        """Whether `value` lies within; False where there is no interval."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure.

    name, form  what it is, e.g. "icc" and "ICC(A,1)"
    value       None where it is undefined, and then `reason` says why; never NaN
    n           items it rests on; `dropped`: items left out because a rating it needs is missing or N/A; of recall and
                precision of cases (cases.py) those that the rater was never asked about
    interval    None where none was asked for or the figure is undefined
    beside      what must be seen with it: raw agreement, prevalence, counts
    """

    name: str
    form: str
    value: float | None
    n: int
    reason: str | None = None
    dropped: int = 0
    interval: Interval | None = None
    beside: Mapping[str, Beside] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.value is None) != (self.reason is not None):
            raise ValueError(f"{self.name}: either a value or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.name}: {self.value} is no figure")

    @property
    def low(self) -> float | None:
        return self.interval.low if self.interval is not None else None

    @property
    def high(self) -> float | None:
        return self.interval.high if self.interval is not None else None

    def to_dict(self) -> dict[str, Any]:
        """The estimate as strict JSON data."""
        return asdict(self) | {"beside": dict(self.beside)}


def undefined(name: str, form: str, reason: str, *, n: int, dropped: int = 0, **beside: Beside) -> Estimate:
    """An estimate without a value."""
    return Estimate(name, form, None, n, reason, dropped, None, beside)
