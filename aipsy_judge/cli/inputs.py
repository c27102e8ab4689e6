"""Input, read twice: once to find every fault before a judge is opened, once to judge. Neither holds all of it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from ..conversation import Conversation
from ..errors import InputError
from ..rubric import Rubric
from ..runs_info import InputFile, hash_stream
from ..transcripts import iter_conversations
from ..transcripts.skipping import ignore
from ..transcripts.sources import STDIN, sources

SHOWN_NOTES = 5


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the first reading found.

    units          what there is to judge: turns, or whole conversations
    conversations  those that hold any
    notes          what was passed over, for people
    """

    paths: tuple[str, ...]
    files: tuple[InputFile, ...]
    conversations: int
    units: int
    notes: tuple[str, ...]

    def read(self) -> Iterator[Conversation]:
        """The conversations again, one after another; those without an assistant turn are left out."""
        return (c for c in iter_conversations(self.paths) if c.turns)


def check_inputs(paths: Sequence[str], rubric: Rubric) -> Inputs:
    """Read everything once. Raises TranscriptError for what is not understood or an id that comes twice, InputError
    where there is nothing to judge."""
    skipped: list[str] = []
    conversations = units = 0
    for conversation in iter_conversations(paths, on_skip=lambda place, why: skipped.append(f"{place}: {why}")):
        turns = len(conversation.turns)
        if not turns:
            skipped.append(f"{conversation.source}: {conversation.id} has no assistant message, nothing to judge")
            continue
        conversations += 1
        units += turns if rubric.unit == "turn" else 1
    if not units:
        raise InputError(
            "nothing to judge: no assistant message in it",
            where=", ".join(paths[:3]),
            hint="Only what an assistant said is judged; check the roles (user, assistant) in the file.",
        )
    return Inputs(tuple(paths), tuple(_files(paths)), conversations, units, tuple(_few(skipped)))


def _few(notes: Sequence[str]) -> Iterator[str]:
    yield from notes[:SHOWN_NOTES]
    if len(notes) > SHOWN_NOTES:
        yield f"and {len(notes) - SHOWN_NOTES} more passed over"


@contextmanager
def stdin_read_again(paths: Sequence[str]) -> Iterator[None]:
    """Within it, `-` can be read more than once: standard input is copied to a file that has no name and is gone
    with the process, however it ends."""
    if STDIN not in paths:
        yield
        return
    original = sys.stdin
    with tempfile.TemporaryFile() as copy:
        while block := original.buffer.read(1 << 20):
            copy.write(block)
        try:
            sys.stdin = _Rewinding(copy)
            yield
        finally:
            sys.stdin = original


class _Rewinding:
    """Stands in for sys.stdin: whoever asks for its `buffer` gets it from the start."""

    def __init__(self, copy: IO[bytes]) -> None:
        self._copy = copy

    @property
    def buffer(self) -> IO[bytes]:
        self._copy.seek(0)
        return self._copy


def _files(paths: Sequence[str]) -> Iterator[InputFile]:
    for source in sources(list(paths), ignore):
        with source.open() as stream:
            yield hash_stream(stream, source.path)
