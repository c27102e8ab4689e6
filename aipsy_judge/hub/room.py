"""Is there room on the disk? Asked before a download of many gigabytes, not found out at its end."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..errors import HubError

# Kept free beside the file itself: a full disk hurts whatever else runs here.
SLACK_BYTES = 256 * 2**20


def check_room(folder: Path, wanted_bytes: int) -> None:
    """Raise HubError where the disk of `folder` (which need not exist yet) has no room for so many bytes more."""
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(existing).free
    if free < wanted_bytes + SLACK_BYTES:
        missing = wanted_bytes + SLACK_BYTES - free
        raise HubError(
            f"not enough room: {words(wanted_bytes)} are to come and {words(SLACK_BYTES)} stay free, "
            f"but the disk has {words(free)}",
            where=str(folder),
            hint=f"Free {words(missing)}, or set AIPSY_JUDGE_CACHE to a folder on another disk. Nothing was fetched.",
        )


def words(size_bytes: int) -> str:
    """A size as people say it.

    >>> words(26_900_000_000), words(98_362_432), words(20_480)
    ('26.9 GB', '98.4 MB', '20.5 kB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} bytes"
