"""A run: what was judged, by whom, and every verdict. What reports, gates and comparisons read.

A run folder (0700, its files 0600) holds

    run.json             lane, rubric (whole, as data), settings, remarks, versions, inputs with sha256, created
    verdicts.jsonl       a verdict a line, in the order in which they were had; the newest line of a unit counts
    conversations.jsonl  what was judged; not there in a redacted run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .conversation import Conversation, Message
from .errors import InputError
from .journal import scan
from .judge import Lane
from .rubric import Rubric
from .runs_info import RunInfo, info_from_dict, read_info
from .strict_json import loads, without_nan
from .verdict import Verdict, verdict_from_dict

VERDICTS = "verdicts.jsonl"
CONVERSATIONS = "conversations.jsonl"


@dataclass(frozen=True, slots=True)
class RunView:
    """A finished or partial run, read from its folder or held in memory; the same shape either way.

    conversations  in the order of the input; empty in a redacted run, whose text is not kept anywhere, and in a
                   result written by `score --json`, which holds no transcript
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


def view(info: RunInfo, conversations: Sequence[Conversation], verdicts: Sequence[Verdict]) -> RunView:
    """A RunView of what is at hand."""
    return RunView(
        lane=info.lane,
        rubric=info.rubric,
        remarks=info.remarks,
        settings=info.settings,
        conversations=conversations,
        verdicts=verdicts,
        created=info.created,
        version=info.versions.get("aipsy-judge", "unknown"),
        redacted=info.redacted,
    )


def load_run(path: str | Path) -> RunView:
    """A run from its folder (`score --out`) or from a result file (`score --json`).

    A torn last line is left out. Raises InputError where it is neither, or is damaged.
    """
    path = Path(path)
    if path.is_dir():
        return _from_folder(path)
    return _from_result(path)


def _from_folder(folder: Path) -> RunView:
    info = read_info(folder)
    texts: dict[str, Conversation] = {}
    current: dict[str, str] = {}  # hash of the newest text under an id, as it was when judged
    verdicts: dict[tuple[str, int | None, str], Verdict] = {}

    def take_text(line: Mapping[str, Any], _: int) -> None:
        conversation = conversation_from_dict(line)
        texts[conversation.id] = conversation
        # It stands in the line, for it cannot be had from there: half a surrogate pair was replaced on writing.
        current[conversation.id] = line["content_hash"]

    def take_verdict(line: Mapping[str, Any], _: int) -> None:
        verdict = verdict_from_dict(line)
        verdicts[verdict.conversation_id, verdict.turn, line["conversation_hash"]] = verdict
        if verdict.conversation_id not in texts:
            current[verdict.conversation_id] = line["conversation_hash"]

    for name, take in ((CONVERSATIONS, take_text), (VERDICTS, take_verdict)):
        if (folder / name).exists():
            scan(folder / name, take)
    # Verdicts on an earlier text under the same id do not count.
    newest = [v for (id, _, text), v in verdicts.items() if text == current[id]]
    place = {id: n for n, id in enumerate(current)}
    newest.sort(key=lambda v: (place[v.conversation_id], v.turn or 0))
    return view(info, tuple(texts.values()), tuple(newest))


def conversation_to_dict(conversation: Conversation) -> dict[str, Any]:
    """A conversation as strict JSON data; what its metadata held of NaN is null."""
    return {
        "id": conversation.id,
        "content_hash": conversation.content_hash,
        "messages": [{"role": m.role, "content": m.content, "spoken": m.spoken} for m in conversation.messages],
        "metadata": without_nan(conversation.metadata),
        "source": conversation.source,
        "warnings": list(conversation.warnings),
    }


def conversation_from_dict(data: Mapping[str, Any]) -> Conversation:
    """The conversation, its hash aside. KeyError or TypeError where the data is no conversation."""
    return Conversation(
        id=data["id"],
        messages=tuple(Message(m["role"], m["content"], m["spoken"]) for m in data["messages"]),
        metadata=data["metadata"],
        source=data["source"],
        warnings=tuple(data["warnings"]),
    )


def _from_result(path: Path) -> RunView:
    try:
        data = loads(path.read_bytes())
        verdicts = [verdict_from_dict(v) for c in data["conversations"] for v in c["verdicts"]]
        return view(info_from_dict(data), (), tuple(verdicts))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            "neither a run folder (score --out) nor a result (score --json)",
            where=str(path),
            hint="aipsy-judge score FILE --judge NAME --out DIR makes one.",
        ) from error
