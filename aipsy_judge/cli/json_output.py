"""`--json [FILE]` of every verb: a file that is there whole or not at all, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from .. import atomic
from ..errors import InputError
from ..strict_json import dumps

STDOUT = "-"


def check_json_target(path: str | None) -> None:
    """Raise InputError, before work begins, where `path` cannot be written or holds something other than figures.

    `--json` may stand alone (it means stdout then), so that `--json chat.json` is soon typed by mistake.
    """
    if path is None or path == STDOUT:
        return
    atomic.check_writable(path)
    if not _is_replaceable(path):
        raise InputError(
            "exists and was not written by this command; it is not overwritten",
            where=path,
            hint="Name another file after --json, or write --json - for standard output.",
        )


def write_json(path: str | None, data: dict[str, Any]) -> None:
    """Write figures of a verb, marked as such; nothing where `path` is None."""
    write_pieces(path, [dumps({"made_by": "aipsy-judge", **data}, indent=1) + "\n"])


def write_pieces(path: str | None, pieces: Iterable[str]) -> None:
    """Write JSON text that comes in pieces; nothing where `path` is None."""
    if path is None:
        return
    # As bytes: JSON is UTF-8, whatever the terminal's encoding.
    data = (piece.encode("utf-8") for piece in pieces)
    if path != STDOUT:
        atomic.write_pieces(path, data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.writelines(data)
    sys.stdout.buffer.flush()


def _is_replaceable(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except FileNotFoundError:
        return True
    return not start.strip() or b'"made_by": "aipsy-judge"' in start
