"""A stage of a run: made whole in a part folder and put in place in one step, reused while nothing it rests on changed.

`out/NAME/stage.json` holds what the outputs rest on (version of the stage's code, the recipe's keys that it reads,
sha256 of every input), the outputs' own hashes, and what they were made with (commit, versions, the whole recipe's
sha256). What rests on an output that came out the same is reused too.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import sync_folder, write_text
from aipsy_judge.errors import InputError
from aipsy_judge.strict_json import dumps, loads

from .file_hashes import data_sha256, file_sha256, folder_hashes
from .provenance import RECIPE, made_with, now

RECORD, KEY = "stage.json", ".key.json"


@dataclass(frozen=True, slots=True)
class Stage:
    """name      of the stage and of its folder
    version   of its code: raise it when the same inputs give other outputs
    settings  plain data: the recipe's keys that it reads, the rubric's hash
    inputs    label -> file or folder that it reads
    """

    name: str
    version: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, Path]

    def key(self) -> dict[str, Any]:
        """What the outputs rest on, as plain data. InputError where an input cannot be read."""
        hashes = {label: file_sha256(path) for label, path in sorted(self.inputs.items())}
        return {"version": self.version, "settings": dict(self.settings), "inputs": hashes}


@dataclass(frozen=True, slots=True)
class Made:
    """A finished stage. `why` says why it was made anew; None: it was reused."""

    folder: Path
    why: str | None


def make(
    out: Path,
    stage: Stage,
    work: Callable[[Path], None],
    *,
    resumable: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Made:
    """Reuse `out/NAME`, or let `work(part)` fill the folder `part` and put it in place.

    resumable  what a killed `work` left in `part` is handed to the next one, if it rests on the same things; without
               it a killed stage begins again. `part` may hold hidden files (.x) that the outputs do not rest on.

    Raises InputError where another program is making this stage, or an input changed while it was made.
    """
    out.mkdir(parents=True, exist_ok=True)
    folder, part = out / stage.name, part_of(out, stage)
    with _alone(out, stage.name):
        _mend(folder)
        key = stage.key()
        why = _stale(folder, key)
        if why is None:
            say(f"{stage.name}: nothing changed, reused")
            return Made(folder, None)
        say(f"{stage.name}: {why}")
        _begin(part, key, keep=resumable)
        started, recipe = time.monotonic(), _recipe(out)
        work(part)
        if stage.key() != key:
            raise InputError(f"an input of {stage.name} changed while it was read", hint="Run it again.")
        _put(part, folder, key, {**recipe, "seconds": round(time.monotonic() - started)})
    return Made(folder, why)


def part_of(out: Path, stage: Stage) -> Path:
    """The folder that `make` has filled."""
    return out / f".{stage.name}.part"


def is_current(out: Path, stage: Stage) -> bool:
    """Whether `make` would reuse it."""
    return _stale(out / stage.name, stage.key()) is None


def finished(out: Path, name: str) -> Path:
    """The folder of a stage that another program made. InputError where it is not there."""
    folder = out / name
    _mend(folder)
    if not (folder / RECORD).is_file():
        raise InputError(
            f"the stage {name} has not been made", where=str(folder), hint="python -m training.run RECIPE makes all."
        )
    return folder


def _stale(folder: Path, key: Mapping[str, Any]) -> str | None:
    """Why the stage must be made, None where it need not."""
    try:
        old = loads((folder / RECORD).read_bytes())
        old_key, old_outputs = old["key"], old["outputs"]
    except FileNotFoundError:
        return "not made yet" if not folder.exists() else f"{RECORD} is missing, made anew"
    except (OSError, ValueError, KeyError, TypeError):
        return f"{RECORD} is damaged, made anew"
    changed = list(_changes(old_key, key))
    if changed:
        return f"{', '.join(changed[:4])}{', ...' if len(changed) > 4 else ''} changed, made anew"
    if old_outputs != _outputs(folder):
        return "its own files were changed, made anew"
    return None


def _changes(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Names of what differs between two keys."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*new, *old]):
            inner = name if path in ("", "settings", "inputs") else f"{path}.{name}"
            yield from _changes(old.get(name), new.get(name), inner)
        return
    yield path or "everything"


def _outputs(folder: Path) -> dict[str, str]:
    return {name: digest for name, digest in folder_hashes(folder).items() if name != RECORD}


def _begin(part: Path, key: Mapping[str, Any], *, keep: bool) -> None:
    digest = data_sha256(key)
    if part.exists() and not (keep and _text(part / KEY) == digest):
        shutil.rmtree(part)
    part.mkdir(exist_ok=True)
    write_text(part / KEY, digest)


def _recipe(out: Path) -> dict[str, str]:
    """The recipe that lies in the run's folder now: another program may put another one there later."""
    return {"recipe_sha256": file_sha256(out / RECIPE)} if (out / RECIPE).is_file() else {}


def _put(part: Path, folder: Path, key: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """The record is written last: a folder without it is not finished."""
    told = {"key": key, "outputs": _outputs(part), "made": {**made_with(), "created": now(), **made}}
    write_text(part / RECORD, dumps(told, indent=1) + "\n")
    (part / KEY).unlink()
    old = _old(folder)
    if folder.exists():
        os.replace(folder, old)
    os.replace(part, folder)
    sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _mend(folder: Path) -> None:
    """Killed between the two renames, the former folder still stands aside."""
    old = _old(folder)
    if old.exists():
        if folder.exists():
            shutil.rmtree(old)
        else:
            os.replace(old, folder)


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


@contextmanager
def _alone(out: Path, name: str) -> Iterator[None]:
    """Two programs that make one stage at once would spoil each other's part; the system frees the lock of a killed
    one."""
    with (out / f".{name}.lock").open("a") as handle:  # "w" would write anew what is only locked
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows: no such lock
            pass
        except OSError as error:
            raise InputError(
                "another program is making this stage", where=str(out / name), hint="Wait for it, or use another --out."
            ) from error
        yield
