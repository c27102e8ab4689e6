"""How far a model's judgements of the validation part agree with the targets; undefined figures are None."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aipsy_judge.agreement import Bootstrap, flag_precision, flag_recall, icc, mae, make_pairs
from aipsy_judge.rubric import Rubric
from aipsy_judge.verdict import NotApplicable, Scored, Unscored

from .judging import Judged

_NO_INTERVALS = Bootstrap(resamples=0)
NOT_ASKED = frozenset({"empty_turn", "context_overflow"})  # no model could have answered: the same in every round


@dataclass(frozen=True, slots=True)
class MetricMeasures:
    """icc   ICC(A,1) of the expected value with the target, over `n` items that have both
    mae   in points of the scale
    na    share of items on which the judge says N/A where the target does, and not where it does not
    tail  share of the targets below critical (`failures`) that the judge's value finds
    """

    icc: float | None
    mae: float | None
    n: int
    unscored: int
    na: float | None
    tail: float | None
    failures: int


@dataclass(frozen=True, slots=True)
class FlagMeasures:
    """icc of the flag's probability with the target (0 or 1); recall and precision of the flag as it is said, over `n`
    items of which `positives` have it set. unscored: items of which the judge's flag could not be had."""

    icc: float | None
    recall: float | None
    precision: float | None
    n: int
    positives: int
    unscored: int


@dataclass(frozen=True, slots=True)
class Measures:
    """agreement    mean ICC(A,1) over the metrics and flags that have one; None where none has: what early stopping
                 goes by, between rounds whose means are over the same (see validation.Validation.best)
    tail_recall  share of all targets below their critical thresholds that the judge finds; None where there are none
    unscored     metrics of units that could not be had: they are in no agreement
    unread       of those, and of flags, what the judge was asked and did not answer
    """

    agreement: float | None
    tail_recall: float | None
    failures: int
    units: int
    unscored: int
    unread: int
    metrics: dict[str, MetricMeasures]
    flags: dict[str, FlagMeasures]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def line(self) -> str:
        """The figures in a line."""
        flags = ", ".join(
            f"{name} recall {_shown(f.recall)} of {f.positives}, precision {_shown(f.precision)}"
            for name, f in self.flags.items()
        )
        tail = f"tail recall {_shown(self.tail_recall)} of {self.failures}"
        lost = f", {self.unscored} scores COULD NOT BE READ" if self.unscored else ""
        unsaid = sum(f.unscored for f in self.flags.values())
        lost += f", {unsaid} flags COULD NOT BE READ" if unsaid else ""
        return f"{self.units} units: agreement {_shown(self.agreement)}, {tail}, {flags}{lost}"


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def measure(judged: Sequence[Judged], rubric: Rubric) -> Measures:
    """All figures of one round of judging."""
    metrics = {m.name: _metric(judged, m.name, m.critical) for m in rubric.metrics}
    flags = {f.name: _flag(judged, f.name) for f in rubric.flags}
    figures = [m.icc for m in metrics.values()] + [f.icc for f in flags.values()]
    defined = [value for value in figures if value is not None]
    failures = sum(m.failures for m in metrics.values())
    found = sum(round(m.tail * m.failures) for m in metrics.values() if m.tail is not None)
    return Measures(
        agreement=sum(defined) / len(defined) if defined else None,
        tail_recall=found / failures if failures else None,
        failures=failures,
        units=len(judged),
        unscored=sum(m.unscored for m in metrics.values()),
        unread=sum(_unread(j) for j in judged),
        metrics=metrics,
        flags=flags,
    )


def _unread(one: Judged) -> int:
    lost = [s for s in one.verdict.scores.values() if isinstance(s, Unscored)]
    lost += [f.unscored or Unscored("missing") for f in one.verdict.flags.values() if f.value is None]
    return sum(s.reason not in NOT_ASKED for s in lost)


def _metric(judged: Sequence[Judged], name: str, critical: float | None) -> MetricMeasures:
    both: list[tuple[float, float]] = []
    for one in judged:
        wanted, expected = one.item.metrics[name].value, _expected(one, name)
        if wanted is not None and expected is not None:
            both.append((expected, wanted))
    known = [j for j in judged if j.item.metrics[name].status != "unscored"]
    applies = [
        isinstance(j.verdict.scores[name], NotApplicable) == (j.item.metrics[name].status == "na") for j in known
    ]
    failing = [j for j in known if critical is not None and _below(j.item.metrics[name].value, critical)]
    hits = [j for j in failing if critical is not None and _below(_value(j, name), critical)]
    return MetricMeasures(
        icc=icc(both, bootstrap=_NO_INTERVALS).value if both else None,
        mae=mae(make_pairs(*zip(*both, strict=True)), bootstrap=_NO_INTERVALS).value if both else None,
        n=len(both),
        unscored=sum(isinstance(j.verdict.scores[name], Unscored) for j in judged),
        na=_share(applies),
        tail=len(hits) / len(failing) if failing else None,
        failures=len(failing),
    )


def _value(one: Judged, name: str) -> float | None:
    score = one.verdict.scores[name]
    return score.value if isinstance(score, Scored) else None


def _expected(one: Judged, name: str) -> float | None:
    """The mean over the scale given that the metric applies, whatever the judge chose: a judge cannot raise its
    agreement by calling hard items N/A. None where nothing was read."""
    score = one.verdict.scores[name]
    if isinstance(score, Unscored) or score.reading is None:
        return None
    return score.reading.expected


def _below(value: float | None, critical: float) -> bool:
    return value is not None and value < critical


def _flag(judged: Sequence[Judged], name: str) -> FlagMeasures:
    """A flag that the judge could not read has not found anything."""
    known = [(j.verdict.flags[name].value is True, j.item.flags[name].value) for j in judged]
    pairs = [(float(said), float(wanted)) for said, wanted in known if wanted is not None]
    unscored = sum(j.verdict.flags[name].value is None for j in judged)
    if not pairs:
        return FlagMeasures(None, None, None, 0, 0, unscored)
    both = make_pairs(*zip(*pairs, strict=True))
    sure = [
        (p, float(wanted))
        for j in judged
        if (p := j.verdict.flags[name].probability) is not None and (wanted := j.item.flags[name].value) is not None
    ]
    return FlagMeasures(
        icc=icc(sure, bootstrap=_NO_INTERVALS).value if sure else None,
        recall=flag_recall(both, bootstrap=_NO_INTERVALS).value,
        precision=flag_precision(both, bootstrap=_NO_INTERVALS).value,
        n=len(pairs),
        positives=int(sum(wanted for _, wanted in pairs)),
        unscored=unscored,
    )


def _share(hits: Iterable[bool]) -> float | None:
    found = list(hits)
    return sum(found) / len(found) if found else None
