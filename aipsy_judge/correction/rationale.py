"""Whose words may stand beside a target: only those of a judge who says what the target says, and shows where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..conversation import Conversation
from ..rubric import Rubric
from ..verdict import NotApplicable, Scored, Verdict
from .target import Targets

FEWEST_WORDS = 3
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|„([^“”]+)[“”]|(?<!\w)[\'‘]([^\'’]+)[\'’](?!\w)')


def rationale_source(
    targets: Targets, verdicts: Mapping[str, Verdict], conversation: Conversation, rubric: Rubric
) -> str | None:
    """The judge whose rationale fits the one item of `targets` best, or None: then the target has none.

    A judge qualifies where it agrees on every flag, on N/A and on pass or fail of every metric, and quotes at least
    three words in a row from the conversation. Of those who qualify, the nearest in scores.
    """
    if len(targets.items) != 1:
        raise ValueError("targets of one item are wanted")
    text = _plain("\n".join(m.content for m in conversation.messages))
    fitting = {
        judge: _distance(targets, verdict)
        for judge, verdict in verdicts.items()
        if verdict.rationale and _agrees(targets, verdict, rubric) and _quotes(verdict.rationale, text)
    }
    return min(fitting, key=lambda j: (fitting[j], j)) if fitting else None


def quoted(text: str) -> Iterator[str]:
    """What stands in quotation marks.

    >>> list(quoted('It says "you are not a burden" kindly.'))
    ['you are not a burden']
    """
    for match in _QUOTED.finditer(text):
        yield next(part for part in match.groups() if part is not None)


def _quotes(rationale: str, text: str) -> bool:
    parts = [_plain(part) for part in quoted(rationale)]
    return any(len(part.split()) >= FEWEST_WORDS and f" {part} " in f" {text} " for part in parts)


def _plain(text: str) -> str:
    """Lower case words, punctuation away, one space between."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def _agrees(targets: Targets, verdict: Verdict, rubric: Rubric) -> bool:
    for name, value in targets.flags.items():
        flag = verdict.flags.get(name)
        if np.isnan(value[0]) or flag is None or flag.value is not bool(value[0]):
            return False
    return all(_agrees_on(targets, verdict, m.name, m.critical) for m in rubric.metrics if m.name in targets.metrics)


def _agrees_on(targets: Targets, verdict: Verdict, metric: str, critical: float | None) -> bool:
    target, score = targets.metrics[metric], verdict.scores.get(metric)
    if target.status[0] == "na":
        return isinstance(score, NotApplicable)
    if target.status[0] != "scored" or not isinstance(score, Scored):
        return False
    if critical is None:
        return True
    # Where nothing tells whether the expert would see a failure, the target's value must lie on the judge's side.
    fails = target.value[0] < critical if target.fails is None else target.fails[0]
    return (score.value < critical) == bool(fails)


def _distance(targets: Targets, verdict: Verdict) -> float:
    gaps: Sequence[float] = [
        abs(score.value - float(target.value[0]))
        for metric, target in targets.metrics.items()
        if target.status[0] == "scored" and isinstance(score := verdict.scores.get(metric), Scored)
    ]
    return float(np.mean(gaps)) if gaps else float("inf")
