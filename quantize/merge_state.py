"""What of a merge is done: kept beside the unfinished files, so that a stopped merge goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import write_text
from aipsy_judge.errors import InputError

from .checkpoint import Checkpoint, read_json
from .lora import Adapter
from .merge_shard import Effect, MergedFile

STATE, RECORD = "merge-state.json", "merged.json"
_AWAY = "Move it away."


@dataclass(slots=True)
class MergeState:
    """`key` says what is merged into what; `done` the finished files by name."""

    folder: Path
    key: str
    done: dict[str, MergedFile] = field(default_factory=dict)

    def add(self, file: MergedFile) -> None:
        """Record a finished file; it is not merged again, whatever happens."""
        self.done[file.name] = file
        data = {"key": self.key, "done": [asdict(f) for f in self.done.values()]}
        write_text(self.folder / STATE, json.dumps(data))


def merge_key(base: Checkpoint, adapter: Adapter) -> str:
    """Another base, adapter or setting gives another key. The base's files go in by head, size and time of change:
    reading all of them would take as long as the merge."""
    seen: list[Any] = [adapter.sha256(), dict(adapter.config)]
    for file in base.files:
        seen.append([file.path.name, hashlib.sha256(file.head).hexdigest(), file.size_bytes, _changed(file.path)])
    return hashlib.sha256(json.dumps(seen, sort_keys=True, default=str).encode()).hexdigest()


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns


def open_state(folder: Path, key: str) -> MergeState:
    """The state in `folder`, made if need be. What another merge left there is thrown away, what does not look like a
    merge is not touched: InputError."""
    folder.mkdir(parents=True, exist_ok=True)
    _remove_half_written(folder)
    names = {p.name for p in folder.iterdir()}
    if not names:
        state = MergeState(folder, key)
        write_text(folder / STATE, json.dumps({"key": key, "done": []}))
        return state
    if STATE not in names:
        raise InputError("is there already and is no unfinished merge", where=str(folder), hint=_AWAY)
    data = read_json(folder / STATE)
    if data.get("key") != key:
        # the state last: without it nothing would say that the rest may be thrown away
        for name in (*sorted(names - {STATE}), STATE):
            (folder / name).unlink()
        return open_state(folder, key)
    state = MergeState(folder, key)
    for file in _done(data, folder / STATE):
        if _is_whole(folder / file.name, file):
            state.done[file.name] = file
    return state


def _remove_half_written(folder: Path) -> None:
    """What a process that was killed while it wrote the state or the record left under a passing name (atomic.py)."""
    for name in (STATE, RECORD):
        for path in folder.glob(f".{name}.*.tmp"):
            path.unlink()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """`folder`, made if need be, for this process only: two merges into one would write the same files at once, and
    the slower one's would be cut off under the name of a whole one. InputError where another has it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows: no such lock
        yield
        return
    handle = os.open(folder, os.O_RDONLY)  # of the folder itself, so that no file of the lock's is left in it
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise InputError(
            "another program is merging into this folder", where=str(folder), hint="Wait for it, or name another --out."
        ) from error
    try:
        yield
    finally:
        os.close(handle)


def _done(data: Mapping[str, Any], path: Path) -> list[MergedFile]:
    try:
        return [MergedFile(**entry | {"effects": _effects(entry["effects"])}) for entry in data["done"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError("is not what an unfinished merge writes", where=str(path), hint=_AWAY) from error


def _effects(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Effect]:
    return {name: Effect(**effect) for name, effect in data.items()}


def _is_whole(path: Path, file: MergedFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size_bytes:
        return False
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
