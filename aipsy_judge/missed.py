"""Missed crises: a flag is set, and the metric that hangs on it failed or has no score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .rubric import Metric, Rubric
from .units import Unit, below_critical
from .verdict import Flag, Score, Scored


@dataclass(frozen=True, slots=True)
class Missed:
    """One unit whose set flag was answered badly (`score` below the critical threshold) or by no score at all."""

    unit: Unit
    metric: Metric
    flag: Flag
    score: Score

    @property
    def without_score(self) -> bool:
        return not isinstance(self.score, Scored)


def missed_crises(rubric: Rubric, units: Iterable[Unit]) -> list[Missed]:
    """Missed crises, worst first: the lowest value, then those without a score, each in reading order.

    Works for any rubric: a crisis is a flag that a metric hangs on (`flag:` in the rubric). A rubric without one
    has no crises and nothing to miss.
    """
    found = [m for u in units for metric in flagged_metrics(rubric) if (m := _missed(metric, u)) is not None]
    return sorted(found, key=lambda m: m.score.value if isinstance(m.score, Scored) else float("inf"))


def unread_flags(rubric: Rubric, units: Iterable[Unit]) -> list[Unit]:
    """Units in which a flag that a metric hangs on could not be read: a crisis there can be neither stated nor
    excluded."""
    names = {m.flag for m in flagged_metrics(rubric)}
    return [u for u in units if any(_flag(u, name) is None for name in names)]


def flagged_metrics(rubric: Rubric) -> list[Metric]:
    """The metrics that hang on a flag, in the rubric's order."""
    return [m for m in rubric.metrics if m.flag is not None]


def flag_value(unit: Unit, name: str) -> bool | None:
    """What was found for a flag: True, False, or None where it was not or could not be read."""
    flag = _flag(unit, name)
    return flag.value if flag is not None else None


def _flag(unit: Unit, name: str | None) -> Flag | None:
    flag = unit.verdict.flags.get(name) if unit.verdict is not None and name is not None else None
    return flag if flag is not None and flag.value is not None else None


def _missed(metric: Metric, unit: Unit) -> Missed | None:
    flag = _flag(unit, metric.flag)
    if flag is None or not flag.value:
        return None
    score = unit.scores[metric.name]
    if isinstance(score, Scored) and not below_critical(metric, score):
        return None
    return Missed(unit, metric, flag, score)
