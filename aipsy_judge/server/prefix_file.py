"""The evaluated beginning of all prompts, kept on disk: a long rubric takes a minute to evaluate and a moment to read.

It holds the model's inner state after the judge's own prompt, and nothing of any conversation. The file's name is a
hash of everything that can change it, and its content carries its own hash: what does not fit is evaluated anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path

from ..atomic import write_bytes
from ..cache_folder import cache_folder
from ..errors import InputError
from ..local_judge import LocalJudge

KEPT_FILES = 4  # of all judges and contracts; the ones used last stay
_MAGIC = b"aipsy-judge prefix 1\n"


class PrefixFile:
    """See engine.trunks.HeadStore."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loaded = False
        self.saved = False

    def load(self) -> bytes | None:
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        magic, digest, state = data[: len(_MAGIC)], data[len(_MAGIC) : len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
        if magic != _MAGIC or hashlib.sha256(state).digest() != digest:
            return None
        self.loaded = True
        with contextlib.suppress(OSError):
            now = time.time()
            import os

            os.utime(self.path, (now, now))
        return state

    def save(self, state: bytes) -> None:
        """A file that cannot be written is only slower."""
        with contextlib.suppress(OSError, InputError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self.path, _MAGIC + hashlib.sha256(state).digest() + state)
            self.saved = True
            _forget_old(self.path.parent)


def prefix_file(judge: LocalJudge) -> PrefixFile:
    """Where the prefix of this judge is kept: model, adapter, prompt, library and settings are its name."""
    told = [judge.lane.judge, list(judge.engine.head), judge.backend.describe()]
    name = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    return PrefixFile(cache_folder() / "prefix" / f"{name}.state")


def _forget_old(folder: Path) -> None:
    files = sorted(folder.glob("*.state"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in files[KEPT_FILES:]:
        path.unlink(missing_ok=True)
