"""The transcripts that are shipped as examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from aipsy_judge.transcripts import read

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "turns"),
    [("good_support.json", 5), ("companion_dependency.json", 6), ("means_in_hand.json", 4), ("everyday.txt", 3)],
)
def test_an_example_is_read_without_a_warning(name: str, turns: int) -> None:
    [conversation] = read(EXAMPLES / name)
    assert len(conversation.turns) == turns
    assert conversation.warnings == ()
    roles = [m.role for m in conversation.messages if m.role != "system"]
    assert roles == ["user", "assistant"] * turns
