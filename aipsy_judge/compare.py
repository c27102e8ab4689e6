"""Compare two runs of one lane: differences per metric with clustered intervals, and what newly fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .epm.bootstrap import RESAMPLES, SEED, interval, resampled_means
from .missed import flag_value, flagged_metrics, missed_crises
from .pairing import Pair, Paired, other_lines, pair_runs
from .rubric import Metric, Rubric
from .runs import RunView
from .units import Key, Unit, below_critical, coverage
from .verdict import NotApplicable, Score, Scored

COMPOSITE = "composite"
FORM = "mean of NEW - BASE over pairs scored in both"
METHOD = f"percentile bootstrap over conversations, 95 %, {RESAMPLES:,} resamples, seed {SEED}"
FEW_CONVERSATIONS = 10  # below, the percentile interval is noticeably too narrow

Kinds = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric (or the composite), NEW against BASE, in points of the scale; above 0 NEW is better.

    base, new, difference  means over the n pairs that are scored in both; None for no such pair
    low, high              interval of the difference by resampling whole conversations; None with a `reason`
    n, conversations       pairs, and the conversations they come from
    newly_below            pairs that fell below the metric's critical threshold (the composite's: newly failing)
    transitions            pairs by what they were and became, e.g. {("scored", "unscored"): 2}
    """

    metric: str
    base: float | None
    new: float | None
    difference: float | None
    low: float | None
    high: float | None
    reason: str | None
    n: int
    conversations: int
    newly_below: tuple[Key, ...]
    transitions: Mapping[Kinds, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """NEW against BASE.

    newly_failing       pairs that fail in NEW and are not known to fail in BASE
    newly_passing       pairs that fail in BASE and are known not to fail in NEW
    newly_undetermined  pairs that are known not to fail in BASE, and of which it is not known in NEW
    new_missed          units of NEW with a missed crisis where BASE has none (or has no such unit)
    flags_lost          pairs with a flag set in BASE and not in NEW, by flag
    failing_alone       units only in NEW that fail
    readable_base, readable_new  share of BASE's scores that are scored or N/A, in BASE and in NEW (a unit that NEW
                        lacks counts as unscored); None where BASE has no unit
    remarks             what a reader of the figures must know
    """

    differences: tuple[Difference, ...]
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
    differences = tuple(_differences(rubric, pairs, newly_failing))
    return Comparison(
        differences=differences,
        pairs=len(pairs),
        conversations=len({p.key[0] for p in pairs}),
        only_base=_keys(paired.only_base),
        only_new=_keys(paired.only_new),
        newly_failing=newly_failing,
        newly_passing=_became(pairs, True, False),
        newly_undetermined=_became(pairs, False, None),
        new_missed=_new_missed(rubric, paired),
        flags_lost={m.flag: lost for m in flagged_metrics(rubric) if m.flag and (lost := _flag_lost(pairs, m.flag))},
        failing_alone=_keys(u for u in paired.only_new if u.failure),
        readable_base=_readable([p.base for p in pairs] + list(paired.only_base), 0),
        readable_new=_readable([p.new for p in pairs], len(paired.only_base) * len(rubric.metrics)),
        remarks=tuple(_remarks(base, new, paired, differences)),
    )


def worse(comparison: Comparison, margin: float = 0.0) -> list[str]:
    """Why NEW is worse than BASE, a sentence a reason; empty where it is not shown to be.

    A difference counts where its whole interval lies below -margin (points of the scale). Where no interval can be
    had, pairs that newly fall below a threshold decide. Nothing to compare is a reason too.
    """
    reasons = [_worse_metric(d, margin) for d in comparison.differences]
    if not any(d.n for d in comparison.differences):
        reasons.append("nothing could be compared: no unit is scored in both runs")
    if comparison.new_missed:
        reasons.append(f"newly missed crises: {len(comparison.new_missed)}")
    before, after = comparison.readable_base, comparison.readable_new
    if before is not None and after is not None and after < before:
        reasons.append(f"coverage fell: {before:.1%} of BASE's scores could be read, now {after:.1%}")
    return [r for r in reasons if r is not None]


def comparison_to_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison as strict JSON data."""
    data = asdict(comparison)
    for d in data["differences"]:
        d["transitions"] = [{"base": a, "new": b, "n": n} for (a, b), n in d["transitions"].items()]
    return {"form": FORM, "interval": METHOD, **data}


def _worse_metric(d: Difference, margin: float) -> str | None:
    if d.high is not None and d.high < -margin:
        beyond = f"-{margin:g}" if margin else "0"
        return (
            f"{d.metric} fell by {-(d.difference or 0):.2f}: its interval [{d.low:.2f}, {d.high:.2f}] is below {beyond}"
        )
    if d.high is None and d.newly_below:
        what = "failing" if d.metric == COMPOSITE else "below the critical threshold"
        return f"{d.metric}: {len(d.newly_below)} newly {what} (no interval: {d.reason})"
    return None


def _remarks(base: RunView, new: RunView, paired: Paired, differences: Sequence[Difference]) -> Iterable[str]:
    other = other_lines(base, new, paired.pairs)
    if other:
        yield f"in {len(other)} of {len(paired.pairs)} pairs the person's lines differ, not the replies alone"
    if base.version != new.version:
        yield f"made by different versions of aipsy-judge: {base.version} and {new.version}"
    few = [d.metric for d in differences if d.low is not None and d.conversations < FEW_CONVERSATIONS]
    if few:
        yield f"fewer than {FEW_CONVERSATIONS} conversations, so the interval is too narrow: {', '.join(few)}"
    if len(differences) > 1:
        yield f"{len(differences)} differences are looked at, and no interval is widened for that"


def _differences(rubric: Rubric, pairs: Sequence[Pair], newly_failing: tuple[Key, ...]) -> Iterable[Difference]:
    if rubric.composite is not None:
        yield _difference(COMPOSITE, pairs, _composite_value, _composite_kind, newly_failing)
    for metric in rubric.metrics:
        yield _metric_difference(metric, pairs)


def _metric_difference(metric: Metric, pairs: Sequence[Pair]) -> Difference:
    def value(unit: Unit) -> float | None:
        score = unit.scores[metric.name]
        return score.value if isinstance(score, Scored) else None

    def below(unit: Unit) -> bool:
        return below_critical(metric, unit.scores[metric.name])

    newly = tuple(p.key for p in pairs if below(p.new) and not below(p.base))
    return _difference(metric.name, pairs, value, lambda unit: _kind(unit.scores[metric.name]), newly)


def _difference(
    name: str,
    pairs: Sequence[Pair],
    value: Callable[[Unit], float | None],
    kind: Callable[[Unit], str],
    newly_below: tuple[Key, ...],
) -> Difference:
    both = [(p.key[0], a, b) for p in pairs if (a := value(p.base)) is not None and (b := value(p.new)) is not None]
    groups = [g for g, _, _ in both]
    gaps = np.array([b - a for _, a, b in both])
    low, high, reason = _interval(gaps, groups)
    return Difference(
        metric=name,
        base=float(np.mean([a for _, a, _ in both])) if both else None,
        new=float(np.mean([b for _, _, b in both])) if both else None,
        difference=float(gaps.mean()) if both else None,
        low=low,
        high=high,
        reason=reason,
        n=len(both),
        conversations=len(set(groups)),
        newly_below=newly_below,
        transitions=dict(sorted(Counter((kind(p.base), kind(p.new)) for p in pairs).items())),
    )


def _interval(gaps: np.ndarray, groups: Sequence[str]) -> tuple[float | None, float | None, str | None]:
    n = len(set(groups))
    if n == 0:
        return None, None, "no pair is scored in both"
    if n == 1:
        return None, None, "one conversation: resampling conversations cannot tell"
    low, high = interval(resampled_means(gaps[:, None], groups))[:, 0]
    return float(low), float(high), None


def _composite_value(unit: Unit) -> float | None:
    return unit.composite.value


def _composite_kind(unit: Unit) -> str:
    if unit.composite.value is not None:
        return "scored"
    return "unscored" if unit.composite.unscored else "na"


def _kind(score: Score) -> str:
    if isinstance(score, Scored):
        return "scored"
    return "na" if isinstance(score, NotApplicable) else "unscored"


def _became(pairs: Sequence[Pair], before: bool | None, after: bool | None) -> tuple[Key, ...]:
    return tuple(p.key for p in pairs if p.base.failure is before and p.new.failure is after)


def _new_missed(rubric: Rubric, paired: Paired) -> tuple[Key, ...]:
    before = {m.unit.key for m in missed_crises(rubric, [p.base for p in paired.pairs])}
    now = missed_crises(rubric, [*(p.new for p in paired.pairs), *paired.only_new])
    return tuple(dict.fromkeys(m.unit.key for m in now if m.unit.key not in before))


def _flag_lost(pairs: Sequence[Pair], flag: str) -> tuple[Key, ...]:
    return tuple(p.key for p in pairs if flag_value(p.base, flag) is True and flag_value(p.new, flag) is False)


def _readable(found: Sequence[Unit], missing: int) -> float | None:
    counts = coverage(s for u in found for s in u.scores.values())
    total = counts.total + missing
    return (counts.scored + counts.not_applicable) / total if total else None


def _keys(found: Iterable[Unit]) -> tuple[Key, ...]:
    return tuple(u.key for u in found)
