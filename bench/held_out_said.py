"""What each contestant says of the same I items, as columns; and what they are held against.

Unscored and N/A hold no number: NaN stands in a column so that it cannot pass for one, and never leaves as a figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.answer import NO
from aipsy_judge.ratings import NA, Ratings, reference
from aipsy_judge.ratings.yardstick import inclusion_weights
from aipsy_judge.rubric import Metric, Rubric
from aipsy_judge.verdict import Flag, NotApplicable, Reading, Score, Scored, Unscored, Verdict

from .held_out import HeldItem, Reply

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class MetricSaid:
    """One metric, (I,) each.

    expected  where it is scored, the mean of the distribution over the scale (else the value itself)
    likely    where it is scored, the value that was chosen
    given     the expected value given that the metric applies, also where N/A was said; NaN where nothing was read
    na        said: does not apply
    asked     something was said at all: scored, N/A, or asked and unscored
    p_fail    probability that the metric applies and its value lies below the critical threshold; NaN where none is
              told
    """

    expected: Floats
    likely: Floats
    given: Floats
    na: Bools
    asked: Bools
    p_fail: Floats

    @property
    def unscored(self) -> Bools:
        return self.asked & ~self.na & np.isnan(self.expected)

    def view(self, name: str) -> Floats:
        found: Floats = {"expected": self.expected, "likely": self.likely, "given": self.given}[name]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class FlagSaid:
    """One flag, (I,) each: value 0, 1 or NaN where it could not be read; probability NaN where none is told; asked."""

    value: Floats
    probability: Floats
    asked: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A contestant. `about`: what a reader must know of it; `withheld`: readings that its manifest holds back and that
    are measured all the same; `legal_mass`: metric or flag -> of every reading that tells one."""

    name: str
    about: str
    metrics: Mapping[str, MetricSaid]
    flags: Mapping[str, FlagSaid]
    withheld: int = 0
    legal_mass: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What contestants are held against: metric -> (I,) value and N/A, flag -> (I,) 0, 1 or NaN.

    weights  (I,) how much each item counts, NaN where it is not rated; None: all alike
    """

    name: str
    about: str
    values: Mapping[str, Floats]
    na: Mapping[str, Bools]
    flags: Mapping[str, Floats]
    weights: Floats | None = None


def said_by_judge(
    name: str, about: str, verdicts: Mapping[str, Verdict], items: Sequence[Reply], rubric: Rubric
) -> Said:
    """The columns of a judge's verdicts. What its manifest holds back is measured as it was read: whether to hold it
    back is what these figures are for."""
    read = [read_through(verdicts[i.id], rubric) for i in items]
    withheld = sum(n for _, n in read)
    mass: dict[str, list[float]] = {}
    for verdict, _ in read:
        for metric, score in verdict.scores.items():
            if score.reading is not None and score.reading.legal_mass is not None:
                mass.setdefault(metric, []).append(score.reading.legal_mass)
        for flag, said in verdict.flags.items():
            if said.legal_mass is not None:
                mass.setdefault(flag, []).append(said.legal_mass)
    return Said(
        name,
        about,
        {m.name: _metric([v for v, _ in read], m) for m in rubric.metrics},
        {f.name: _flag([v.flags[f.name] for v, _ in read]) for f in rubric.flags},
        withheld,
        mass,
    )


def read_through(verdict: Verdict, rubric: Rubric) -> tuple[Verdict, int]:
    """The verdict without what a manifest held back, and how many scores and flags that were."""
    flags = {name: _read_flag(flag, rubric, name) for name, flag in verdict.flags.items()}
    scores: dict[str, Score] = {}
    for metric in rubric.metrics:
        score = verdict.scores[metric.name]
        unset = metric.flag is not None and flags[metric.flag].value is False
        scores[metric.name] = NotApplicable(metric.flag) if _is_withheld(score) and unset else _read_score(score)
    count = sum(_is_withheld(s) for s in verdict.scores.values())
    count += sum(f.unscored is not None and _is_withheld(f.unscored) for f in verdict.flags.values())
    return replace(verdict, scores=scores, flags=flags), count


def _is_withheld(score: Score) -> bool:
    return isinstance(score, Unscored) and score.reason == "not_validated"


def _read_score(score: Score) -> Score:
    if not _is_withheld(score) or score.reading is None or not score.reading.distribution:
        return score
    label = max(score.reading.distribution, key=lambda k: score.reading.distribution[k])  # type: ignore[union-attr,index]
    try:
        return Scored(float(label), score.reading)
    except ValueError:
        return NotApplicable(reading=score.reading)


def _read_flag(flag: Flag, rubric: Rubric, name: str) -> Flag:
    if flag.unscored is None or not _is_withheld(flag.unscored) or flag.probability is None or flag.value is not None:
        return flag
    # The greedy choice is not kept; the most probable level is what it comes to but for near ties.
    spec = next(f for f in rubric.flags if f.name == name)
    unset = spec.severity.unset if spec.severity is not None else None
    told = flag.distribution or {}
    label = max(told, key=lambda k: told[k]) if told else None
    value = label not in (unset, NO) if label is not None else flag.probability >= 0.5
    return replace(flag, value=value, unscored=None)


def _metric(read: Sequence[Verdict], metric: Metric) -> MetricSaid:
    scores = [v.scores[metric.name] for v in read]
    likely = np.array([s.value if isinstance(s, Scored) else np.nan for s in scores])
    given = np.array([_expected(s) for s in scores])
    return MetricSaid(
        expected=np.where(np.isnan(likely), np.nan, given),
        likely=likely,
        given=given,
        na=np.array([isinstance(s, NotApplicable) for s in scores]),
        asked=np.ones(len(scores), dtype=bool),
        p_fail=np.array([_p_fail(v, metric) for v in read]),
    )


def _expected(score: Score) -> float:
    """Of what was read; off the contract nothing was."""
    if isinstance(score, Unscored):
        return float("nan")
    reading = score.reading
    if reading is not None and reading.expected is not None:
        return reading.expected
    return score.value if isinstance(score, Scored) else float("nan")


def _p_fail(verdict: Verdict, metric: Metric) -> float:
    """That the metric applies and fails. Of one that hangs on a flag a reading tells it given that the flag is set: it
    counts by the flag's probability, as the reference's failures are among all replies. Where the flag is not set the
    reading is in no verdict, and the verdict says that nothing can fail: 0."""
    score = verdict.scores[metric.name]
    if metric.flag is None:
        return _p_read(score, metric)
    flag = verdict.flags[metric.flag]
    if flag.value is False and isinstance(score, NotApplicable):
        # A judge that tells no probability of the flag tells none of this either; 0 would rank it.
        return float("nan") if flag.probability is None or metric.critical is None else 0.0
    found = _p_read(score, metric)
    return found if flag.probability is None else flag.probability * found


def _p_read(score: Score, metric: Metric) -> float:
    if isinstance(score, Unscored) or score.reading is None:
        return float("nan")
    return p_below(score.reading, metric)


def p_below(reading: Reading, metric: Metric) -> float:
    """Probability of the values below the critical threshold, as reservations.unsure takes it (of a metric that hangs
    on a flag: given that it is set); NaN where none."""
    if metric.critical is None or not reading.distribution:
        return float("nan")
    low = {str(v) for v in metric.scale.values if v < metric.critical}
    return float(sum(p for label, p in reading.distribution.items() if label in low))


def _flag(flags: Sequence[Flag]) -> FlagSaid:
    return FlagSaid(
        np.array([np.nan if f.value is None else float(f.value) for f in flags]),
        np.array([np.nan if f.probability is None or _lost(f) else f.probability for f in flags]),
        np.ones(len(flags), dtype=bool),
    )


def _lost(flag: Flag) -> bool:
    return flag.value is None


def said_by_rater(ratings: Ratings, rater: str, about: str, items: Sequence[Reply], rubric: Rubric) -> Said:
    """The columns of one rater of the table."""
    metrics = {}
    for metric in rubric.metrics:
        value, na, asked = _rated(ratings, metric.name, rater, items)
        metrics[metric.name] = MetricSaid(value, value, value, na, asked, np.full(len(items), np.nan))
    flags = {}
    for flag in rubric.flags:
        value, _, asked = _rated(ratings, flag.name, rater, items)
        flags[flag.name] = FlagSaid(value, np.full(len(items), np.nan), asked)
    return Said(rater, about, metrics, flags)


def _rated(ratings: Ratings, metric: str, rater: str, items: Sequence[Reply]) -> tuple[Floats, Bools, Bools]:
    value, na = np.full(len(items), np.nan), np.zeros(len(items), dtype=bool)
    asked = np.zeros(len(items), dtype=bool)
    if metric not in ratings.metrics:
        return value, na, asked
    rows = (ratings.rater.codes == ratings.raters.index(rater)) & (
        ratings.metric.codes == ratings.metrics.index(metric)
    )
    by_item = {ratings.items[ratings.item.codes[n]]: n for n in np.flatnonzero(rows)}
    for place, item in enumerate(items):
        row = by_item.get(item.id)
        if row is not None:
            value[place], na[place], asked[place] = ratings.score[row], ratings.status[row] == NA, True
    return value, na, asked


def held_by_target(items: Sequence[HeldItem], rubric: Rubric, about: str) -> Held:
    """The recipe's target."""
    cells = {m: [i.target.metrics[m] for i in items] for m in rubric.metric_names}
    flags = {f.name: [i.target.flags[f.name].value for i in items] for f in rubric.flags}
    return Held(
        "target",
        about,
        {m: np.array([np.nan if c.value is None else c.value for c in of]) for m, of in cells.items()},
        {m: np.array([c.status == "na" for c in of]) for m, of in cells.items()},
        {f: np.array([np.nan if v is None else float(v) for v in of]) for f, of in flags.items()},
    )


def held_by_raters(
    ratings: Ratings, raters: Sequence[str], items: Sequence[Reply], rubric: Rubric, name: str, about: str
) -> Held | None:
    """The raters' reference (ratings.reference); items drawn with known probabilities count by their inverse. None
    where they rated none of these items."""
    place = {item: n for n, item in enumerate(ratings.items)}
    index = np.array([place[i.id] for i in items])
    values, na, flags = {}, {}, {}
    for metric in [*rubric.metric_names, *(f.name for f in rubric.flags)]:
        if metric not in ratings.metrics:
            found, says_na = np.full(len(items), np.nan), np.zeros(len(items), dtype=bool)
        else:
            held = reference(ratings, metric, raters)
            found, says_na = held.values[index], held.na[index]
        if metric in rubric.metric_names:
            values[metric], na[metric] = found, says_na
        else:
            flags[metric] = found
    rated = np.any([~np.isnan(v) for v in (*values.values(), *flags.values())] + list(na.values()), axis=0)
    if not rated.any():
        return None
    weights = inclusion_weights(ratings, index[rated])
    wide = None
    if weights is not None:
        wide = np.full(len(items), np.nan)
        wide[rated] = weights
    return Held(name, about, values, na, flags, wide)
