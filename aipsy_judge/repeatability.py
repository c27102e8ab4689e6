"""Repeatability: the same input judged several times. Comes before any question of agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .rubric import Rubric
from .strict_json import dumps
from .verdict import NotApplicable, Score, Scored, Verdict, verdict_to_dict


@dataclass(frozen=True, slots=True)
class Spread:
    """One metric or flag over the units, each judged several times.

    identical       units whose status and value are the same every time
    status_changes  units that are sometimes scored and sometimes N/A or unscored
    max_range       largest (highest - lowest) value of a unit that is scored every time, in points of the scale; None
                    where none is
    max_range_expected  the same for the expected value; None where the judge gives no probabilities
    """

    name: str
    units: int
    identical: int
    status_changes: int
    max_range: float | None
    max_range_expected: float | None

    @property
    def share_identical(self) -> float | None:
        return self.identical / self.units if self.units else None


@dataclass(frozen=True, slots=True)
class Repeatability:
    """times          how often each unit was judged
    identical_bytes   units whose whole verdict (scores, probabilities, flags, rationale, raw reply, notes; not the
                      provenance) is the same to the byte every time
    """

    times: int
    units: int
    identical_bytes: int
    metrics: tuple[Spread, ...]
    flags: tuple[Spread, ...]


def repeatability(rubric: Rubric, rounds: Sequence[Sequence[Verdict]]) -> Repeatability:
    """Compare rounds, each the verdicts on the same units in the same order. ValueError where they are not."""
    places = [[(v.conversation_id, v.turn, v.content_hash) for v in r] for r in rounds]
    if len(rounds) < 2 or any(p != places[0] for p in places):
        raise ValueError("repeatability needs at least two rounds over the same units")
    by_unit = list(zip(*rounds, strict=True))
    return Repeatability(
        times=len(rounds),
        units=len(by_unit),
        identical_bytes=sum(len({verdict_text(v) for v in verdicts}) == 1 for verdicts in by_unit),
        metrics=tuple(_metric(name, by_unit) for name in rubric.metric_names),
        flags=tuple(_flag(f.name, by_unit) for f in rubric.flags),
    )


def verdict_text(verdict: Verdict) -> str:
    """A verdict as strict JSON text without its provenance, which may hold times and counts of the server."""
    data = verdict_to_dict(verdict)
    del data["provenance"]
    return dumps(data, sort_keys=True)


def _metric(name: str, by_unit: Sequence[Sequence[Verdict]]) -> Spread:
    scores = [[v.scores[name] for v in verdicts] for verdicts in by_unit]
    always = [[s for s in unit if isinstance(s, Scored)] for unit in scores]
    always = [unit for unit, whole in zip(always, scores, strict=True) if len(unit) == len(whole)]
    return Spread(
        name=name,
        units=len(scores),
        identical=sum(len({_said(s) for s in unit}) == 1 for unit in scores),
        status_changes=sum(len({type(s) for s in unit}) > 1 for unit in scores),
        max_range=max((_range([s.value for s in unit]) for unit in always), default=None),
        max_range_expected=max((r for unit in always if (r := _expected_range(unit)) is not None), default=None),
    )


def _flag(name: str, by_unit: Sequence[Sequence[Verdict]]) -> Spread:
    found = [[(f.value, f.severity) if (f := v.flags.get(name)) else None for v in unit] for unit in by_unit]
    read = [[f is not None and f[0] is not None for f in unit] for unit in found]
    return Spread(
        name=name,
        units=len(found),
        identical=sum(len(set(unit)) == 1 for unit in found),
        status_changes=sum(len(set(unit)) > 1 for unit in read),
        max_range=None,
        max_range_expected=None,
    )


def _said(score: Score) -> tuple[str, float | str | None]:
    match score:
        case Scored():
            return "scored", score.value
        case NotApplicable():
            return "na", None
    return "unscored", score.reason


def _expected_range(scores: Sequence[Scored]) -> float | None:
    expected = [s.reading.expected for s in scores if s.reading is not None and s.reading.expected is not None]
    return _range(expected) if len(expected) == len(scores) else None


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


def repeatability_to_dict(found: Repeatability) -> Mapping[str, object]:
    """Strict JSON data."""

    def row(spread: Spread) -> dict[str, object]:
        return {
            "identical": spread.identical,
            "share_identical": spread.share_identical,
            "status_changes": spread.status_changes,
            "max_range": spread.max_range,
            "max_range_expected": spread.max_range_expected,
        }

    return {
        "times": found.times,
        "units": found.units,
        "identical_bytes": found.identical_bytes,
        "metrics": {s.name: row(s) for s in found.metrics},
        "flags": {s.name: row(s) for s in found.flags},
    }
