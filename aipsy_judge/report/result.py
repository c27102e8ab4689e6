"""The result of `score --json`: everything about a run but the transcripts, as one strict JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..runs_info import RunInfo, info_to_dict
from ..strict_json import dumps
from ..summary import ConversationSummary, coverage_to_dict, summary_to_dict
from ..units import Coverage
from ..verdict import Verdict, verdict_to_dict
from .wording import WHAT_SCORES_ARE

if TYPE_CHECKING:
    from ..correction.applied import Applied


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a conversation came from, and what its reader left out or changed."""

    source: str | None = None
    warnings: tuple[str, ...] = ()


def result_text(
    info: RunInfo,
    found: Coverage,
    gate: Mapping[str, Any] | None,
    items: Iterable[tuple[ConversationSummary, Origin]],
    applied: Applied | None = None,
) -> Iterator[str]:
    """The document in pieces, a conversation in memory at a time. `runs.load_run` reads it back from a file.

    With `applied` the head says what the correction is (`correction`) and every verdict has `corrected` beside its
    raw scores: metric -> raw, value, p_fail, fails, reason, each null where it is undefined.
    """
    head = {
        "made_by": "aipsy-judge",
        **info_to_dict(info),
        "note": WHAT_SCORES_ARE,
        "coverage": coverage_to_dict(found),
        "gate": gate,
    }
    if applied is not None:
        head["correction"] = applied.to_dict()
    yield dumps(head, indent=1).removesuffix("\n}") + ',\n "conversations": ['
    for n, (summary, origin) in enumerate(items):
        yield (",\n" if n else "\n") + dumps(_conversation(summary, origin, applied), indent=1)
    yield "\n]}\n"


def _conversation(summary: ConversationSummary, origin: Origin, applied: Applied | None) -> dict[str, Any]:
    return {
        "id": summary.id,
        "source": origin.source,
        "warnings": list(origin.warnings),
        **summary_to_dict(summary),
        "verdicts": [_verdict(u.verdict, applied) for u in summary.units if u.verdict is not None],
    }


def _verdict(verdict: Verdict, applied: Applied | None) -> dict[str, Any]:
    data = verdict_to_dict(verdict)
    if applied is not None:
        data["corrected"] = {metric: found.to_dict() for metric, found in applied.scores(verdict).items()}
    return data
