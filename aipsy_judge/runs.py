"""A run: what was judged, by whom, and every verdict. What reports, gates and comparisons read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .conversation import Conversation
from .judge import Lane
from .rubric import Rubric
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class RunView:
    """A finished or partial run, read from its folder or held in memory; the same shape either way.

    conversations  in the order of the input; empty in a redacted run, whose text is not kept anywhere
    verdicts       at most one a (conversation_id, turn), in the order of the conversations and their turns; a unit
                   that was not reached has none
    remarks        what a reader of any score must know about the judge (see Judge.remarks)
    settings       everything beside the lane that can change a figure (see Judge.settings)
    created        when the run was begun, ISO 8601, UTC
    version        of aipsy-judge
    """

    lane: Lane
    rubric: Rubric
    remarks: tuple[str, ...]
    settings: Mapping[str, Any]
    conversations: Sequence[Conversation]
    verdicts: Sequence[Verdict]
    created: str
    version: str
    redacted: bool = False
