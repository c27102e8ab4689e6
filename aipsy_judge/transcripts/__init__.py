"""Reading conversations from files, folders and standard input, whatever their format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ..conversation import Conversation
from .own import to_dict
from .reading import iter_conversations

__all__ = ["iter_conversations", "read", "to_dict"]


def read(path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Conversation]:
    """All conversations of a file, a folder, several of them, or standard input (`-`), in order."""
    return list(iter_conversations(path))
