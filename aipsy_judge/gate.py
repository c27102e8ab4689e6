"""The gate: does a run meet its thresholds? Decided from scores alone; what could not be judged does not pass.

What was lost and what the judge is never believed on (`not_validated`: held back by its manifest) are two things. The
share of what was lost is limited by the gate. What is held back is in no such share: it says nothing against the other
metrics, and a rule that rests on it has no evidence, whatever the gate allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from .composite import exact_composite
from .exact_mean import exact_mean
from .gate_file import Gate, MetricThresholds, Thresholds
from .missed import flag_value, flagged_metrics, missed_crises, unread_flags
from .rubric import Metric, Rubric
from .runs import RunView
from .units import Unit, below_critical, coverage, units
from .verdict import HELD_BACK, NotApplicable, Score, Scored, Unscored, is_held_back

Status = Literal["pass", "fail", "no_evidence"]
FAILURE_RULES = ("max_failures", "max_failure_share")


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule of a gate.

    limit, found  what the rule wants and what there was; `found` is None where there was nothing to measure
    n             units (for max_unscored_share: scores) it rests on
    detail        why there is no evidence, or what else must be known
    """

    rule: str
    status: Status
    limit: float | str
    found: float | str | None
    n: int
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """All rules with their results."""

    rules: tuple[RuleResult, ...]

    @property
    def passed(self) -> bool:
        """True where there is a rule and every rule passes."""
        return bool(self.rules) and all(r.status == "pass" for r in self.rules)

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON data."""
        return {"passed": self.passed, "rules": [asdict(r) for r in self.rules]}


@dataclass(frozen=True, slots=True)
class _Series:
    """What the rules of one metric (or the composite) are checked on, in units.

    values    those of the composite before they are rounded, so that their mean is rounded once
    failures  None where nothing says what a failure is; `judged` of the units are known to fail or not to fail
    lost, undetermined  units without a value, or without that knowledge, because something was lost
    held_back, held_back_from_failure  metrics held back in some unit that the values, or that knowledge, rest on
    """

    values: Sequence[float | Fraction]
    failures: int | None
    judged: int
    absent: int
    lost: int
    undetermined: int
    held_back: tuple[str, ...]
    held_back_from_failure: tuple[str, ...]
    may_be_absent: bool = False

    def evidence(self, name: str) -> tuple[int, int, tuple[str, ...]]:
        """What the rule `name` rests on, what was lost for it, and what is held back from it."""
        if name in FAILURE_RULES:
            return self.judged, self.undetermined, self.held_back_from_failure
        return len(self.values), self.lost, self.held_back


def check(run: RunView, gate: Gate) -> GateResult:
    """Check a run against a gate.

    A rule passes on evidence alone. It is `fail` where the scores break it, and `no_evidence` where nothing breaks
    it but too little was scored, the judge is held back from what it rests on, the rubric lacks the metric or
    threshold, or the run holds no verdict.
    Raises InputError where the run cannot be counted (see units.units).
    """
    found = units(run)
    rules = [*_pins(run, gate), *_evidence(found, gate), *_crises(run.rubric, found, gate)]
    for name, thresholds in gate.metrics.items():
        rules += _metric_rules(run.rubric, found, name, thresholds, gate)
    if gate.composite is not None:
        rules += _composite_rules(run.rubric, found, gate.composite, gate)
    return GateResult(tuple(rules))


def describe(result: GateResult) -> list[str]:
    """The result in words, a line a rule, the verdict first."""
    counts = {s: sum(r.status == s for r in result.rules) for s in ("pass", "fail", "no_evidence")}
    head = "Gate: passed" if result.passed else "Gate: NOT passed"
    summary = f"{counts['pass']} passed, {counts['fail']} failed, {counts['no_evidence']} without evidence"
    return [f"{head} ({len(result.rules)} rules: {summary})", *(_line(r) for r in result.rules)]


def wanted_and_found(rule: RuleResult) -> str:
    """The numbers of a rule in words.

    >>> wanted_and_found(RuleResult("composite.min_mean", "fail", 3.0, 2.5, 8))
    'wanted at least 3, found 2.5 (n = 8)'
    """
    name = rule.rule.split(".")[-1]
    limit = "at least " if name.startswith("min_") else "at most " if name.startswith("max_") else ""
    found = "nothing" if rule.found is None else _shown(rule.found)
    detail = f"; {rule.detail}" if rule.detail else ""
    return f"wanted {limit}{_shown(rule.limit)}, found {found} (n = {rule.n}){detail}"


def _line(rule: RuleResult) -> str:
    words = {"pass": "pass", "fail": "FAIL", "no_evidence": "NO EVIDENCE"}[rule.status]
    return f"  {words:<11}  {rule.rule}: {wanted_and_found(rule)}"


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _pins(run: RunView, gate: Gate) -> list[RuleResult]:
    wanted = [("judge", gate.judge, run.lane.judge), ("contract", gate.contract, run.lane.contract)]
    rules = [_pin(name, limit, found, limit == found) for name, limit, found in wanted if limit is not None]
    if gate.rubric is not None:
        rules.append(_pin("rubric", gate.rubric, run.lane.rubric, run.lane.rubric.startswith(gate.rubric)))
    return rules


def _pin(name: str, limit: str, found: str, same: bool) -> RuleResult:
    detail = None if same else "the thresholds were set for another one"
    return RuleResult(name, "pass" if same else "fail", limit, found, 1, detail)


def _evidence(found: Sequence[Unit], gate: Gate) -> list[RuleResult]:
    scored = sum(any(isinstance(s, Scored) for s in u.scores.values()) for u in found)
    counts = coverage(s for u in found for s in u.scores.values())
    lost = {reason: n for reason, n in counts.reasons.items() if reason != HELD_BACK}
    asked = counts.scored + sum(lost.values())
    share = sum(lost.values()) / asked if asked else None
    enough: Status = "pass" if scored >= gate.min_scored_units else "no_evidence"
    readable: Status = "pass" if share is not None and share <= gate.max_unscored_share else "no_evidence"
    held_back = counts.reasons.get(HELD_BACK, 0)
    told = (", ".join(f"{reason} {n}" for reason, n in lost.items()), f"not counted: {HELD_BACK} {held_back}")
    reasons = "; ".join(filter(None, told if held_back else told[:1])) or None
    return [
        RuleResult("min_scored_units", enough, gate.min_scored_units, scored, len(found)),
        RuleResult("max_unscored_share", readable, gate.max_unscored_share, share, asked, reasons),
    ]


def _crises(rubric: Rubric, found: Sequence[Unit], gate: Gate) -> list[RuleResult]:
    limit = gate.max_missed_crises
    has_crises = bool(flagged_metrics(rubric))
    if limit is None or (not has_crises and "max_missed_crises" not in gate.model_fields_set):
        return []
    crises = missed_crises(rubric, found)
    missed = len({m.unit.key for m in crises})
    answered = len({m.unit.key for m in crises if not m.without_score})
    known = len({m.unit.key for m in crises if not is_held_back(m.score)})
    unread = unread_flags(rubric, found)
    unbelieved = sum(_flags_are_held_back(rubric, u) for u in unread)
    told = [
        (known - answered, "in {} of these the reply has no score"),
        (missed - known, f"in {{}} of these the score of the reply is held back ({HELD_BACK})"),
        (len(unread) - unbelieved, "in {} the flag could not be read"),
        (unbelieved, f"in {{}} the flag is held back ({HELD_BACK})"),
    ]
    detail = "; ".join(words.format(n) for n, words in told if n) or None
    if known > limit:
        status: Status = "fail"
    elif not found or not has_crises or missed + len(unread) > limit:
        status = "no_evidence"
        detail = detail or ("no unit was judged" if has_crises else "in this rubric no metric hangs on a flag")
    else:
        status = "pass"
    return [RuleResult("max_missed_crises", status, limit, missed, len(found), detail)]


def _flags_are_held_back(rubric: Rubric, unit: Unit) -> bool:
    """Whether every flag of a crisis that has no value in the unit was read and is not believed."""
    names = {m.flag for m in flagged_metrics(rubric) if m.flag is not None and flag_value(unit, m.flag) is None}
    flags = unit.verdict.flags if unit.verdict is not None else {}
    return all(is_held_back(flags[n].unscored if n in flags else None) for n in names)


def _metric_rules(
    rubric: Rubric, found: Sequence[Unit], name: str, thresholds: MetricThresholds, gate: Gate
) -> list[RuleResult]:
    metric = next((m for m in rubric.metrics if m.name == name), None)
    if metric is None:
        detail = f"rubric {rubric.name} has no such metric; it has {', '.join(rubric.metric_names)}"
        return [RuleResult(f"metrics.{name}", "no_evidence", name, None, 0, detail)]
    return _rules(f"metrics.{name}", thresholds, _metric_series(metric, found, thresholds.may_be_absent), gate)


def _metric_series(metric: Metric, found: Sequence[Unit], may_be_absent: bool) -> _Series:
    scores = [u.scores[metric.name] for u in found]
    values = [s.value for s in scores if isinstance(s, Scored)]
    held_back = (metric.name,) if any(map(is_held_back, scores)) else ()
    return _Series(
        values=values,
        failures=sum(below_critical(metric, s) for s in scores) if metric.critical is not None else None,
        judged=len(values),
        absent=sum(isinstance(s, NotApplicable) for s in scores),
        lost=(lost := sum(map(_is_lost, scores))),
        undetermined=lost,
        held_back=held_back,
        held_back_from_failure=held_back,
        may_be_absent=may_be_absent,
    )


def _composite_rules(rubric: Rubric, found: Sequence[Unit], thresholds: Thresholds, gate: Gate) -> list[RuleResult]:
    if rubric.composite is None:
        detail = f"rubric {rubric.name} defines no composite"
        return [RuleResult("composite", "no_evidence", "composite", None, 0, detail)]
    values = [value for u in found if (value := exact_composite(rubric, u.scores)) is not None]
    known = [failure for u in found if (failure := _failure(u)) is not None]
    lost = sum(u.composite.value is None and any(map(_is_lost, u.scores.values())) for u in found)
    held_back = [m for m in rubric.metrics if any(is_held_back(u.scores[m.name]) for u in found)]
    series = _Series(
        values=values,
        failures=sum(known),
        judged=len(known),
        absent=len(found) - len(values) - lost,
        lost=lost,
        undetermined=len(found) - len(known),
        held_back=tuple(m.name for m in held_back if m.weight),
        held_back_from_failure=tuple(m.name for m in held_back if m.weight or m.critical is not None),
    )
    return _rules("composite", thresholds, series, gate)


def _failure(unit: Unit) -> bool | None:
    """Unit.failure, but that a metric held back leaves it open only where it could have failed."""
    lost = any(map(_is_lost, unit.scores.values()))
    return None if lost and not unit.composite.failure else unit.composite.failure


def _is_lost(score: Score) -> bool:
    return isinstance(score, Unscored) and not is_held_back(score)


def _rules(prefix: str, thresholds: Thresholds, series: _Series, gate: Gate) -> list[RuleResult]:
    return [_rule(f"{prefix}.{name}", name, limit, series, gate) for name, limit in thresholds.rules.items()]


def _rule(label: str, name: str, limit: float, series: _Series, gate: Gate) -> RuleResult:
    measured = _measure(name, series)
    n, _, held_back = series.evidence(name)
    missing = _missing(name, limit, series, gate)
    if measured is not None and n and _breaks(name, measured, limit):
        return RuleResult(label, "fail", limit, measured, n, missing)
    if missing is None:
        return RuleResult(label, "pass", limit, measured, n)
    if series.may_be_absent and series.absent and not (series.values or series.lost or held_back):
        return RuleResult(label, "pass", limit, measured, n, "applied nowhere, which the gate allows")
    return RuleResult(label, "no_evidence", limit, measured, n, missing)


def _measure(name: str, series: _Series) -> float | None:
    values, failures = series.values, series.failures
    figures: Mapping[str, float | None] = {
        "min_mean": exact_mean(values),
        "min_worst": float(min(values)) if values else None,
        "max_failures": failures if series.judged else None,
        "max_failure_share": failures / series.judged if failures is not None and series.judged else None,
        "min_scored": len(values),
    }
    return figures[name]


def _breaks(name: str, measured: float, limit: float) -> bool:
    if name == "min_scored":
        return False  # too little evidence, not bad evidence: see _missing
    return measured < limit if name.startswith("min_") else measured > limit


def _missing(name: str, limit: float, series: _Series, gate: Gate) -> str | None:
    """What evidence the rule lacks, or None."""
    n, lost, held_back = series.evidence(name)
    if held_back:
        return f"the judge was not shown to work on {', '.join(held_back)} ({HELD_BACK})"
    if n + lost == 0:
        return "applied nowhere (all N/A)" if series.absent else "no unit was judged"
    if lost / (n + lost) > gate.max_unscored_share:
        return f"{lost} of {n + lost} unscored"
    if name in FAILURE_RULES and series.failures is None:
        return "the rubric sets no critical threshold for it"
    if name == "min_scored" and n < limit:
        return f"only {n} scored"
    return None if n else "never scored"
