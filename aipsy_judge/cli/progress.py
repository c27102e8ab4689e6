"""Progress on stderr, turn by turn with the time left; only where somebody is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from ..verdict import Verdict

# The estimate of the time left looks back this far: a turn may take minutes.
LOOK_BACK_SECONDS = 24 * 3600.0


class Progress(Protocol):
    """Told of every verdict: `had` of a new one, `kept` of one that need not be had."""

    def had(self, verdict: Verdict) -> None: ...
    def kept(self, verdict: Verdict) -> None: ...
    def aside(self) -> AbstractContextManager[None]:
        """While something is printed to the same terminal."""


class _Silent:
    def had(self, verdict: Verdict) -> None: ...
    def kept(self, verdict: Verdict) -> None: ...
    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()


@contextmanager
def progress(units: int, *, unit: str = "turn") -> Iterator[Progress]:
    """Shows `units` verdicts coming in. Silent where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    bar = Bar(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        speed_estimate_period=LOOK_BACK_SECONDS,
    )
    with bar:
        yield _Shown(bar, units, unit)


class _Shown:
    def __init__(self, bar: object, units: int, unit: str) -> None:
        from rich.progress import Progress as Bar

        assert isinstance(bar, Bar)
        self._bar = bar
        self._unit = unit
        self._left = units
        self._task = bar.add_task(f"first {unit}", total=units)

    def had(self, verdict: Verdict) -> None:
        self._bar.update(self._task, advance=1, description=_words(verdict))

    def kept(self, verdict: Verdict) -> None:
        # Taken off the total, not put on what is done: it took no time, and would make the rest look as quick.
        self._left -= 1
        self._bar.update(self._task, total=self._left)

    @contextmanager
    def aside(self) -> Iterator[None]:
        self._bar.stop()  # takes the line off the terminal
        yield
        self._bar.start()


def _words(verdict: Verdict) -> str:
    from ..report.visible import visible

    id = visible(" ".join(verdict.conversation_id.split()), keep_newlines=False)
    short = id if len(id) <= 30 else id[:29] + "…"
    return short if verdict.turn is None else f"{short} turn {verdict.turn}"
