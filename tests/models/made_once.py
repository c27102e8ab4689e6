"""What is dear to make and asked for by many tests: made once a clone and kept in `.cache/` there.

Tests run in several processes: whoever comes first makes it, the others wait and take it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

CACHE = Path(__file__).resolve().parents[2] / ".cache"


@contextmanager
def one_at_a_time(target: Path) -> Iterator[None]:
    """No other process is in such a block of the same target: look for it inside, and make it there."""
    target.parent.mkdir(exist_ok=True)
    with FileLock(target.parent / f".{target.name}.lock"):
        yield
