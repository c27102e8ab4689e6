"""Compare two runs of one lane: differences per metric with clustered intervals, and what newly fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .agreement.holm import holm
from .agreement.resample import FEWEST_GROUPS
from .failing_pair import Failing, failing_by, unread_in_both
from .missed import flag_value, flagged_metrics, missed_crises
from .paired_difference import METHOD, Difference, difference, p_fallen
from .pairing import Pair, Paired, other_lines, pair_runs
from .rubric import Metric, Rubric
from .runs import RunView
from .units import Key, Unit, below_critical, coverage
from .verdict import NotApplicable, Score, Scored, is_held_back

COMPOSITE = "composite"
FAILING = "failing"
FORM = "mean of NEW - BASE over pairs scored in both"
FAILING_FORM = "share of failing units in NEW - in BASE, over pairs of which it is known in both"
LEVEL = 0.05  # two runs of the same make are called worse in at most this share of comparisons
TEST = f"a fall beyond the margin (of failing units: a rise), one-sided t, Holm over all tested together, {LEVEL:g}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """NEW against BASE.

    differences         the composite (where the rubric has one) and every metric; above 0 NEW is better
    failing             the share of failing units, 0..1, by what could be scored; above 0 NEW is worse
    newly_failing       pairs that fail in NEW and are not known to fail in BASE
    newly_passing       pairs that fail in BASE and are known not to fail in NEW, by what could be scored in either
    newly_undetermined  pairs that are known not to fail in BASE, and of which it is not known in NEW, by the same
    new_missed          units of NEW with a missed crisis where BASE has none (or has no such unit)
    flags_lost          pairs with a flag set in BASE and not in NEW, by flag
    failing_alone       units only in NEW that fail
    readable_base, readable_new  share of BASE's scores that are scored or N/A, in BASE and in NEW (a unit that NEW
                        lacks counts as unscored); None where BASE has no unit
    remarks             what a reader of the figures must know
    """

    differences: tuple[Difference, ...]
    failing: Difference
    pairs: int
    conversations: int
    only_base: tuple[Key, ...]
    only_new: tuple[Key, ...]
    newly_failing: tuple[Key, ...]
    newly_passing: tuple[Key, ...]
    newly_undetermined: tuple[Key, ...]
    new_missed: tuple[Key, ...]
    flags_lost: Mapping[str, tuple[Key, ...]]
    failing_alone: tuple[Key, ...]
    readable_base: float | None
    readable_new: float | None
    remarks: tuple[str, ...]


def compare(base: RunView, new: RunView) -> Comparison:
    """Compare two runs of one lane. Raises LaneError for unlike lanes, InputError where a run cannot be counted."""
    paired = pair_runs(base, new)
    rubric = base.rubric
    pairs = paired.pairs
    newly_failing = tuple(p.key for p in pairs if p.new.failure and not p.base.failure)
    failing = failing_by(rubric)
    share = _failing_difference(pairs, failing, newly_failing)
    differences = tuple(_differences(rubric, pairs))
    return Comparison(
        differences=differences,
        failing=share,
        pairs=len(pairs),
        conversations=len({p.key[0] for p in pairs}),
        only_base=_keys(paired.only_base),
        only_new=_keys(paired.only_new),
        newly_failing=newly_failing,
        newly_passing=_became(pairs, failing, True, False),
        newly_undetermined=_became(pairs, failing, False, None),
        new_missed=_new_missed(rubric, paired),
        flags_lost={m.flag: lost for m in flagged_metrics(rubric) if m.flag and (lost := _flag_lost(pairs, m.flag))},
        failing_alone=_keys(u for u in paired.only_new if u.failure),
        readable_base=_readable([p.base for p in pairs] + list(paired.only_base), 0),
        readable_new=_readable([p.new for p in pairs], len(paired.only_base) * len(rubric.metrics)),
        remarks=tuple(_remarks(base, new, paired, _few((share, *differences)))),
    )


def worse(comparison: Comparison, margin: float = 0.0) -> list[str]:
    """Why NEW is worse than BASE, a sentence a reason; empty where it is not shown to be.

    A fall of the composite or a metric by more than `margin` (points of the scale) and a rise of the share of failing
    units (whatever the margin) are tested over conversations, all together at 5 %. Below 5 conversations nothing can
    be tested, and every unit that newly falls below a threshold is a reason. A newly missed crisis, fallen coverage
    and nothing to compare are reasons by themselves.
    """
    reasons = list(_newly_below(comparison) if _few(_all(comparison)) else _shown(comparison, margin))
    if not any(d.n for d in comparison.differences):
        reasons.append("nothing could be compared: no unit is scored in both runs")
    if comparison.new_missed:
        reasons.append(f"newly missed crises: {len(comparison.new_missed)}")
    before, after = comparison.readable_base, comparison.readable_new
    if before is not None and after is not None and after < before:
        reasons.append(f"coverage fell: {before:.1%} of BASE's scores could be read, now {after:.1%}")
    return reasons


def comparison_to_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison as strict JSON data."""
    data = asdict(comparison)
    for d in (*data["differences"], data["failing"]):
        d["transitions"] = [{"base": a, "new": b, "n": n} for (a, b), n in d["transitions"].items()]
    return {"form": FORM, "failing_form": FAILING_FORM, "interval": METHOD, "test": TEST, **data}


def _all(comparison: Comparison) -> tuple[Difference, ...]:
    return (comparison.failing, *comparison.differences)


def _few(differences: Iterable[Difference]) -> bool:
    """Whether no quantity comes from enough conversations. One that comes from few where others do not (advice that
    is given in 3 of 200) is left to the share of failing units."""
    return all(d.conversations < FEWEST_GROUPS for d in differences)


def _newly_below(comparison: Comparison) -> Iterable[str]:
    for d in _all(comparison):
        if d.newly_below:
            what = "failing" if d is comparison.failing else "below its threshold"
            yield f"{d.metric}: {len(d.newly_below)} newly {what} (no interval: {d.reason})"


def _shown(comparison: Comparison, margin: float) -> Iterable[str]:
    asked = [(comparison.failing, p_fallen(comparison.failing, rising=True))]
    asked += [(d, p_fallen(d, margin)) for d in comparison.differences]
    tested = [(d, p) for d, p in asked if p is not None]
    adjusted = holm([p for _, p in tested])
    for (d, _), p in zip(tested, adjusted, strict=True):
        if p <= LEVEL:
            yield f"{_change(d, d is comparison.failing, margin)} (p {p:.2g}, adjusted for {len(tested)} tests)"


def _change(d: Difference, failing: bool, margin: float) -> str:
    if failing:
        return f"the share of failing units rose by {d.difference:.1%}, from {d.base:.1%} to {d.new:.1%}"
    beyond = f", which is more than {margin:g}" if margin else ""
    return f"{d.metric} fell by {-(d.difference or 0):.2f}{beyond}"


def _remarks(base: RunView, new: RunView, paired: Paired, few: bool) -> Iterable[str]:
    other = other_lines(base, new, paired.pairs)
    if other:
        yield f"in {len(other)} of {len(paired.pairs)} pairs the person's lines differ, not the replies alone"
    if base.version != new.version:
        yield f"made by different versions of aipsy-judge: {base.version} and {new.version}"
    unread = [unread_in_both(p) for p in paired.pairs]
    names = [m.name for m in base.rubric.metrics if any(m.name in u for u in unread)]
    if names:
        where = f"in {sum(map(bool, unread))} of {len(unread)} pairs {', '.join(names)}"
        yield f"{where} could not be scored in either run: whether a unit fails is told by the rest there"
    if few:
        yield (
            f"fewer than {FEWEST_GROUPS} conversations: nothing can be tested, and any unit that newly falls below a "
            "threshold counts as worse, be it by chance"
        )
    else:
        yield "each interval stands for itself; what is called worse allows for all quantities looked at"


def _differences(rubric: Rubric, pairs: Sequence[Pair]) -> Iterable[Difference]:
    if rubric.composite is not None:
        yield _composite_difference(pairs, rubric.composite.failure_below)
    for metric in rubric.metrics:
        yield _metric_difference(metric, pairs)


def _composite_difference(pairs: Sequence[Pair], threshold: float) -> Difference:
    def low(unit: Unit) -> bool:
        return unit.composite.value is not None and unit.composite.value < threshold

    newly = tuple(p.key for p in pairs if low(p.new) and not low(p.base))
    return difference(COMPOSITE, pairs, lambda _, u: u.composite.value, lambda _, u: _composite_kind(u), newly)


def _metric_difference(metric: Metric, pairs: Sequence[Pair]) -> Difference:
    def value(_: Pair, unit: Unit) -> float | None:
        score = unit.scores[metric.name]
        return score.value if isinstance(score, Scored) else None

    def below(unit: Unit) -> bool:
        return below_critical(metric, unit.scores[metric.name])

    newly = tuple(p.key for p in pairs if below(p.new) and not below(p.base))
    return difference(metric.name, pairs, value, lambda _, u: _kind(u.scores[metric.name]), newly)


def _failing_difference(pairs: Sequence[Pair], failing: Failing, newly_failing: tuple[Key, ...]) -> Difference:
    def value(pair: Pair, unit: Unit) -> float | None:
        found = failing(pair, unit)
        return None if found is None else float(found)

    def kind(pair: Pair, unit: Unit) -> str:
        return "unscored" if failing(pair, unit) is None else "scored"

    return difference(FAILING, pairs, value, kind, newly_failing)


def _composite_kind(unit: Unit) -> str:
    if unit.composite.value is not None:
        return "scored"
    return "unscored" if unit.composite.unscored else "na"


def _kind(score: Score) -> str:
    if isinstance(score, Scored):
        return "scored"
    return "na" if isinstance(score, NotApplicable) else "unscored"


def _became(pairs: Sequence[Pair], failing: Failing, before: bool | None, after: bool | None) -> tuple[Key, ...]:
    return tuple(p.key for p in pairs if failing(p, p.base) is before and failing(p, p.new) is after)


def _new_missed(rubric: Rubric, paired: Paired) -> tuple[Key, ...]:
    """Where the judge is held back from the score, neither run can say whether a crisis was met: a flag that moved by a
    turn is no difference between the bots."""
    before = {m.unit.key for m in missed_crises(rubric, [p.base for p in paired.pairs])}
    now = missed_crises(rubric, [*(p.new for p in paired.pairs), *paired.only_new])
    return tuple(dict.fromkeys(m.unit.key for m in now if not is_held_back(m.score) and m.unit.key not in before))


def _flag_lost(pairs: Sequence[Pair], flag: str) -> tuple[Key, ...]:
    return tuple(p.key for p in pairs if flag_value(p.base, flag) is True and flag_value(p.new, flag) is False)


def _readable(found: Sequence[Unit], missing: int) -> float | None:
    counts = coverage(s for u in found for s in u.scores.values())
    total = counts.total + missing
    return (counts.scored + counts.not_applicable) / total if total else None


def _keys(found: Iterable[Unit]) -> tuple[Key, ...]:
    return tuple(u.key for u in found)
