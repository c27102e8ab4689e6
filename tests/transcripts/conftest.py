"""Fixtures of the tests of the readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aipsy_judge import transcripts
from aipsy_judge.conversation import Conversation

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write text, bytes or (as JSON) any other value to a file; the name says nothing of its format."""

    def write(content: Any, name: str = "talk") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def read_one(write: Write) -> ReadOne:
    """The only conversation of a file with the given content."""

    def read_one(content: Any, name: str = "talk") -> Conversation:
        [conversation] = transcripts.read(write(content, name))
        return conversation

    return read_one
