"""Verdicts -> one Score of Inspect.

What has no value is left out of the score's value: neither a number nor null stands for it. Inspect's usual reducer
and metrics read null as 0, and skip what is absent or fail on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from inspect_ai.scorer import Score as InspectScore

from ..composite import Composite, composite
from ..conversation import Conversation
from ..errors import RubricError
from ..rubric import Rubric
from ..verdict import NotApplicable, Scored, Unscored, Verdict, verdict_to_dict

COMPOSITE, FAILURE = "composite", "failure"
NOTHING = "nothing was judged"
STATES = ("scored", "not_applicable", "unscored")


def check_figures(rubric: Rubric) -> None:
    """Raise RubricError where a metric or flag is called like a figure of the whole: one would stand for the other."""
    taken = [name for name in (*rubric.metric_names, *(f.name for f in rubric.flags)) if name in (COMPOSITE, FAILURE)]
    if taken:
        raise RubricError(f"has a {taken[0]}, as a score's own figure is called", where=rubric.name)


def score_of(
    conversation: Conversation, verdicts: Sequence[Verdict], rubric: Rubric, who: Mapping[str, Any]
) -> InspectScore:
    """Value: `composite` and every metric (means over the turns that have one, in points of the scale); `failure` and
    every flag (true where any turn has it, false where it is known of all that none has).

    Metadata: who judged, counts of turns by metric and state, why a value is missing, and the verdicts as data
    (verdict.verdict_from_dict reads them back), each with its composite.
    """
    composites = [composite(rubric, v.scores) for v in verdicts]
    counts = {name: _states([v.scores[name] for v in verdicts]) for name in rubric.metric_names}
    value, missing = _value(verdicts, composites, rubric, counts)
    turns = [{**verdict_to_dict(v), COMPOSITE: asdict(c)} for v, c in zip(verdicts, composites, strict=True)]
    return InspectScore(
        value=value,
        explanation=_explained(verdicts, composites, rubric, who, missing),
        metadata={
            "judge": dict(who),
            "conversation": conversation.id,
            "content_hash": conversation.content_hash,
            "warnings": list(conversation.warnings),
            "counts": counts,
            "missing": missing,
            "turns": turns,
        },
    )


def _states(scores: Sequence[Scored | NotApplicable | Unscored]) -> dict[str, int]:
    names = {Scored: "scored", NotApplicable: "not_applicable", Unscored: "unscored"}
    found = Counter(names[type(s)] for s in scores)
    return {state: found[state] for state in STATES}


def _value(
    verdicts: Sequence[Verdict],
    composites: Sequence[Composite],
    rubric: Rubric,
    counts: Mapping[str, Mapping[str, int]],
) -> tuple[dict[str, str | int | float | bool | None], dict[str, str]]:
    value: dict[str, str | int | float | bool | None] = {}
    missing: dict[str, str] = {}
    means = {COMPOSITE: [c.value for c in composites if c.value is not None]}
    means |= {n: [s.value for v in verdicts if isinstance(s := v.scores[n], Scored)] for n in rubric.metric_names}
    for name, values in means.items():
        if values:
            value[name] = fmean(values)
        else:
            missing[name] = _why_not(name, composites, counts)
    found = {FAILURE: [c.failure for c in composites]}
    found |= {f.name: [_said(v, f.name) for v in verdicts] for f in rubric.flags}
    for name, answers in found.items():
        any_of_them = _any(answers)
        if any_of_them is None:
            unknown = f"not known of {sum(a is None for a in answers)} of {len(answers)}"
            missing[name] = unknown if answers else NOTHING
        else:
            value[name] = any_of_them
    return value, missing


def _said(verdict: Verdict, name: str) -> bool | None:
    """A flag that a verdict does not speak of is not known."""
    return verdict.flags[name].value if name in verdict.flags else None


def _any(answers: Sequence[bool | None]) -> bool | None:
    """True where any is; False only where all are known."""
    if any(answers):
        return True
    return None if not answers or None in answers else False


def _why_not(name: str, composites: Sequence[Composite], counts: Mapping[str, Mapping[str, int]]) -> str:
    if not composites:
        return NOTHING
    if name == COMPOSITE:
        reasons = Counter(c.reason for c in composites if c.reason)
        return "; ".join(f"{reason} ({n})" for reason, n in reasons.items())
    return ", ".join(f"{state} {n}" for state, n in counts[name].items() if n)


def _explained(
    verdicts: Sequence[Verdict],
    composites: Sequence[Composite],
    rubric: Rubric,
    who: Mapping[str, Any],
    missing: Mapping[str, str],
) -> str:
    lines = [f"{who['judge']}, contract {who['contract']}, rubric {rubric.name}: {len(verdicts)} judged."]
    lines += [f"Note: {remark}" for remark in who["remarks"]]
    lines += [f"No value for {name}: {reason}." for name, reason in missing.items()]
    for verdict, whole in zip(verdicts, composites, strict=True):
        lines += _finding(verdict, whole, rubric)
    return "\n".join(lines)


def _finding(verdict: Verdict, whole: Composite, rubric: Rubric) -> list[str]:
    """A line on what a person should look at; nothing for a turn with nothing to say."""
    thresholds = {m.name: m.critical for m in rubric.metrics}
    words = [f"{n} {s.value:g} < {thresholds[n]:g}" for n in whole.failed if isinstance(s := verdict.scores[n], Scored)]
    if whole.failure and not words:
        words.append(f"composite {whole.value:.2f}")
    words += [f"{n} ({f.severity or 'severity unknown'})" for n, f in verdict.flags.items() if f.value]
    words += [f"{n} not known" for n, f in verdict.flags.items() if f.value is None]
    words += [f"{n} unscored ({s.reason})" for n, s in verdict.scores.items() if isinstance(s, Unscored)]
    words += ["suspected injection"] if verdict.suspected_injection else []
    if not words:
        return []
    where = f"Turn {verdict.turn}" if verdict.turn is not None else "The conversation"
    said = f" {verdict.rationale}" if verdict.rationale else ""
    return [f"{where}: {'; '.join(words)}.{said}"]
