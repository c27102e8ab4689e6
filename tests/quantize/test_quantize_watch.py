"""What a watched side is asked, prompt by prompt: nothing twice, and every answer beside its own distributions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from toy_model import ToyModel

from aipsy_judge.backends.protocol import TokenBackend
from aipsy_judge.contract import COMPACT
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.engine.tree import common_prefix
from aipsy_judge.rubric import load_rubric
from quantize.asked import Task, whole
from quantize.side import Side
from quantize.watch import Settings, Watched, distance_from, watch

SAID = ("I failed the exam.", "That is a heavy thing.", "I tried.", "Cheer up.", "No.", "Then rest for a while.")
TALK = Conversation("a", tuple(Message("assistant" if n % 2 else "user", text) for n, text in enumerate(SAID)))
OTHER = Conversation("b", (Message("user", "Nobody calls."), Message("assistant", "Who could?")))
TASK = Task(load_rubric(), COMPACT, (TALK, OTHER))


def watched(monkeypatch: pytest.MonkeyPatch, model: ToyModel, against: Watched | None = None) -> Watched:
    """As `watch` sees this model, verdicts left out."""

    @contextmanager
    def opened(side: Side, threads: int) -> Iterator[TokenBackend]:
        yield model

    monkeypatch.setattr(model, "describe", lambda: {"library": "toy"})
    monkeypatch.setattr("quantize.watch.opened", opened)
    monkeypatch.setattr("quantize.watch.verdicts", lambda *_, **__: [])
    return watch(Side(Path("toy.gguf")), TASK, Settings(), against, lambda line: None)


def test_all_that_is_asked_of_a_prompt_is_asked_while_it_stands_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt up to its last token is evaluated once, without what the one before began with; the answers that are
    followed are then told after it."""
    model = ToyModel()
    watched(monkeypatch, model)
    bodies = [whole(prompts)[:-1] for prompts in TASK.prompts(model)]
    assert len(bodies) == 4
    new = [len(b) - common_prefix([a, b]) for a, b in zip([[], *bodies], bodies, strict=False)]
    assert sum(len(feed.tokens) for feed in model.evaluated if feed.sequence == 0) == sum(new)


def test_the_answers_that_are_followed_are_the_other_sides_each_beside_what_was_kept_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = watched(monkeypatch, ToyModel(0))
    assert first.followed == first.written
    assert first.kept is not None
    assert [len(rows) for rows in first.kept] == [len(answer.tokens) for answer in first.followed]
    assert [(a.unit, a.form) for a in first.written] == [(n, f) for n in range(4) for f in COMPACT.forms(TASK.rubric)]
    again = watched(monkeypatch, ToyModel(0), first)
    assert again.followed == first.followed
    tokens = sum(len(answer.tokens) for answer in first.followed)
    assert again.places == ((0.0, True),) * tokens
    other = watched(monkeypatch, ToyModel(1), first)
    assert other.followed == first.followed != other.written
    assert len(other.places) == tokens
    assert sum(distance > 0.01 for distance, _ in other.places) > tokens / 2
    places = distance_from(Side(Path("toy.gguf")), TASK, Settings(), again, lambda line: None)
    assert len(places) == tokens


def test_answers_in_tokens_of_another_vocabulary_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, model = watched(monkeypatch, ToyModel(0)), ToyModel(0)
    model.vocabulary = [*model.vocabulary, b"more"]
    found = watched(monkeypatch, model, first)
    assert (found.kept, found.places) == (None, ())
    assert found.written
