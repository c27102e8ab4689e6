"""What a judge in this process read -> the verdict: scores and flags, what is held back, remarks, provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .composite import wants_reason
from .conversation import Conversation
from .engine.choice import SlotReading
from .engine.prose import Prose
from .engine.slots import AnswerReader
from .readings import read_flags, read_scores
from .reservations import unsure, withhold
from .rubric import Rubric
from .set_from import decided
from .subjects import Subject
from .untrusted import suspicions
from .verdict import Flag, Score, Unscored, Verdict
from .weights import Weights
from .window import window_notes


class VerdictWriter:
    """Writes verdicts of one judge; `provenance` says which and how it is run."""

    def __init__(self, weights: Weights, rubric: Rubric, provenance: Callable[[], Mapping[str, Any]]) -> None:
        self._weights, self._rubric, self._provenance = weights, rubric, provenance

    def flagged(self, readers: Sequence[AnswerReader]) -> bool:
        """A unit that a human should look at: a flag, a failure, or something that could not be read or is unsure."""
        flags, scores, doubtful = self._meaning(readers)
        return wants_reason(self._rubric, flags, scores) or bool(doubtful)

    def verdict(
        self,
        conversation: Conversation,
        subject: Subject,
        dropped: int,
        readers: Sequence[AnswerReader],
        prose: Prose | None,
        shared: int,
    ) -> Verdict:
        """`dropped` messages were left out by a window; `shared` conversations were judged in the same plan."""
        flags, scores, doubtful = self._meaning(readers)
        notes = [*self._standing_notes, *window_notes(subject.upto, dropped, self._weights.window)]
        notes += [f"unsure:{name}" for name in doubtful]
        notes += [f"near_tie:{name}" for r in readers for name, reading in r.readings.items() if reading.near_tie]
        if prose is not None and prose.cut:
            notes.append("rationale_cut")
        text = prose.text if prose is not None else None
        labels = {name: reading.label for name, reading in self._readings(readers).items()}
        plan = {"plan": {"conversations": shared}} if shared > 1 else {}
        return Verdict(
            conversation_id=conversation.id,
            turn=subject.turn,
            content_hash=subject.content_hash,
            scores=scores,
            flags=flags,
            rationale=text,
            suspected_injection=suspicions(m.content for m in conversation.messages[: subject.upto + 1]),
            notes=tuple(notes),
            raw="".join(r.answer(text or "", labels) for r in readers),
            provenance={**self._provenance(), **plan},
        )

    def unscored(self, conversation: Conversation, subject: Subject, reason: str, detail: str | None) -> Verdict:
        """The verdict on what could not be asked."""
        lost = Unscored(reason, detail)
        return Verdict(
            conversation_id=conversation.id,
            turn=subject.turn,
            content_hash=subject.content_hash,
            scores=dict.fromkeys(self._rubric.metric_names, lost),
            flags={f.name: Flag(None, unscored=lost) for f in self._rubric.flags},
            suspected_injection=suspicions(m.content for m in conversation.messages[: subject.upto + 1]),
            notes=self._standing_notes,
            provenance=self._provenance(),
        )

    def _meaning(self, readers: Sequence[AnswerReader]) -> tuple[dict[str, Flag], dict[str, Score], tuple[str, ...]]:
        """Flags, scores, and the names of those that are unsure."""
        readings = self._readings(readers)
        floor = self._weights.legal_mass_floor
        flags = read_flags(self._rubric, readings, floor)
        scores = read_scores(self._rubric, readings, flags, floor)
        flags, scores = withhold(self._rubric, flags, scores, self._weights.not_validated)
        return flags, scores, unsure(self._rubric, flags, scores, self._weights.operating_points)

    def _readings(self, readers: Sequence[AnswerReader]) -> Mapping[str, SlotReading]:
        """All that was read, each flag at the level that it is set to."""
        readings: dict[str, SlotReading] = {}
        for reader in readers:
            readings |= reader.readings
        return decided(self._rubric, readings, self._weights.set_from)

    @property
    def _standing_notes(self) -> tuple[str, ...]:
        return ("unblessed",) if self._weights.blessed is False else ()
