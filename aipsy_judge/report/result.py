"""The result of `score --json`: everything about a run but the transcripts, as one strict JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..runs_info import RunInfo, info_to_dict
from ..strict_json import dumps
from ..summary import ConversationSummary, coverage_to_dict, summary_to_dict
from ..units import Coverage
from ..verdict import verdict_to_dict
from .wording import WHAT_SCORES_ARE


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a conversation came from, and what its reader left out or changed."""

    source: str | None = None
    warnings: tuple[str, ...] = ()


def result_text(
    info: RunInfo, found: Coverage, gate: Mapping[str, Any] | None, items: Iterable[tuple[ConversationSummary, Origin]]
) -> Iterator[str]:
    """The document in pieces, a conversation in memory at a time. `runs.load_run` reads it back from a file."""
    head = {
        "made_by": "aipsy-judge",
        **info_to_dict(info),
        "note": WHAT_SCORES_ARE,
        "coverage": coverage_to_dict(found),
        "gate": gate,
    }
    yield dumps(head, indent=1).removesuffix("\n}") + ',\n "conversations": ['
    for n, (summary, origin) in enumerate(items):
        yield (",\n" if n else "\n") + dumps(_conversation(summary, origin), indent=1)
    yield "\n]}\n"


def _conversation(summary: ConversationSummary, origin: Origin) -> dict[str, Any]:
    return {
        "id": summary.id,
        "source": origin.source,
        "warnings": list(origin.warnings),
        **summary_to_dict(summary),
        "verdicts": [verdict_to_dict(u.verdict) for u in summary.units if u.verdict is not None],
    }
