"""The judges that are open in this process: each is loaded once, whatever asks for it, and closed when it ends.

Inspect runs many samples at a time on an event loop; a judge works in its own thread, one conversation after another,
so a figure does not depend on what else is being scored.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from ..backends.server_name import parse_server_name
from ..contracts import load_contract
from ..errors import AipsyJudgeError, BackendError, ContractError, InputError
from ..judge import JudgeOptions, Rationale
from ..local_judge import LocalJudge
from ..open_local import settle
from ..opening import check_no_adapter, is_served, open_judge
from ..rubric import DEFAULT_RUBRIC, Rubric, load_rubric
from ..server.assembly import make_served
from ..server.refusal import Refusal
from ..server.serving import Served, ServeOptions

STAND_IN = "fake"
QUEUE = 1_000_000  # samples wait here, as they would for a model's connection; none is turned away


@dataclass(frozen=True, slots=True)
class Choice:
    """What names a judge and can change its figures; see opening.open_judge and judge.JudgeOptions."""

    judge: str | None = None
    rubric: str | None = None
    contract: str | None = None
    adapter: str | None = None
    threads: int = 0
    memory_gb: float = 4.0
    window: bool = False
    unblessed: bool = False

    @property
    def options(self) -> JudgeOptions:
        return JudgeOptions(
            threads=self.threads, memory_gb=self.memory_gb, window=self.window, unblessed=self.unblessed
        )


_open: dict[Choice, Served] = {}
_opening = threading.Lock()


def check(choice: Choice) -> Rubric:
    """The rubric; raises what opening the judge would raise, as far as that is known without loading it: before a
    target is paid.

    Without a name nothing of the weights is looked at: Inspect also makes a scorer to read a log with.
    """
    rubric = load_rubric(choice.rubric if choice.rubric is not None else DEFAULT_RUBRIC)
    if choice.judge is None:
        if choice.contract is not None:
            load_contract(choice.contract)
    elif is_served(choice.judge):
        check_no_adapter(choice.judge, choice.adapter)
        load_contract(choice.contract or "full")
        if choice.judge != STAND_IN:
            parse_server_name(choice.judge)
    else:
        adapter = Path(choice.adapter) if choice.adapter is not None else None
        settle(choice.judge, rubric, choice.contract, adapter, unblessed=choice.unblessed)
    return rubric


def check_rationale(rationale: str) -> None:
    """Raise InputError for a word that says nothing about when the judge says why."""
    if rationale not in ("always", "flagged", "never"):
        raise InputError(f"rationale is {rationale!r}", hint='"always", "flagged" or "never".')


async def judge_at_work(choice: Choice, *, rationale: Rationale, answer_as_own: bool = False) -> Served:
    """The judge with its thread; loaded where it is not. Raises as opening.open_judge."""
    try:
        served = await asyncio.to_thread(_opened, choice)
    except RuntimeError as error:
        if "no running event loop" not in str(error):
            raise
        raise InputError(
            "the judge works under asyncio alone", hint="Unset INSPECT_ASYNC_BACKEND, or set it to asyncio."
        ) from error
    return replace(served, options=replace(served.options, rationale=rationale, answer_as_own=answer_as_own))


async def never_gone() -> None:
    """Inspect cancels the task itself where nobody waits for an answer any more."""
    await asyncio.Event().wait()


def error_of(refusal: Refusal) -> AipsyJudgeError:
    """What the server would tell a client, as an error of this package."""
    match refusal.status:
        case 409:
            return ContractError(refusal.message, hint=refusal.hint)
        case 503:
            return BackendError(refusal.message, hint=refusal.hint, retryable=refusal.retry_after is not None)
        case _:
            return InputError(refusal.message, hint=refusal.hint)


def close_all() -> None:
    """Close every judge; asked again, one is opened anew. One on another server, which may not answer for long, is not
    waited for."""
    with _opening:
        for served in _open.values():
            served.scheduler.stop(grace_seconds=0, leave=not isinstance(served.judge, LocalJudge))
            served.judge.close()
        _open.clear()


def _opened(choice: Choice) -> Served:
    with _opening:
        if choice not in _open:
            judge = open_judge(
                choice.judge,
                rubric=choice.rubric,
                contract=choice.contract,
                adapter=choice.adapter,
                options=choice.options,
            )
            try:
                served = make_served(judge, ServeOptions(queue=QUEUE))
            except BaseException:
                judge.close()
                raise
            served.scheduler.start()
            _open[choice] = served
        return _open[choice]


atexit.register(close_all)
