"""Units: what of a run was to be judged, with the verdict each got. What reports, gates and comparisons count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .composite import Composite, composite
from .conversation import Conversation
from .errors import InputError
from .rubric import Metric, Rubric
from .runs import RunView
from .verdict import NotApplicable, Score, Scored, Unscored, Verdict

Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Unit:
    """One assistant turn (or, with `turn` None, a whole conversation) and its verdict.

    verdict    None where the run holds none: it was not reached, and counts as unscored, never as passed
    composite  the weighted mean with its failure finding
    """

    conversation_id: str
    turn: int | None
    verdict: Verdict | None
    scores: Mapping[str, Score]
    composite: Composite

    @property
    def key(self) -> Key:
        return (self.conversation_id, self.turn)

    @property
    def failure(self) -> bool | None:
        """Whether something lies below a threshold; None where nothing does but not everything could be scored."""
        if self.composite.failure:
            return True
        unknown = self.composite.failure is None or any(isinstance(s, Unscored) for s in self.scores.values())
        return None if unknown else False

    @property
    def place(self) -> str:
        """How the unit is named in words: "chat-7, turn 3", or the conversation alone."""
        return self.conversation_id if self.turn is None else f"{self.conversation_id}, turn {self.turn}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of scores: every one is scored, N/A or unscored (by reason). `share_unscored` is None for no scores."""

    scored: int = 0
    not_applicable: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def unscored(self) -> int:
        return sum(self.reasons.values())

    @property
    def total(self) -> int:
        return self.scored + self.not_applicable + self.unscored

    @property
    def share_unscored(self) -> float | None:
        """Unscored / all, 0..1."""
        return self.unscored / self.total if self.total else None


def units(run: RunView) -> tuple[Unit, ...]:
    """Every unit of the run in reading order, those without a verdict included.

    A redacted run keeps no conversations, so there only what has a verdict is known. Raises InputError where two
    verdicts claim one unit, or a value is not on its metric's scale: such a run cannot be counted.
    """
    verdicts = _by_key(run.verdicts)
    keys = [k for c in run.conversations for k in _keys(run.rubric, c)]
    known = set(keys)
    keys += [k for k in verdicts if k not in known]
    return tuple(_unit(run.rubric, key, verdicts.get(key)) for key in keys)


def coverage(scores: Iterable[Score]) -> Coverage:
    """Count scores by what they are."""
    everything = list(scores)
    reasons = Counter(s.reason for s in everything if isinstance(s, Unscored))
    return Coverage(
        scored=sum(isinstance(s, Scored) for s in everything),
        not_applicable=sum(isinstance(s, NotApplicable) for s in everything),
        reasons=dict(sorted(reasons.items())),
    )


def values(units: Iterable[Unit], metric: str) -> list[float]:
    """The values that `metric` was given, in order; N/A and unscored have none."""
    return [s.value for u in units if isinstance(s := u.scores[metric], Scored)]


def below_critical(metric: Metric, score: Score) -> bool:
    """True where there is a value and it lies strictly below the metric's critical threshold."""
    return metric.critical is not None and isinstance(score, Scored) and score.value < metric.critical


def by_conversation(units: Iterable[Unit]) -> dict[str, list[Unit]]:
    """Units grouped by conversation id, in order of first appearance."""
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(unit.conversation_id, []).append(unit)
    return groups


def _keys(rubric: Rubric, conversation: Conversation) -> list[Key]:
    if rubric.unit == "conversation":
        return [(conversation.id, None)]
    return [(conversation.id, turn.number) for turn in conversation.turns]


def _by_key(verdicts: Sequence[Verdict]) -> dict[Key, Verdict]:
    found: dict[Key, Verdict] = {}
    for verdict in verdicts:
        key = (verdict.conversation_id, verdict.turn)
        if key in found:
            raise InputError("two verdicts for one unit", where=_place(key), hint="Give every conversation its own id.")
        found[key] = verdict
    return found


def _unit(rubric: Rubric, key: Key, verdict: Verdict | None) -> Unit:
    scores = {m.name: _score(m, verdict, key) for m in rubric.metrics}
    return Unit(key[0], key[1], verdict, scores, composite(rubric, scores))


def _score(metric: Metric, verdict: Verdict | None, key: Key) -> Score:
    if verdict is None:
        return Unscored("no_verdict", "not judged")
    score = verdict.scores.get(metric.name, Unscored("missing"))
    # A comparison with NaN is always false, so NaN would slip past every threshold: stop it here, once for all.
    if isinstance(score, Scored) and not _on_scale(metric, score.value):
        raise InputError(
            f"{metric.name} is {score.value}, which is not on its scale "
            f"({metric.scale.minimum} to {metric.scale.maximum})",
            where=_place(key),
            hint="The run was changed or made with another rubric: score it again.",
        )
    return score


def _on_scale(metric: Metric, value: float) -> bool:
    return math.isfinite(value) and metric.scale.minimum <= value <= metric.scale.maximum


def _place(key: Key) -> str:
    return key[0] if key[1] is None else f"{key[0]}, turn {key[1]}"
