"""What several judges said of the same items, as arrays: from verdicts, or from a ratings table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import LaneError
from ..ratings import Ratings, item_id
from ..rubric import FlagSpec, Rubric
from ..verdict import NotApplicable, Scored, Verdict
from .numbers import Bools, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Of J judges on I items: metric -> (I, J) scores in points (NaN where none) and N/A; flag -> (I, J) 0, 1 or NaN;
    flag -> (I, J) severity as levels above "not set", NaN where none was told. families: (I,) or None."""

    items: tuple[str, ...]
    judges: tuple[str, ...]
    scores: Mapping[str, Floats]
    na: Mapping[str, Bools]
    flags: Mapping[str, Floats]
    severities: Mapping[str, Floats]
    families: tuple[str | None, ...] | None = None


def answers_of_ratings(ratings: Ratings, judges: Sequence[str], rubric: Rubric) -> Answers:
    """From a table with a rater a judge; items in the table's order. A judge who is not in it has no answers."""
    here = [(place, j) for place, j in enumerate(judges) if j in ratings.raters]
    shape = (len(ratings.items), len(judges))

    def column(metric: str) -> tuple[Floats, Bools]:
        values, na = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        if here and metric in ratings.metrics:
            matrix = ratings.matrix(metric, [j for _, j in here])
            for n, (place, _) in enumerate(here):
                values[matrix.index, place], na[matrix.index, place] = matrix.values[:, n], matrix.na[:, n]
        return values, na

    metrics = {m.name: column(m.name) for m in rubric.metrics}
    labels = ratings.generator if ratings.generator_family.is_empty() else ratings.generator_family
    return Answers(
        items=ratings.items,
        judges=tuple(judges),
        scores={m: values for m, (values, _) in metrics.items()},
        na={m: na for m, (_, na) in metrics.items()},
        flags={f.name: column(f.name)[0] for f in rubric.flags},
        severities={f.name: column(f.severity.name)[0] for f in rubric.flags if f.severity is not None},
        families=None if labels.is_empty() else tuple(labels[i] for i in range(len(ratings.items))),
    )


def answers_of_verdicts(verdicts: Mapping[str, Verdict], judges: Sequence[str], rubric: Rubric) -> Answers:
    """From verdicts on one item, judge -> verdict; a judge without one has no answers.

    Raises LaneError where the verdicts are on unlike texts, or by another rubric.
    """
    given = [verdicts.get(j) for j in judges]
    known = [v for v in given if v is not None]
    if not known:
        raise LaneError(f"none of the verdicts is by {', '.join(judges)}")
    if len({v.content_hash for v in known}) > 1:
        raise LaneError("these verdicts are on unlike texts")
    if any(v.provenance.get("rubric", rubric.hash) != rubric.hash for v in known):
        raise LaneError(f"a verdict was made with another rubric than {rubric.name}")
    first = known[0]
    return Answers(
        items=(item_id(first.conversation_id, first.turn),),
        judges=tuple(judges),
        scores={m: np.array([[_score(v, m) for v in given]]) for m in rubric.metric_names},
        na={m: np.array([[_is_na(v, m) for v in given]]) for m in rubric.metric_names},
        flags={f.name: np.array([[_flag(v, f.name) for v in given]]) for f in rubric.flags},
        severities={f.name: np.array([[_level(v, f) for v in given]]) for f in rubric.flags if f.severity is not None},
    )


def _score(verdict: Verdict | None, metric: str) -> float:
    score = verdict.scores.get(metric) if verdict is not None else None
    return float(score.value) if isinstance(score, Scored) else float("nan")


def _is_na(verdict: Verdict | None, metric: str) -> bool:
    return verdict is not None and isinstance(verdict.scores.get(metric), NotApplicable)


def _flag(verdict: Verdict | None, name: str) -> float:
    flag = verdict.flags.get(name) if verdict is not None else None
    return float("nan") if flag is None or flag.value is None else float(flag.value)


def _level(verdict: Verdict | None, spec: FlagSpec) -> float:
    flag = verdict.flags.get(spec.name) if verdict is not None else None
    levels = list(spec.severity.levels) if spec.severity is not None else []
    if flag is None or flag.severity not in levels:
        return float("nan")
    return float(levels.index(flag.severity))
