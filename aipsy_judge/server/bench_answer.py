"""A verdict in the benchmark's own layout: a bare object, real booleans, the reasoning last.

What the verdict does not hold whole is refused: the client keeps a 200 for a week, and counts no failure in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..bench_contract import misfit
from ..reply.aside import said_aside
from ..rubric import Rubric
from ..runs_key import RETRYABLE
from ..strict_json import dumps
from ..verdict import Flag, NotApplicable, Score, Scored, Unscored, Verdict
from .naming import stamp
from .refusal import RETRY_SECONDS, Refusal

FLAG, SEVERITY = "crisis_detected", "crisis_severity"


def check_can_answer(rubric: Rubric, not_validated: Mapping[str, str]) -> None:
    """Raise Refusal(409) where no verdict of this rubric can ever be said in the benchmark's layout."""
    fault = misfit(rubric)
    if fault is not None:
        raise Refusal(409, f"The benchmark asks for six metrics, 0 to 5; the rubric {rubric.name} {fault}.")
    held_back = sorted(set(not_validated) & {*rubric.metric_names, FLAG})
    if held_back:
        raise Refusal(409, f"This judge holds back {', '.join(held_back)}, and the benchmark asks for all six metrics.")


def bench_answer(verdict: Verdict, rubric: Rubric, who: Mapping[str, Any]) -> str:
    """The answer's text. Refusal with the reasons where anything of the verdict could not be had: 503 where the judge's
    own server failed, with retry_after where that may pass, else 422."""
    _refuse_holes(verdict)
    flag = verdict.flags[FLAG]
    scores: dict[str, Any] = {}
    for metric in rubric.metrics:
        if metric.flag == FLAG:  # flag and severity stand before the metric that hangs on them
            scores |= {FLAG: flag.value, SEVERITY: flag.severity}
        scores[metric.name] = _value(verdict.scores[metric.name])
    context = None if who["answered_as_own"] else _context(verdict.raw)
    answer = {
        **({"context_analysis": context} if context is not None else {}),
        "scores": scores,
        "judge": dict(who),
        "reasoning": " ".join(filter(None, (stamp(who), verdict.rationale))),
    }
    # A fence in it would be taken for the answer by a reader that looks for the first fenced block.
    return dumps(answer, indent=2).replace("```", "'''")


def _refuse_holes(verdict: Verdict) -> None:
    lost = {name: s for name, s in verdict.scores.items() if isinstance(s, Unscored)}
    lost |= {name: _hole(f) for name, f in verdict.flags.items() if f.value is None or f.severity is None}
    if lost:
        words = ", ".join(
            f"{name} ({why.reason}{f': {why.detail}' if why.detail else ''})" for name, why in lost.items()
        )
        said = f"This turn could not be judged whole: {words}."
        if any(why.reason not in RETRYABLE for why in lost.values()):
            raise Refusal(422, said)
        may_pass = verdict.provenance.get("failure", {}).get("retryable") is True
        raise Refusal(503, said, retry_after=RETRY_SECONDS if may_pass else None)


def _hole(flag: Flag) -> Unscored:
    return flag.unscored or Unscored("missing")


def _value(score: Score) -> int | float | str:
    match score:
        case Scored():
            return int(score.value) if score.value == int(score.value) else score.value
        case NotApplicable():
            return "N/A"
        case Unscored():
            raise AssertionError("refused before")


def _context(raw: str | None) -> Any:
    """What a judge of the benchmark's contract said of the context, where it said something; its scores are read from
    the verdict. A judge on a server may have written its reply in any way that a verdict can be read from."""
    found = said_aside(raw, "context_analysis") if raw is not None else None
    return found if isinstance(found, dict) else None
