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
from .journal import read_journal
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
    lines = records(folder / CONVERSATIONS)
    texts = {c.id: c for c in map(conversation_from_dict, lines)}
    newest = newest_verdicts(records(folder / VERDICTS), text_hashes(lines))
    order = list(texts) + [i for i, _ in newest if i not in texts]
    place = {i: n for n, i in enumerate(dict.fromkeys(order))}
    ordered = sorted(newest.values(), key=lambda v: (place[v.conversation_id], v.turn or 0))
    return view(info, tuple(texts.values()), tuple(ordered))


def records(path: Path) -> list[dict[str, Any]]:
    """What a journal of a run holds; nothing where the file is not there."""
    return read_journal(path)[0] if path.exists() else []


def text_hashes(lines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The content hash of the newest text under each id, as it was when judged.

    It stands in the line, for it cannot be had from there: half a surrogate pair was replaced on writing.
    """
    return {str(line["id"]): str(line["content_hash"]) for line in lines}


def newest_verdicts(
    lines: Sequence[Mapping[str, Any]], texts: Mapping[str, str]
) -> dict[tuple[str, int | None], Verdict]:
    """The newest verdict of each unit, those on an earlier text under the same id left out.

    `texts` maps ids to the hash of their newest text; where an id is missing there, its newest verdict tells.
    """
    current = {str(line["conversation_id"]): line["conversation_hash"] for line in lines} | dict(texts)
    found: dict[tuple[str, int | None], Verdict] = {}
    for line in lines:
        verdict = verdict_from_dict(line)
        if line["conversation_hash"] == current[verdict.conversation_id]:
            found[verdict.conversation_id, verdict.turn] = verdict
    return found


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
