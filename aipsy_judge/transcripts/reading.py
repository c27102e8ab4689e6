"""iter_conversations: one conversation after another, from files, folders and standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ..conversation import Conversation
from ..errors import TranscriptError
from .decoding import text_blocks
from .documents import read_text
from .place import Place
from .text_source import Text

PathLike = str | os.PathLike[str]


def iter_conversations(paths: PathLike | Iterable[PathLike]) -> Iterator[Conversation]:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    for path in given:
        name = os.fspath(path)
        try:
            stream = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115
            with stream:
                text = Text(text_blocks(stream, name), Place(name))
                for n, c in enumerate(read_text(text), start=1):
                    yield c if c.id else replace(c, id=f"{Path(name).name}#{n}")
        except OSError as fault:
            raise TranscriptError(f"cannot be read: {fault.strerror or fault}", where=name) from None
