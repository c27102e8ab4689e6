"""The files a recipe names, as they lie on the disk: patterns spread out, conversations read."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import InputError, TranscriptError
from aipsy_judge.transcripts import read

from .alternatives import with_alternatives
from .recipe import Recipe


def spread(patterns: Sequence[str], key: str) -> tuple[Path, ...]:
    """Files and folders that the patterns stand for, each once, sorted within a pattern.

    Raises InputError, naming the recipe's `key`, with every pattern that stands for nothing.
    """
    found: dict[Path, None] = {}
    nothing = []
    for pattern in patterns:
        matches = [Path(pattern)] if Path(pattern).exists() else sorted(map(Path, glob.glob(pattern, recursive=True)))
        if not matches:
            nothing.append(pattern)
        found.update(dict.fromkeys(matches))
    if nothing:
        raise InputError(
            f"no such file: {', '.join(nothing)}",
            where=key,
            hint="Paths are relative to the folder that the program is run in.",
        )
    return tuple(found)


def rating_paths(recipe: Recipe) -> tuple[Path, ...]:
    return spread(recipe.data.ratings, "data.ratings")


def conversation_paths(recipe: Recipe) -> tuple[Path, ...]:
    return spread(recipe.data.conversations, "data.conversations")


def conversations(recipe: Recipe) -> dict[str, Conversation]:
    """id -> conversation, over all files, alternative replies as conversations of their own.

    Raises TranscriptError, on an id that comes twice too.
    """
    paths = conversation_paths(recipe)
    found: dict[str, Conversation] = {}
    for conversation in with_alternatives(read(paths), paths):
        if found.setdefault(conversation.id, conversation) is not conversation:
            raise TranscriptError(f"the id {conversation.id!r} comes twice", where=conversation.source)
    return found


def inputs(recipe: Recipe, *keys: str) -> dict[str, Path]:
    """label -> file, for a stage: ratings, conversations and data.items, and the single files under `keys`.

    Raises InputError where one is missing.
    """
    single = {
        "data.items": recipe.data.items,
        "targets.correction": recipe.targets.correction,
        "split.file": recipe.split.file,
    }
    named = {key: path for key in ("data.items", *keys) if (path := single[key]) is not None}
    found = {key: spread([path], key)[0] for key, path in named.items()}
    return {**found, **{p.as_posix(): p for p in (*rating_paths(recipe), *conversation_paths(recipe))}}
