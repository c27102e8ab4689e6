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
    with _handed_on() as ending:
        process = subprocess.Popen(command)
        ending.to(process)
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


class _Ending:
    """Hands SIGTERM on to a program; one that comes while the program is being started, as soon as it is there."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early = False

    def to(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._early:
            process.send_signal(signal.SIGTERM)

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._early = True
        else:
            self._process.send_signal(number)


@contextlib.contextmanager
def _handed_on() -> Iterator[_Ending]:
    """From before the program is started, so that no signal ends the chain alone."""
    ending = _Ending()
    before = signal.signal(signal.SIGTERM, ending)
    try:
        yield ending
    finally:
        signal.signal(signal.SIGTERM, before)
