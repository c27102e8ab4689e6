"""Whether each side of a pair fails, by what could be scored in it."""

from __future__ import annotations

from collections.abc import Callable

from .composite import critical_failures
from .pairing import Pair
from .rubric import Rubric
from .units import Unit
from .verdict import Unscored

Failing = Callable[[Pair, Unit], bool | None]


def failing_by(rubric: Rubric) -> Failing:
    """The failure rule for one side (`unit`) of a pair: True, False, or None where it is not known.

    It is `Unit.failure`, but a metric that is unscored on both sides (held back because the judge was not shown to
    work on it, most often) is left out of it, and with a weighted one the composite: with it a unit could fail but
    never be known not to, so that only what got worse would show. Unscored on one side alone: not known there. None
    too where nothing is left to fail by.
    """

    def failing(pair: Pair, unit: Unit) -> bool | None:
        unread = unread_in_both(pair)
        return _without(rubric, unit, unread) if unread else unit.failure

    return failing


def unread_in_both(pair: Pair) -> set[str]:
    """Names of the metrics that are unscored on both sides of the pair."""
    return {
        name
        for name, score in pair.base.scores.items()
        if isinstance(score, Unscored) and isinstance(pair.new.scores[name], Unscored)
    }


def _without(rubric: Rubric, unit: Unit, unread: set[str]) -> bool | None:
    left = {name: score for name, score in unit.scores.items() if name not in unread}
    value = unit.composite.value  # none where a weighted metric is unscored: then only thresholds of metrics tell
    low = value is not None and rubric.composite is not None and value < rubric.composite.failure_below
    if low or critical_failures(rubric, left):
        return True
    rule_left = value is not None or any(m.critical is not None and m.name in left for m in rubric.metrics)
    return False if rule_left and not any(isinstance(s, Unscored) for s in left.values()) else None
