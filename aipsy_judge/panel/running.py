"""Asking every judge of a panel about every item. Judges of one place take turns; places work side by side.

Only one judge of a place is open at a time, so that no two models share this machine's memory. One whose service
fails for good is given up, and the others go on. Every verdict is on the disk before the next is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..conversation import Conversation
from ..errors import AipsyJudgeError
from ..judge import Judge, Rationale
from ..runs_info import InputFile, describe_run
from ..runs_store import Run, open_run
from ..scoring import score_into
from ..verdict import Verdict
from .member import THIS_MACHINE, Member

# How long an interrupted panel waits for answers that are on their way; what comes later is asked for again.
LAST_WAIT_SECONDS = 2.0


class Watch(Protocol):
    """Told of what happens, by several threads at once."""

    def begun(self, member: Member, judge: Judge) -> None: ...
    def had(self, member: Member, verdict: Verdict) -> None: ...
    def kept(self, member: Member, verdict: Verdict) -> None: ...
    def warned(self, member: Member, warning: str) -> None: ...
    def ended(self, member: Member, error: AipsyJudgeError | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Task:
    """What every judge is to do. `read` gives the conversations anew each time it is called."""

    folder: Path
    read: Callable[[], Iterator[Conversation]]
    open: Callable[[Member], Judge]
    rationale: Rationale
    inputs: Sequence[InputFile]


class _Stopped(Exception):
    """The panel was interrupted while this judge was at work."""


def run_panel(
    task: Task, members: Sequence[Member], watch: Watch, *, side_by_side: bool = True
) -> dict[str, AipsyJudgeError]:
    """Ask all members; the errors of those that were given up, by name. `side_by_side` False: one after another.

    Judges of this machine are asked from the calling thread, so that an interrupt reaches them at once.
    """
    places: dict[str, list[Member]] = {}
    for member in members:
        places.setdefault(member.place if side_by_side else THIS_MACHINE, []).append(member)
    here = places.pop(THIS_MACHINE, [])
    work = _Work(task, watch)
    threads = [threading.Thread(target=work.do, args=(there,), daemon=True) for there in places.values()]
    for thread in threads:
        thread.start()
    try:
        work.do(here)
        for thread in threads:
            thread.join()
    finally:
        work.stop.set()
        for thread in threads:
            thread.join(LAST_WAIT_SECONDS)
    if work.faults:
        raise work.faults[0]
    return work.lost


class _Work:
    """What the threads share."""

    def __init__(self, task: Task, watch: Watch) -> None:
        self.task, self.watch = task, watch
        self.stop = threading.Event()
        self.lost: dict[str, AipsyJudgeError] = {}
        self.faults: list[BaseException] = []

    def do(self, members: Iterable[Member]) -> None:
        """Ask these members, one after another."""
        try:
            for member in members:
                self._ask(member)
        except _Stopped:
            return
        except Exception as fault:  # of our own: told by the calling thread, and no reason to stop the others
            self.faults.append(fault)

    def _ask(self, member: Member) -> None:
        try:
            with self.task.open(member) as judge:
                self.watch.begun(member, judge)
                info = describe_run(judge, rationale=self.task.rationale)
                folder = self.task.folder / member.folder
                with open_run(folder, info, resume=True, inputs=self.task.inputs) as run:
                    for warning in run.warnings:
                        self.watch.warned(member, warning)
                    self._judge_all(member, judge, run)
        except AipsyJudgeError as error:
            self.lost[member.name] = error
        self.watch.ended(member, self.lost.get(member.name))

    def _judge_all(self, member: Member, judge: Judge, run: Run) -> None:
        def had(verdict: Verdict) -> None:
            self.watch.had(member, verdict)
            if self.stop.is_set():
                raise _Stopped

        for conversation in self.task.read():
            if self.stop.is_set():
                raise _Stopped
            score_into(run, judge, conversation, on_kept=lambda v: self.watch.kept(member, v), on_verdict=had)
