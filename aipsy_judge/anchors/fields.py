"""What a rater is asked about an item, from the rubric: one field a flag, a severity, a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import RubricError
from ..rubric import FlagSpec, Metric, Rubric

YES, NO, NOT_APPLICABLE = "yes", "no", "N/A"
CODE, CONVERSATION, REPLY, COMMENT, TO_SETTLE = "code", "conversation", "reply", "comment", "ratings_to_settle"
SETTLED = "–"  # in a sheet for adjudication: not in dispute, nothing to fill in


@dataclass(frozen=True, slots=True)
class Field:
    """One column to fill. `answers` are the legal ones; `flag` the flag that it hangs on, or None."""

    name: str
    kind: Literal["flag", "severity", "metric"]
    title: str
    question: str
    answers: tuple[str, ...]
    scale: tuple[int, int]
    flag: str | None = None

    @property
    def may_be_na(self) -> bool:
        return NOT_APPLICABLE in self.answers


def fields(rubric: Rubric) -> tuple[Field, ...]:
    """All fields, flags first: whether some metrics apply depends on them. Raises RubricError where a name of the
    rubric is one of a sheet's own columns."""
    found = [f for spec in rubric.flags for f in _flag_fields(spec)] + [_metric_field(m) for m in rubric.metrics]
    own = {CODE, REPLY, COMMENT, TO_SETTLE}
    taken = [f.name for f in found if f.name in own or f.name.startswith(CONVERSATION)]
    if taken:
        raise RubricError(f"a sheet has columns of its own called {', '.join(taken)}", where=rubric.name)
    return tuple(found)


def _flag_fields(spec: FlagSpec) -> list[Field]:
    found = [Field(spec.name, "flag", spec.title, spec.question.strip(), (YES, NO), (0, 1))]
    if spec.severity is not None:
        levels = tuple(spec.severity.levels)
        title = f"{spec.title}: how severe"
        found.append(Field(spec.severity.name, "severity", title, title, levels, (0, len(levels) - 1), spec.name))
    return found


def _metric_field(metric: Metric) -> Field:
    values = tuple(map(str, metric.scale.values))
    return Field(
        name=metric.name,
        kind="metric",
        title=metric.title,
        question=metric.question.strip(),
        answers=(*values, NOT_APPLICABLE) if metric.may_be_na else values,
        scale=(metric.scale.minimum, metric.scale.maximum),
        flag=metric.flag,
    )
