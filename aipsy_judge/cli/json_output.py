"""`--json [FILE]` of every verb: a file that is there whole or not at all, or standard output."""

from __future__ import annotations

import sys
from typing import Any

from ..atomic import check_writable, write_text
from ..errors import InputError
from ..strict_json import dumps

STDOUT = "-"


def check_json_target(path: str | None) -> None:
    """Raise InputError, before work begins, where `path` cannot be written or holds something other than figures.

    `--json` may stand alone (it means stdout then), so that `--json chat.json` is soon typed by mistake.
    """
    if path is None or path == STDOUT:
        return
    check_writable(path)
    if not _is_replaceable(path):
        raise InputError(
            "exists and was not written by this command; it is not overwritten",
            where=path,
            hint="Name another file after --json, or write --json - for standard output.",
        )


def write_json(path: str | None, data: dict[str, Any]) -> None:
    """Write figures of a verb, marked as such; nothing where `path` is None."""
    if path is None:
        return
    text = dumps({"made_by": "aipsy-judge", **data}, indent=1) + "\n"
    if path == STDOUT:
        # As bytes: JSON is UTF-8, whatever the terminal's encoding.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    else:
        write_text(path, text)


def _is_replaceable(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except FileNotFoundError:
        return True
    return not start.strip() or b'"made_by": "aipsy-judge"' in start
