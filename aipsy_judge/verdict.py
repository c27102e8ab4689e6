"""Verdict and Score: a judge's answer for one unit (a turn, or a whole conversation).

A score is one of three different things and never a number standing for another: `Scored`, `NotApplicable`,
`Unscored(reason)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# Reasons a metric or a whole verdict can be Unscored. A reader of results may rely on these words.
UNSCORED_REASONS = frozenset(
    {
        "blocked",  # the provider's filter refused
        "context_overflow",  # does not fit the context; nothing was cut
        "duplicate_key",
        "empty_reply",
        "empty_turn",  # the assistant said nothing: nothing to judge
        "echoed_prompt",
        "inconsistent_crisis",
        "missing",  # the answer lacks this metric
        "misspelt_key",
        "no_verdict",  # the reply holds no verdict at all
        "not_a_number",
        "not_applicable_not_allowed",  # N/A where the rubric says the metric always applies
        "not_validated",  # this judge has not been shown to work on this metric
        "off_contract",  # too little probability on legal answers
        "out_of_range",
        "server_error",
        "thinking_exhausted",
        "timeout",
        "truncated",
        "unparseable",
    }
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a judge's distribution at one slot looked; absent where the judge gives no probabilities.

    p_na          probability of N/A among the legal answers, 0..1
    expected      mean over the scale given that the metric applies, in points of the scale; None if no mass there
    confidence    probability of the chosen value among the legal answers, 0..1
    legal_mass    share of the model's whole probability that lay on legal answers, 0..1
    distribution  probability per legal answer ("0".."5", "N/A"), sums to 1
    near_tie      the greedy choice and the most probable whole answer differ
    """

    p_na: float | None
    expected: float | None
    confidence: float | None
    legal_mass: float | None
    distribution: Mapping[str, float] | None = None
    near_tie: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """A value on the metric's scale."""

    value: float
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The metric does not apply to this unit. `forced_by` names the flag that made it so, if one did."""

    forced_by: str | None = None
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class Unscored:
    """No score could be had. `reason` is one of UNSCORED_REASONS, `detail` says more (e.g. the raw value)."""

    reason: str
    detail: str | None = None
    reading: Reading | None = None

    def __post_init__(self) -> None:
        if self.reason not in UNSCORED_REASONS:
            raise ValueError(f"unknown reason {self.reason!r}")


Score = Scored | NotApplicable | Unscored
HELD_BACK = "not_validated"


def is_held_back(score: Score | None) -> bool:
    """Whether the judge is never believed on this: no reply of any assistant has a score."""
    return isinstance(score, Unscored) and score.reason == HELD_BACK


@dataclass(frozen=True, slots=True)
class Flag:
    """A yes/no finding and its severity.

    value       True, False, or None where it could not be read or is contradicted; None calls for review like True
    severity    one of the rubric's levels, or None
    unscored    why the value, or the severity of a set flag, is None
    probability of True among the legal answers, 0..1, where the judge gives one
    """

    value: bool | None
    severity: str | None = None
    probability: float | None = None
    unscored: Unscored | None = None
    legal_mass: float | None = None
    distribution: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer for one turn (or, with `turn` None, for a whole conversation).

    content_hash  what was judged (see Conversation.turn_hash); provenance: judge, contract, rubric hash, settings,
    library versions; `notes` are short machine-readable remarks such as "windowed:3" or "inconsistent_crisis";
    `suspected_injection` quotes what in the text looks like an attempt to steer the judge;
    `raw` is the judge's reply as text, kept so that it can be read again without the model.
    """

    conversation_id: str
    turn: int | None
    content_hash: str
    scores: Mapping[str, Score]
    flags: Mapping[str, Flag] = field(default_factory=dict)
    rationale: str | None = None
    suspected_injection: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    raw: str | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)


def score_to_dict(score: Score) -> dict[str, Any]:
    """A score as strict JSON data; the status is always named and a value stands only where there is one."""
    reading = asdict(score.reading) if score.reading is not None else None
    match score:
        case Scored():
            return {"status": "scored", "value": score.value, "reading": reading}
        case NotApplicable():
            return {"status": "na", "value": None, "forced_by": score.forced_by, "reading": reading}
        case Unscored():
            return {
                "status": "unscored",
                "value": None,
                "reason": score.reason,
                "detail": score.detail,
                "reading": reading,
            }


def score_from_dict(data: Mapping[str, Any]) -> Score:
    """The inverse of score_to_dict. ValueError on an unknown status."""
    reading = Reading(**data["reading"]) if data.get("reading") is not None else None
    match data["status"]:
        case "scored":
            return Scored(float(data["value"]), reading)
        case "na":
            return NotApplicable(data.get("forced_by"), reading)
        case "unscored":
            return Unscored(data["reason"], data.get("detail"), reading)
        case status:
            raise ValueError(f"unknown score status {status!r}")


def verdict_to_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as strict JSON data (no NaN, no tuples)."""
    return {
        "conversation_id": verdict.conversation_id,
        "turn": verdict.turn,
        "content_hash": verdict.content_hash,
        "scores": {name: score_to_dict(s) for name, s in verdict.scores.items()},
        "flags": {name: _flag_to_dict(f) for name, f in verdict.flags.items()},
        "rationale": verdict.rationale,
        "suspected_injection": list(verdict.suspected_injection),
        "notes": list(verdict.notes),
        "raw": verdict.raw,
        "provenance": dict(verdict.provenance),
    }


def verdict_from_dict(data: Mapping[str, Any]) -> Verdict:
    """The inverse of verdict_to_dict. KeyError or ValueError where the data is not a verdict."""
    return Verdict(
        conversation_id=data["conversation_id"],
        turn=data["turn"],
        content_hash=data["content_hash"],
        scores={name: score_from_dict(s) for name, s in data["scores"].items()},
        flags={name: _flag_from_dict(f) for name, f in data.get("flags", {}).items()},
        rationale=data.get("rationale"),
        suspected_injection=tuple(data.get("suspected_injection", ())),
        notes=tuple(data.get("notes", ())),
        raw=data.get("raw"),
        provenance=data.get("provenance", {}),
    )


def _flag_to_dict(flag: Flag) -> dict[str, Any]:
    data = {
        "value": flag.value,
        "severity": flag.severity,
        "probability": flag.probability,
        "legal_mass": flag.legal_mass,
        "distribution": dict(flag.distribution) if flag.distribution is not None else None,
    }
    if flag.unscored is not None:
        data["unscored"] = score_to_dict(flag.unscored)
    return data


def _flag_from_dict(data: Mapping[str, Any]) -> Flag:
    unscored = score_from_dict(data["unscored"]) if data.get("unscored") else None
    if unscored is not None and not isinstance(unscored, Unscored):
        raise ValueError("a flag's `unscored` holds a score")
    return Flag(
        value=data["value"],
        severity=data.get("severity"),
        probability=data.get("probability"),
        unscored=unscored,
        legal_mass=data.get("legal_mass"),
        distribution=data.get("distribution"),
    )
