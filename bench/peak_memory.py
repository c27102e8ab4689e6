"""The memory that a command and its children have at their worst, and how long they take.

Two figures, since a mapped file counts as resident although the system can drop its pages at any time:
anonymous (what the program itself holds; this is what must fit) and resident (pages of mapped files included).
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aipsy_judge.errors import BackendError

_EVERY_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock; bytes at the worst moment, summed over the command and its children. anonymous_bytes is
    None where the system does not tell it (other than Linux)."""

    seconds: float
    resident_bytes: int
    anonymous_bytes: int | None


def cost_of(command: Sequence[str]) -> Cost:
    """Run `command` to its end. Raises BackendError with its last line where it fails."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peaks = [0, 0]
    watcher = threading.Thread(target=_watch, args=(process, peaks), daemon=True)
    watcher.start()
    _, said = process.communicate()
    watcher.join()
    seconds = time.perf_counter() - begun
    if process.returncode != 0:
        raise BackendError(f"{' '.join(command[1:4])} failed: {(said.strip().splitlines() or [''])[-1]}")
    linux = peaks[0] > 0
    return Cost(seconds, peaks[0] if linux else _children_peak(), peaks[1] if linux else None)


def _watch(process: subprocess.Popen[str], peaks: list[int]) -> None:
    while process.poll() is None:
        now = [_memory(pid) for pid in _family(process.pid)]
        for at in range(2):
            peaks[at] = max(peaks[at], sum(row[at] for row in now))
        time.sleep(_EVERY_SECONDS)


def _family(pid: int) -> Iterator[int]:
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = file.read_text().split()
        except OSError:  # it ended meanwhile
            continue
        for child in children:
            yield from _family(int(child))


def _memory(pid: int) -> tuple[int, int]:
    """(resident, anonymous) bytes of a process now; zeros where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return _bytes(fields.get("VmRSS")), _bytes(fields.get("RssAnon"))


def _bytes(field: str | None) -> int:
    return int(field.split()[0]) * 1024 if field else 0


def _children_peak() -> int:
    """The largest of all children so far, where nothing better is to be had: figures can only be too high."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
