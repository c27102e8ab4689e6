"""The course of each metric over a conversation: its mean, its worst turn, and the line between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..reading_list import Entry
from ..rubric import Metric, Rubric
from ..units import Coverage, Unit, below_critical, coverage
from ..verdict import NotApplicable, Scored, Unscored
from .chart import Course, Kind, Point, course
from .wording import number

Anchors = Mapping[tuple[str, int | None], str]


@dataclass(frozen=True, slots=True)
class MetricCourse:
    """One metric (or the composite) in one conversation. A mean launders, so the worst turn stands beside it.

    worst  (value, turn, anchor), the first turn with the lowest value; None where nothing was scored
    low    turns below the threshold
    chart  None for fewer than two units
    words  the whole course in words, for those who cannot see the chart
    """

    title: str
    mean: float | None
    worst: tuple[float, int | None, str] | None
    low: int
    threshold: float | None
    coverage: Coverage
    chart: Course | None
    words: str


def courses(rubric: Rubric, entries: Sequence[Entry], anchors: Anchors) -> tuple[MetricCourse, ...]:
    """The courses of the composite (where the rubric has one) and of every metric."""
    found = [e.unit for e in entries]
    rows = [_composite_course(rubric, found, anchors)] if rubric.composite is not None else []
    return tuple(rows + [_metric_course(m, found, anchors) for m in rubric.metrics])


def _metric_course(metric: Metric, found: Sequence[Unit], anchors: Anchors) -> MetricCourse:
    points = [_metric_point(metric, u) for u in found]
    return _course(
        metric.title,
        points,
        found,
        anchors,
        (metric.scale.minimum, metric.scale.maximum),
        metric.critical,
        coverage(u.scores[metric.name] for u in found),
    )


def _composite_course(rubric: Rubric, found: Sequence[Unit], anchors: Anchors) -> MetricCourse:
    assert rubric.composite is not None
    below = rubric.composite.failure_below
    scale = next(m.scale for m in rubric.metrics if m.weight)
    points = [_composite_point(u, below) for u in found]
    kinds = [p.kind for p in points]
    counted = Coverage(
        scored=kinds.count("score") + kinds.count("low"),
        not_applicable=kinds.count("na"),
        reasons={"missing": n} if (n := kinds.count("unscored")) else {},
    )
    return _course("Composite", points, found, anchors, (scale.minimum, scale.maximum), below, counted)


def _course(
    title: str,
    points: Sequence[Point],
    found: Sequence[Unit],
    anchors: Anchors,
    scale: tuple[float, float],
    threshold: float | None,
    counted: Coverage,
) -> MetricCourse:
    scored = [(p.value, u) for p, u in zip(points, found, strict=True) if p.value is not None]
    worst = min(scored, key=lambda pair: pair[0]) if scored else None
    return MetricCourse(
        title=title,
        mean=sum(v for v, _ in scored) / len(scored) if scored else None,
        worst=(worst[0], worst[1].turn, anchors[worst[1].key]) if worst else None,
        low=sum(p.kind == "low" for p in points),
        threshold=threshold,
        coverage=counted,
        chart=course(points, *scale, threshold) if len(points) > 1 else None,
        words=f"{title} over {len(points)} turns: " + ", ".join(p.label for p in points),
    )


def _metric_point(metric: Metric, unit: Unit) -> Point:
    turn = unit.turn or 0
    match unit.scores[metric.name]:
        case Scored(value=value) as score:
            kind: Kind = "low" if below_critical(metric, score) else "score"
            return Point(turn, kind, value, number(value))
        case NotApplicable():
            return Point(turn, "na", None, "N/A")
        case Unscored():
            return Point(turn, "unscored", None, "unscored")


def _composite_point(unit: Unit, below: float) -> Point:
    value = unit.composite.value
    turn = unit.turn or 0
    if value is not None:
        return Point(turn, "low" if value < below else "score", value, number(value))
    if unit.composite.unscored:
        return Point(turn, "unscored", None, "undefined")
    return Point(turn, "na", None, "N/A")
