"""What `panel` does: check everything, estimate, ask whether to spend, ask the judges, write ratings and say what came
of it."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ..contracts import load_contract
from ..conversation import Conversation
from ..errors import (
    EXIT_INTERRUPTED,
    EXIT_JUDGE,
    EXIT_NOTHING_SCORED,
    EXIT_OK,
    AipsyJudgeError,
    InputError,
)
from ..judge import Judge, Rationale
from ..panel import (
    Estimate,
    Member,
    PanelResult,
    Task,
    estimate,
    finished,
    kin,
    load_prices,
    panel_result,
    plan_panel,
    run_panel,
    write_panel,
    write_panel_ratings,
)
from ..ratings.from_runs import generator_of
from ..report.text import open_console
from ..report.visible import visible
from ..rubric import Rubric
from ..runs_info import RUN, describe_run, read_info
from ..runs_store import check_alike
from ..transcripts.sources import STDIN
from ..verdict import Verdict
from ..weights import file_sha256, find_weights
from .inputs import Inputs, check_inputs, stdin_read_again
from .json_output import check_json_target, write_json
from .judge_options import JudgeChoice
from .panel_console import print_estimates, print_result
from .panel_json import result_to_dict
from .progress import Progress, progress


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `panel`. `json` "-" is stdout, and then the tables go to stderr."""

    rationale: Rationale
    out: str
    resume: bool
    price: str | None
    yes: bool
    json: str | None


def ask_panel(files: Sequence[str], names: Sequence[str], choice: JudgeChoice, wanted: Wanted) -> int:
    """The whole of `panel`; its exit code. Raises AipsyJudgeError."""
    check_json_target(wanted.json)
    prices = load_prices(wanted.price) if wanted.price is not None else None
    rubric = choice.load_rubric()
    folder = Path(wanted.out)
    console = open_console(sys.stderr if wanted.json == "-" else sys.stdout)
    with stdin_read_again(files):
        inputs = check_inputs(files, rubric)
        for note in inputs.notes:
            click.echo(f"note: {visible(note)}", err=True)
        panel, asked = plan_panel(folder, names, rubric.hash, inputs.files, resume=wanted.resume)
        _check_members(asked, choice, folder, wanted.rationale)
        estimates = _estimate(asked, inputs, rubric, choice, folder, wanted.rationale)
        print_estimates(console, estimates, prices)
        _confirm(estimates, wanted, files)
        write_panel(folder, panel)
        try:
            errors = _ask([e.member for e in estimates if e.left], choice, inputs, folder, wanted, files)
        except KeyboardInterrupt:
            kept = f"what was answered is kept in {visible(str(folder))}: --resume goes on"
            click.echo(f"\ninterrupted; {kept}", err=True)
            return EXIT_INTERRUPTED
    result = panel_result(folder, panel.members, errors)
    ratings = write_panel_ratings(folder, result)
    print_result(console, result, inputs.units, prices, folder, ratings)
    write_json(wanted.json, result_to_dict(result, inputs.units, rubric))
    return _exit_code(result)


def _exit_code(result: PanelResult) -> int:
    if len(result.missing) == len(result.judges):
        return EXIT_NOTHING_SCORED
    return EXIT_JUDGE if result.given_up else EXIT_OK


def _check_members(members: Sequence[Member], choice: JudgeChoice, folder: Path, rationale: Rationale) -> None:
    """Raise AipsyJudgeError now for what would end a judge later: names, weights that are not here, another lane or
    other options than its run was begun with, and one judge under two names. Weights are not loaded for it."""
    names: dict[str, str] = {}
    for member in members:
        judge_id = _judge_id(member, choice, folder, rationale)
        if judge_id in names:
            raise InputError(f"the same judge as {names[judge_id]}", where=member.name, hint="Name each judge once.")
        names[judge_id] = member.name


def _judge_id(member: Member, choice: JudgeChoice, folder: Path, rationale: Rationale) -> str:
    if member.server is None and member.name != "fake":
        weights = find_weights(member.name, unblessed=choice.unblessed)
        return f"{weights.name}@{file_sha256(weights.model)}"
    with replace(choice, judge=member.name).open(announce=False) as judge:
        run = folder / member.folder
        if (run / RUN).exists():
            check_alike(read_info(run), describe_run(judge, rationale=rationale), where=str(run))
        return judge.lane.judge


def _estimate(
    members: Sequence[Member],
    inputs: Inputs,
    rubric: Rubric,
    choice: JudgeChoice,
    folder: Path,
    rationale: Rationale,
) -> list[Estimate]:
    """Estimates, in a reading that also finds out who wrote the replies; judges of their family are told of."""
    generators: Counter[str | None] = Counter()

    def read() -> Iterator[Conversation]:
        for conversation in inputs.read():
            generators[generator_of(conversation.metadata)] += 1
            yield conversation

    done = {m.name: finished(folder / m.folder) for m in members}
    found = estimate(members, read(), rubric, load_contract(choice.contract or "full"), rationale, done)
    for relative in kin(members, generators):
        click.echo(f"warning: {visible(relative.words)}", err=True)
    return found


def _confirm(estimates: Sequence[Estimate], wanted: Wanted, files: Sequence[str]) -> None:
    """Say which judge gets text on which other machine, and ask; nothing to ask where none is left to be asked."""
    remote = {e.member.name: e.member.host for e in estimates if e.items and e.member.host is not None}
    if remote and not wanted.yes and (STDIN in files or not sys.stdin.isatty()):
        raise InputError(
            f"text would be sent to {', '.join(map(str, dict.fromkeys(remote.values())))}, and there is nobody to ask",
            hint="--yes agrees to it.",
        )
    for name, host in remote.items():
        click.echo(visible(f"text leaves this machine: for {name} it is sent to {host}"), err=True)
    if remote and not wanted.yes and not click.confirm("Send it?", err=True):
        raise InputError("nothing was sent", hint="Leave out the judges on other machines, or agree.")


def _ask(
    members: Sequence[Member],
    choice: JudgeChoice,
    inputs: Inputs,
    folder: Path,
    wanted: Wanted,
    files: Sequence[str],
) -> dict[str, AipsyJudgeError]:
    def opened(member: Member) -> Judge:
        return replace(choice, judge=member.name).open(announce=False)

    task = Task(folder, inputs.read, opened, wanted.rationale, inputs.files)
    with progress(inputs.units * len(members)) as bar:
        # Two readers of one standard input would take each other's text away.
        return run_panel(task, members, _Told(bar), side_by_side=STDIN not in files)


class _Told:
    """A panel.Watch that moves the progress bar, and says on stderr who begins and who ends."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._lock = threading.RLock()

    def begun(self, member: Member, judge: Judge) -> None:
        self._say(f"{member.name}: begun" + "".join(f"; {r}" for r in judge.remarks if member.host is None))

    def had(self, member: Member, verdict: Verdict) -> None:
        with self._lock:
            self._bar.had(verdict)

    def kept(self, member: Member, verdict: Verdict) -> None:
        with self._lock:
            self._bar.kept(verdict)

    def warned(self, member: Member, warning: str) -> None:
        self._say(f"warning: {warning}")

    def ended(self, member: Member, error: AipsyJudgeError | None) -> None:
        if error is None:
            self._say(f"{member.name}: done")
            return
        self._say(f"{member.name}: given up, the others go on: {error}")
        if error.hint:
            self._say(f"  next: {error.hint}")

    def _say(self, text: str) -> None:
        with self._lock, self._bar.aside():
            click.echo(visible(text), err=True)
