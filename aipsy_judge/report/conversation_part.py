"""One conversation in the report: the courses of its metrics, and its transcript beside the scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..conversation import Conversation, Message
from ..reading_list import Entry, Finding, conversation_order
from ..rubric import Rubric
from ..units import by_conversation
from .course import Anchors, MetricCourse, courses
from .panel import Panel, panel

if TYPE_CHECKING:
    from ..correction.applied import CorrectedUnits


@dataclass(frozen=True, slots=True)
class Block:
    """The messages since the last judged turn, the judged one last, and the panel beside them."""

    messages: tuple[Message, ...]
    panel: Panel


@dataclass(frozen=True, slots=True)
class ConversationPart:
    """A conversation. `first`: what to read first; `trailing`: what was said after the last judged turn."""

    anchor: str
    id: str
    source: str | None
    warnings: tuple[str, ...]
    has_text: bool
    first: Panel
    counts: Mapping[Finding, int]
    courses: tuple[MetricCourse, ...]
    blocks: tuple[Block, ...]
    trailing: tuple[Message, ...]


def conversation_parts(
    rubric: Rubric,
    entries: Sequence[Entry],
    anchors: Anchors,
    texts: Mapping[str, Conversation],
    corrected: CorrectedUnits | None = None,
) -> tuple[ConversationPart, ...]:
    """The conversations in the order of the reading list `entries`, their turns in the order of the talk."""
    by_key = {e.unit.key: e for e in entries}
    groups = by_conversation(e.unit for e in entries)
    parts = []
    for id in conversation_order(entries):
        ranked = [by_key[u.key] for u in groups[id]]
        parts.append(_part(rubric, ranked, anchors, texts.get(id), corrected))
    return tuple(parts)


def _part(
    rubric: Rubric,
    ranked: Sequence[Entry],
    anchors: Anchors,
    text: Conversation | None,
    corrected: CorrectedUnits | None,
) -> ConversationPart:
    entries = sorted(ranked, key=lambda e: e.unit.turn or 0)
    beside = [None if corrected is None else corrected.get(e.unit.key, {}) for e in entries]
    panels = [panel(rubric, e, anchors[e.unit.key], b) for e, b in zip(entries, beside, strict=True)]
    blocks, trailing = _blocks(panels, text)
    return ConversationPart(
        anchor=anchors[entries[0].unit.key].split("-")[0],
        id=entries[0].unit.conversation_id,
        source=text.source if text else None,
        warnings=text.warnings if text else (),
        has_text=text is not None,
        first=panels[entries.index(ranked[0])],
        counts=Counter(e.finding for e in entries),
        courses=courses(rubric, entries, anchors),
        blocks=blocks,
        trailing=trailing,
    )


def _blocks(panels: Sequence[Panel], text: Conversation | None) -> tuple[tuple[Block, ...], tuple[Message, ...]]:
    if text is None:
        return tuple(Block((), p) for p in panels), ()
    ends = {t.number: t.index + 1 for t in text.turns}
    blocks: list[Block] = []
    start = 0
    for p in panels:
        turn = p.entry.unit.turn
        end = len(text.messages) if turn is None else ends.get(turn, start)
        blocks.append(Block(text.messages[start:end], p))
        start = max(start, end)
    return tuple(blocks), text.messages[start:]
