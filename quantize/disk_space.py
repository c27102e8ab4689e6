"""Whether what is to be written fits, asked before hours of writing."""

from __future__ import annotations

import shutil
from pathlib import Path

from aipsy_judge.errors import CapacityError

_MARGIN_BYTES = 64 << 20  # tokenizer, templates, records; and a disk filled to the last byte harms everything else


def check_disk(folder: Path, needed_bytes: int) -> None:
    """Raise CapacityError if `needed_bytes` do not fit the disk of `folder`, which need not exist yet."""
    there = folder.resolve()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if needed_bytes + _MARGIN_BYTES > free:
        raise CapacityError(
            f"{(needed_bytes + _MARGIN_BYTES) / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB are free",
            where=str(there),
            hint="Free the space or name an --out on another disk.",
        )
