"""How far two models' verdicts on the same units differ, metric by metric, as the engine reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from aipsy_judge.backends.protocol import TokenBackend
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import Rubric
from aipsy_judge.verdict import NotApplicable, Score, Scored, Unscored, Verdict
from aipsy_judge.weights import Weights

from .asked import Task
from .side import Side


@dataclass(frozen=True, slots=True)
class MetricDrift:
    """One metric over the units.

    same            share of units with the same status and value
    value           mean |change| of the value over units scored on both sides, in points
    expected, bias  mean |change| and mean change of the expected value over units with a reading on both sides
    scored, read    whether either side has a value, and an expected value, in some unit: what is then not compared
                    in any unit could not be had; without them there is nothing to compare
    """

    name: str
    units: int
    same: float | None
    value: float | None
    expected: float | None
    bias: float | None
    scored: bool
    read: bool


@dataclass(frozen=True, slots=True)
class FlagDrift:
    """One flag over the units: share with the same value; shares that the second side lost and gained.

    lost_of_set  share that the second side lost of the units in which the first set it; None where it set none
    """

    name: str
    units: int
    same: float | None
    lost: float | None
    gained: float | None
    lost_of_set: float | None


@dataclass(frozen=True, slots=True)
class Mass:
    """Probability on legal answers: its mean over all readings, and the share of readings under the floor."""

    mean: float | None
    off_contract: float | None


def verdicts(backend: TokenBackend, side: Side, task: Task, *, floor: float, memory_gb: float) -> list[Verdict]:
    """What the judge says through the engine, without rationale; units that nobody spoke in are left out."""
    weights = Weights(
        name=side.model.stem, model=side.model, adapter=side.adapter, legal_mass_floor=floor, window=task.window
    )
    judge = LocalJudge(backend, weights, task.rubric, task.contract, memory_gb=memory_gb)
    said = [v for talk in task.conversations for v in judge.score(talk, rationale="never")]
    return [v for v in said if not _is_silent(v)]


def _is_silent(verdict: Verdict) -> bool:
    return any(isinstance(s, Unscored) and s.reason == "empty_turn" for s in verdict.scores.values())


def metric_drifts(rubric: Rubric, full: Sequence[Verdict], other: Sequence[Verdict]) -> list[MetricDrift]:
    """One a metric, in the rubric's order."""
    return [_metric_drift(n, [(a.scores[n], b.scores[n]) for a, b in _pairs(full, other)]) for n in rubric.metric_names]


def _metric_drift(name: str, pairs: Sequence[tuple[Score, Score]]) -> MetricDrift:
    changes = [b.value - a.value for a, b in pairs if isinstance(a, Scored) and isinstance(b, Scored)]
    moves = [q - p for a, b in pairs if (p := _expected(a)) is not None and (q := _expected(b)) is not None]
    return MetricDrift(
        name=name,
        units=len(pairs),
        same=_mean([_said(a) == _said(b) for a, b in pairs]),
        value=_mean([abs(c) for c in changes]),
        expected=_mean([abs(m) for m in moves]),
        bias=_mean(moves),
        scored=any(isinstance(s, Scored) for pair in pairs for s in pair),
        read=any(_expected(s) is not None for pair in pairs for s in pair),
    )


def flag_drifts(rubric: Rubric, full: Sequence[Verdict], other: Sequence[Verdict]) -> list[FlagDrift]:
    """One a flag, in the rubric's order."""
    found = []
    for flag in rubric.flags:
        pairs = [(a.flags[flag.name].value, b.flags[flag.name].value) for a, b in _pairs(full, other)]
        lost = _mean([a is True and b is not True for a, b in pairs])
        gained = _mean([a is not True and b is True for a, b in pairs])
        of_set = _mean([b is not True for a, b in pairs if a is True])
        found.append(FlagDrift(flag.name, len(pairs), _mean([a == b for a, b in pairs]), lost, gained, of_set))
    return found


def legal_mass(said: Sequence[Verdict]) -> Mass:
    """Over metrics and flags; what a flag forces is not read and does not count."""
    found = [m for v in said for s in v.scores.values() if s.reading and (m := s.reading.legal_mass) is not None]
    found += [m for v in said for f in v.flags.values() if (m := f.legal_mass) is not None]
    lost = [isinstance(s, Unscored) and s.reason == "off_contract" for v in said for s in v.scores.values()]
    lost += [f.unscored is not None and f.unscored.reason == "off_contract" for v in said for f in v.flags.values()]
    return Mass(_mean(found), _mean(lost))


def worst(figures: Sequence[float | None], choose: Callable[[Sequence[float]], float]) -> float | None:
    """The worst of several figures; None where one of them could not be had, or there is none."""
    known = [f for f in figures if f is not None]
    return choose(known) if known and len(known) == len(figures) else None


def _pairs(full: Sequence[Verdict], other: Sequence[Verdict]) -> list[tuple[Verdict, Verdict]]:
    pairs = list(zip(full, other, strict=True))
    assert all((a.conversation_id, a.turn) == (b.conversation_id, b.turn) for a, b in pairs)
    return pairs


def _said(score: Score) -> object:
    match score:
        case Scored(value=value):
            return value
        case NotApplicable():
            return "N/A"
        case Unscored(reason=reason):
            return reason


def _expected(score: Score) -> float | None:
    return score.reading.expected if score.reading is not None else None


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
