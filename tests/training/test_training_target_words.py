"""Whose words a target is explained with: only those of a rater who says what the target says, on the same text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recipe_setup import (
    RUBRIC,
    make_project,
    read_recipe,
    talk,
    write_talks,
)
from run_builder import verdict
from target_setup import TALKS, judged, made

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import InputError
from aipsy_judge.judge import Lane
from aipsy_judge.runs_info import RunInfo
from aipsy_judge.runs_store import open_run
from aipsy_judge.verdict import Verdict
from training.data_files import conversations
from training.items import Item, seen


def run_of(folder: Path, judge: str, verdicts: list[Verdict], texts: dict[str, Conversation]) -> None:
    """A run folder as `score --out` writes it."""
    info = RunInfo(Lane(judge, RUBRIC.hash, "full"), RUBRIC, {}, (), "always", False, "2026-11-30T09:00:00+00:00", {})
    with open_run(folder, info) as run:
        for text in texts.values():
            run.begin(text)
        for v in verdicts:
            run.add(v, f"{judge}-{v.conversation_id}-{v.turn}", texts[v.conversation_id].content_hash)


@pytest.fixture
def with_words(tmp_path: Path) -> Path:
    """Two runs over one talk: one judge agrees with the mean and quotes, the other praises what fails."""
    path = make_project(
        tmp_path,
        TALKS[:1],
        judged,
        data={
            "conversations": str(tmp_path / "conversations.jsonl"),
            "ratings": [str(tmp_path / "a"), str(tmp_path / "b")],
        },
    )
    text = conversations(read_recipe(path))["c0"]
    shown = seen(Item("c0:t01", "c0", 1, None, None), text)
    quote = " ".join(text.messages[0].content.split()[:4])
    told = {"a": (0, f'It never answers "{quote}", which was the point.'), "b": (2, f'A warm reply to "{quote}".')}
    for judge, (empathy, words) in told.items():
        own = verdict("c0", 1, {"empathy": empathy}, rationale=words)
        run_of(tmp_path / judge, judge, [replace(own, content_hash=shown.content_hash)], {"c0": shown})
    return path


def test_only_the_words_of_a_rater_who_says_what_the_target_says_are_taken(with_words: Path) -> None:
    # The mean of 0 and 2 fails empathy: b, who lets it pass, may not explain it.
    found = made(with_words)["c0:t01"]
    assert found["metrics"]["empathy"]["value"] == 1.0
    assert found["rationale_rater"] == "a"
    assert found["rationale"].startswith("It never answers")


def test_a_verdict_on_another_text_than_the_file_holds_is_refused(with_words: Path) -> None:
    write_talks(with_words.parent / "conversations.jsonl", [talk("c0", 99)])
    with pytest.raises(InputError, match=r"verdicts are on other texts .*c0:t01 by a"):
        made(with_words)
