"""The result of `score --json`: everything about a run but the transcripts, as one strict JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..runs_info import RunInfo, info_to_dict
from ..summary import ConversationSummary, coverage_to_dict, summary_to_dict
from ..units import coverage
from ..verdict import verdict_to_dict
from .wording import WHAT_SCORES_ARE


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a conversation came from, and what its reader left out or changed."""

    source: str | None = None
    warnings: tuple[str, ...] = ()


def result(info: RunInfo, summaries: Sequence[ConversationSummary], origins: Mapping[str, Origin]) -> dict[str, Any]:
    """The document as data. `runs.load_run` reads it back from a file."""
    found = coverage(s for c in summaries for u in c.units for s in u.scores.values())
    return {
        **info_to_dict(info),
        "note": WHAT_SCORES_ARE,
        "rubric_hash": info.rubric.hash,
        "coverage": coverage_to_dict(found),
        "conversations": [_conversation(s, origins.get(s.id, Origin())) for s in summaries],
    }


def _conversation(summary: ConversationSummary, origin: Origin) -> dict[str, Any]:
    return {
        "id": summary.id,
        "source": origin.source,
        "warnings": list(origin.warnings),
        **summary_to_dict(summary),
        "verdicts": [verdict_to_dict(u.verdict) for u in summary.units if u.verdict is not None],
    }
