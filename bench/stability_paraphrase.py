"""Paraphrases, written by hand, of neutral messages of the corpus: greetings, thanks, small talk, who needs what when.

A line a message: conversation, place of the message (from 0), sha256 of the words it paraphrases, the text and its
sha256. Facts, tone and what a reply could be judged by stay as they were; only the wording is another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from aipsy_judge.errors import InputError
from training.target_rows import STRICT, read_lines

from .stability_draw import JudgedReply

FILE = Path(__file__).with_name("stability_paraphrases.jsonl")


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """A line of the file."""

    __pydantic_config__ = STRICT
    conversation: str
    message: int
    original_sha256: str
    text: str
    text_sha256: str


Paraphrases = Mapping[tuple[str, int], Paraphrase]


def read_paraphrases(path: Path = FILE) -> Paraphrases:
    """(conversation, place of the message) -> its paraphrase. Raises InputError, on a text that is not the hashed one
    or a message that comes twice too."""
    found: dict[tuple[str, int], Paraphrase] = {}
    for row in read_lines(path, Paraphrase, "Write it again from the corpus."):
        key = (row.conversation, row.message)
        if key in found:
            raise InputError("paraphrased twice", where=f"{path}, {row.conversation}, message {row.message}")
        if text_sha256(row.text) != row.text_sha256:
            raise InputError("not the hashed text", where=f"{path}, {row.conversation}, message {row.message}")
        found[key] = row
    return found


def paraphrased(reply: JudgedReply, known: Paraphrases) -> JudgedReply:
    """With every message before the judged one that has a paraphrase put in other words; the judged one never.

    Raises InputError where a message is no longer what was paraphrased.
    """
    messages = list(reply.conversation.messages)
    for place in range(reply.target):
        row = known.get((reply.origin, place))
        if row is None:
            continue
        if text_sha256(messages[place].content) != row.original_sha256:
            raise InputError("the message is no longer what was paraphrased", where=f"{reply.origin}, message {place}")
        messages[place] = replace(messages[place], content=row.text)
    return replace(reply, conversation=replace(reply.conversation, messages=tuple(messages)))


def text_sha256(text: str) -> str:
    """Hex, over UTF-8."""
    return sha256(text.encode()).hexdigest()
