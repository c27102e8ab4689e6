"""What the benchmark's log says of each turn, and what `aipsy-judge score` says of the same: put side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.ratings.from_inspect import SEVERITIES, from_inspect_eval
from aipsy_judge.ratings.from_runs import item_id
from aipsy_judge.ratings.table import SCORED, STATUSES
from aipsy_judge.transcripts import read, to_dict

Said = Mapping[str, float | str]
"""By metric, flag and severity: a number, "na" or "unscored"."""


@dataclass(frozen=True, slots=True)
class Compared:
    """turns of the log; `judged` without a failure; `equal` to the other; `distinct` verdicts among them."""

    turns: int
    judged: int
    equal: int
    distinct: int


def said_in_log(log: Path) -> dict[str, Said]:
    """By turn ("s06_epoch_1:t03"), as the client understood its judge."""
    found: dict[str, dict[str, float | str]] = {}
    table = from_inspect_eval(log)
    for n in range(len(table.score)):
        item, metric = table.item[n], table.metric[n]
        assert item is not None
        assert metric is not None
        scored = table.status[n] == SCORED
        found.setdefault(item, {})[metric] = float(table.score[n]) if scored else STATUSES[table.status[n]]
    return {item: dict(sorted(said.items())) for item, said in found.items()}


def asked_in_log(log: Path) -> dict[str, Conversation]:
    """By turn, in the order of the calls: what was before the judge. Only the last message is to be judged."""
    found = {}
    for conversation in sorted(read(log), key=lambda c: c.id):
        for turn in conversation.turns:
            before = [Message(m.role, m.content, m.role == "user") for m in conversation.messages[: turn.index]]
            name = item_id(conversation.id, turn.number)
            found[name] = Conversation(name, (*before, turn.message))
    return found


def scored(words: Sequence[str], folder: Path, conversations: Iterable[Conversation] | Path) -> list[dict[str, Any]]:
    """The verdicts that `aipsy-judge score` gives, as data; `words` name the judge. CalledProcessError."""
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / "result.json"
    if isinstance(conversations, Path):
        source = conversations
    else:
        source = folder / "asked.jsonl"
        source.write_text("".join(json.dumps(to_dict(c)) + "\n" for c in conversations), encoding="utf-8")
    command = [sys.executable, "-m", "aipsy_judge", "score", str(source), *words, "--json", str(result)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    told = json.loads(result.read_text(encoding="utf-8"))
    return [verdict for conversation in told["conversations"] for verdict in conversation["verdicts"]]


def said_by(verdict: Mapping[str, Any]) -> Said:
    """A verdict in the words of the log."""
    said: dict[str, float | str] = {}
    for name, score in verdict["scores"].items():
        said[name] = score["value"] if score["status"] == "scored" else score["status"]
    for name, flag in verdict["flags"].items():
        said[name] = "unscored" if flag["value"] is None else float(flag["value"])
        severity = flag["severity"]
        said["crisis_severity"] = "unscored" if severity is None else float(SEVERITIES.index(severity))
    return dict(sorted(said.items()))


def compared(client: Mapping[str, Said], own: Mapping[str, Said]) -> Compared:
    """The client's reading against ours; a turn that either lacks is not equal."""
    whole = {item: said for item, said in client.items() if "unscored" not in said.values()}
    return Compared(
        turns=len(client),
        judged=len(whole),
        equal=sum(own.get(item) == said for item, said in whole.items()),
        distinct=len({tuple(said.items()) for said in whole.values()}),
    )
