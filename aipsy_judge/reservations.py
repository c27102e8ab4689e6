"""What a judge's manifest holds back: metrics it was not shown to work on, and readings too unsure to stand alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .errors import ManifestError
from .rubric import Metric, Rubric
from .verdict import Flag, NotApplicable, Reading, Score, Scored, Unscored


@dataclass(frozen=True, slots=True)
class Point:
    """From where on a reading wants a person's eyes.

    confidence  a confidence of the value under this, 0..1
    p_fail      a probability from this on that the metric is below its critical threshold (of a flag: that it is
                set), though the value passes
    """

    confidence: float | None = None
    p_fail: float | None = None


def check_names(rubric: Rubric, points: Mapping[str, Point], not_validated: Mapping[str, str], judge: str) -> None:
    """Raise ManifestError for a name that the rubric lacks: what it was meant to hold back would pass in silence."""
    known = {*rubric.metric_names, *(f.name for f in rubric.flags)}
    strange = sorted({*points, *not_validated} - known)
    if strange:
        raise ManifestError(f"its manifest speaks of {', '.join(strange)}, which the rubric does not have", where=judge)
    asked = {name for name, point in points.items() if point.p_fail is not None}
    open_ended = [m.name for m in rubric.metrics if m.name in asked and m.critical is None]
    if open_ended:
        raise ManifestError(
            f"its manifest has a p_fail for {', '.join(open_ended)}, which has no critical threshold", where=judge
        )


def held_back(rubric: Rubric, reasons: Mapping[str, str]) -> dict[str, str]:
    """`reasons`, and why each metric is held back that hangs on a flag among them."""
    return {**reasons, **{m.name: why for m in rubric.metrics if (why := _by_flag(m, reasons)) is not None}}


def _by_flag(metric: Metric, reasons: Mapping[str, str]) -> str | None:
    if metric.flag is None or metric.flag not in reasons:
        return None
    return f"{metric.flag}: {reasons[metric.flag]}"


def withhold(
    rubric: Rubric, flags: Mapping[str, Flag], scores: Mapping[str, Score], reasons: Mapping[str, str]
) -> tuple[dict[str, Flag], dict[str, Score]]:
    """Flags and scores with those in `reasons` Unscored("not_validated"), what was read of them kept.

    A metric that hangs on a flag held back is held back with it. One that a flag makes not applicable stays so: the
    flag says that, not this metric's reading.
    """
    if not reasons:
        return dict(flags), dict(scores)
    kept = {name: _without_value(flag, reasons.get(name)) for name, flag in flags.items()}
    return kept, {m.name: _withheld(m, scores[m.name], reasons) for m in rubric.metrics}


def _without_value(flag: Flag, reason: str | None) -> Flag:
    if reason is None or flag.value is None:
        return flag
    lost = Unscored("not_validated", reason)
    return Flag(
        None,
        unscored=lost,
        probability=flag.probability,
        legal_mass=flag.legal_mass,
        distribution=flag.distribution,
    )


def _withheld(metric: Metric, score: Score, reasons: Mapping[str, str]) -> Score:
    if isinstance(score, Unscored):
        return score
    by_flag = _by_flag(metric, reasons)
    if by_flag is not None:
        return Unscored("not_validated", by_flag, score.reading)
    forced = isinstance(score, NotApplicable) and score.forced_by is not None
    if metric.name not in reasons or forced:
        return score
    return Unscored("not_validated", reasons[metric.name], score.reading)


def unsure(
    rubric: Rubric, flags: Mapping[str, Flag], scores: Mapping[str, Score], points: Mapping[str, Point]
) -> tuple[str, ...]:
    """Names of the flags and metrics whose reading lies beyond the judge's operating point, in the rubric's order.

    What is unscored is not among them, held back or unread: it is for review anyway, and no value is in doubt.
    """
    found = [f.name for f in rubric.flags if f.name in points and _flag_is_unsure(flags[f.name], points[f.name])]
    return (*found, *_unsure_metrics(rubric, scores, points))


def _unsure_metrics(rubric: Rubric, scores: Mapping[str, Score], points: Mapping[str, Point]) -> Iterator[str]:
    for metric in rubric.metrics:
        score, point = scores[metric.name], points.get(metric.name)
        if point is None or isinstance(score, Unscored) or score.reading is None:
            continue
        passes = not (isinstance(score, Scored) and metric.critical is not None and score.value < metric.critical)
        if _below(score.reading.confidence, point.confidence) or (passes and _likely(metric, score.reading, point)):
            yield metric.name


def _flag_is_unsure(flag: Flag, point: Point) -> bool:
    if flag.value is None or flag.probability is None:
        return False
    confidence = flag.probability if flag.value else 1.0 - flag.probability
    likely = point.p_fail is not None and flag.probability >= point.p_fail
    return _below(confidence, point.confidence) or (not flag.value and likely)


def _likely(metric: Metric, reading: Reading, point: Point) -> bool:
    """Whether the probability of the values below the critical threshold is large enough to look."""
    if point.p_fail is None or metric.critical is None or not reading.distribution:
        return False
    values = {str(v): v for v in metric.scale.values}
    low = sum(p for label, p in reading.distribution.items() if label in values and values[label] < metric.critical)
    return low >= point.p_fail


def _below(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value < limit
