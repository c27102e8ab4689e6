"""The user's cache folder: what was pulled, and answers that took long to find and are kept for the next start."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from .atomic import write_text
from .errors import InputError

T = TypeVar("T")


def cache_folder() -> Path:
    """Where pulled files live: AIPSY_JUDGE_CACHE, or the user's cache folder."""
    named = os.environ.get("AIPSY_JUDGE_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "aipsy-judge"


def recall(name: str, kind: type[T]) -> dict[str, T]:
    """What was remembered under `name`, entries of another kind left out; empty where it cannot be read."""
    try:
        data = json.loads((cache_folder() / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in data.items() if type(v) is kind} if isinstance(data, dict) else {}


def remember(name: str, known: Mapping[str, object]) -> None:
    """Keep `known` under `name`. A memory that cannot be written is only slower, so that is no error."""
    folder = cache_folder()
    with contextlib.suppress(OSError, InputError):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{name}.json", json.dumps(known))
