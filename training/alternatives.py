"""Conversations with alternative replies: JSON lines that hold, beside id and messages, `alternatives` and `situation`.

`{"turn": 2, "content": "..."}` is another reply to what the person said before the main line's second assistant
message. Each becomes a conversation of its own that ends there: `c001` with its second alternative to turn 2 becomes
`c001.t2a2`, whose metadata names `origin: c001`. The situation is the scenario of all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts.decoding import text_blocks


def alternative_id(conversation: str, turn: int, number: int) -> str:
    """The id of the `number`th alternative (from 1) to a turn.

    >>> alternative_id("c001", 2, 1)
    'c001.t2a1'
    """
    return f"{conversation}.t{turn}a{number}"


def with_alternatives(conversations: Iterable[Conversation], paths: Iterable[Path]) -> Iterator[Conversation]:
    """The conversations, each followed by its alternatives. TranscriptError where one is not of this form."""
    beside = {id: line for path in paths for id, line in _lines(path)}
    for conversation in conversations:
        line = beside.get(conversation.id, {})
        scenario = {"scenario": line["situation"]} if isinstance(line.get("situation"), str) else {}
        main = replace(conversation, metadata={**scenario, **conversation.metadata}) if scenario else conversation
        yield main
        yield from _alternatives(main, line.get("alternatives", []))


def _alternatives(main: Conversation, told: Any) -> Iterator[Conversation]:
    numbers: Counter[int] = Counter()
    for n, alternative in enumerate(told if isinstance(told, list) else [told]):
        where = f"{main.source or main.id}, alternatives[{n}]"
        if not isinstance(alternative, Mapping) or not isinstance(alternative.get("content"), str):
            raise TranscriptError("an alternative has a turn and a content", where=where)
        turn = alternative.get("turn")
        if not isinstance(turn, int) or not 1 <= turn <= len(main.turns):
            raise TranscriptError(f"turn is {turn!r}; {main.id} has turns 1 to {len(main.turns)}", where=where)
        numbers[turn] += 1
        before = main.messages[: main.turns[turn - 1].index]
        yield Conversation(
            id=alternative_id(main.id, turn, numbers[turn]),
            messages=(*before, Message("assistant", alternative["content"])),
            metadata={**main.metadata, "origin": main.id},
            source=where,
        )


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(id, object) of every line that has alternatives or a situation; other files have none."""
    if path.is_dir():
        for inside in sorted(path.rglob("*.jsonl")):
            yield from _lines(inside)
    if path.suffix.lower() != ".jsonl" or not path.is_file():
        return
    with path.open("rb") as file:
        text = "".join(text_blocks(file, str(path)))
    for line in text.split("\n"):
        if '"alternatives"' in line or '"situation"' in line:
            found = json.loads(line)
            if isinstance(found, dict) and "messages" in found and "id" in found:
                yield str(found["id"]), found
