"""A program of the chain, run as one: whoever ends the chain ends it too."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Sequence
from types import FrameType

GRACE_SECONDS = 10.0


def run_child(command: Sequence[str]) -> int:
    """Its exit code, -N where signal N ended it. Call it from the main thread.

    SIGTERM goes on to the program, and it is waited for. Without that a chain that a job scheduler ends would leave a
    training behind that nobody sees, and that holds the run against the one that is to go on with it.
    """
    process = subprocess.Popen(command)
    with _handed_on(process):
        try:
            return process.wait()
        except KeyboardInterrupt:  # a terminal sends Ctrl-C to both
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            raise
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


@contextlib.contextmanager
def _handed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    def hand_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, hand_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
