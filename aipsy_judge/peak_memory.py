"""The most memory that this process has held."""

from __future__ import annotations

import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_bytes(status: Path = _STATUS) -> int:
    """Peak resident set of this process in bytes; 0 where the system does not say (Windows).

    Linux's own line first: what getrusage says there is handed on by whoever started the process, so that a small
    program started by a large one had held all that the large one holds.
    """
    try:
        lines = status.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return _as_getrusage_says()


def _as_getrusage_says() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # bytes on macOS, KiB on Linux
