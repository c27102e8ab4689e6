"""What `score` does: check everything, open the judge, judge, write; nothing is written before its content is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..atomic import check_writable, write_text
from ..conversation import Conversation
from ..errors import EXIT_GATE, EXIT_INTERRUPTED, EXIT_NOTHING_SCORED, EXIT_OK, AipsyJudgeError, InputError
from ..gate import GateResult, check, describe
from ..gate_file import Gate, load_gate
from ..judge import Judge, Rationale
from ..report.result import Origin, result_text
from ..report.text import (
    FULL_CONVERSATIONS,
    open_console,
    print_applied,
    print_conversation,
    print_end,
    print_judge,
    print_overview,
)
from ..report.visible import visible
from ..runs import RunView, view
from ..runs_info import describe_run
from ..runs_store import Run, StoredVerdicts, check_folder, open_run
from ..scoring import score_into
from ..summary import Brief, ConversationSummary, brief, summarise, total_coverage
from ..units import units
from ..verdict import Verdict
from .inputs import Inputs, check_inputs, stdin_read_again
from .json_output import check_json_target, write_pieces
from .judge_options import JudgeChoice
from .progress import Progress, progress

if TYPE_CHECKING:
    from rich.console import Console

    from ..correction.applied import Applied


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where results go; None: nowhere. `json` "-" is stdout, and then the table goes to stderr. `correction`: shown
    beside the raw scores."""

    json: str | None = None
    out: str | None = None
    resume: bool = False
    redact: bool = False
    html: str | None = None
    junit: str | None = None
    gate: str | None = None
    correction: str | None = None


@dataclass(slots=True)
class Judged:
    """What has come in so far, in few words: verdicts are with the run. Texts are held only for a report that shows
    them."""

    verdicts: int = 0
    units: dict[str, list[int | None]] = field(default_factory=dict)
    briefs: list[Brief] = field(default_factory=list)
    texts: list[Conversation] = field(default_factory=list)
    origins: dict[str, Origin] = field(default_factory=dict)


def score_files(files: Sequence[str], choice: JudgeChoice, rationale: Rationale, outputs: Outputs) -> int:
    """The whole of `score`; its exit code. Raises AipsyJudgeError."""
    check_outputs(outputs, choice)
    gate = load_gate(outputs.gate) if outputs.gate is not None else None
    applied = _load_applied(outputs.correction)
    rubric = choice.load_rubric()
    with stdin_read_again(files):
        inputs = check_inputs(files, rubric)
        _refuse_to_overwrite(inputs, outputs)
        for note in inputs.notes:
            click.echo(f"note: {visible(note)}", err=True)
        with choice.open() as judge:
            if applied is not None:
                applied.check(judge.lane.judge, judge.lane.rubric)
            info = describe_run(judge, rationale=rationale, redacted=outputs.redact)
            with open_run(outputs.out, info, resume=outputs.resume, inputs=inputs.files) as run:
                return _score(run, judge, inputs, outputs, gate, applied)


def _load_applied(path: str | None) -> Applied | None:
    if path is None:
        return None
    from ..correction.applied import load_applied

    return load_applied(path)


def check_outputs(outputs: Outputs, choice: JudgeChoice) -> None:
    """Raise InputError for what would fail after hours of judging, or make a figure that means nothing."""
    if outputs.gate is not None and choice.judge is None:
        raise InputError(
            "--gate wants the judge named with --judge",
            hint="Thresholds hold for one judge; which is the best installed one changes with the machine.",
        )
    if outputs.resume and outputs.out is None:
        raise InputError("--resume wants --out DIR, the run to go on with")
    if outputs.out is not None:
        check_folder(Path(outputs.out), resume=outputs.resume)
    check_json_target(outputs.json)
    for path in (outputs.html, outputs.junit):
        if path is not None:
            check_writable(path)


def _refuse_to_overwrite(inputs: Inputs, outputs: Outputs) -> None:
    taken = {os.path.realpath(f.path) for f in inputs.files}
    if outputs.correction is not None:
        taken.add(os.path.realpath(outputs.correction))
    for path in (outputs.json, outputs.html, outputs.junit):
        if path is None:
            continue
        if os.path.realpath(path) in taken:
            raise InputError("is an input or another output; it is not overwritten", where=path)
        taken.add(os.path.realpath(path))


def _score(run: Run, judge: Judge, inputs: Inputs, outputs: Outputs, gate: Gate | None, applied: Applied | None) -> int:
    console = open_console(sys.stderr if outputs.json == "-" else sys.stdout)
    for warning in run.warnings:
        click.echo(f"warning: {warning}", err=True)
    print_judge(console, judge.lane, judge.rubric, judge.remarks)
    if applied is not None:
        print_applied(console, judge.rubric, applied)
    judged = Judged()
    try:
        _judge_all(run, judge, inputs, outputs, judged, console, applied)
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted after {_what_is_kept(run, judged, inputs)}", err=True)
        return EXIT_INTERRUPTED
    except AipsyJudgeError:
        click.echo(f"stopped after {_what_is_kept(run, judged, inputs)}", err=True)
        raise
    return _finish(run, judged, outputs, gate, console, applied)


def _judge_all(
    run: Run,
    judge: Judge,
    inputs: Inputs,
    outputs: Outputs,
    judged: Judged,
    console: Console,
    applied: Applied | None,
) -> None:
    live = inputs.conversations <= FULL_CONVERSATIONS
    unit = "turn" if judge.rubric.unit == "turn" else "conversation"
    with progress(inputs.units, unit=unit) as watched:
        for conversation in inputs.read():
            verdicts = _judge_one(run, judge, conversation, judged, watched)
            if outputs.html is not None and not run.info.redacted:
                judged.texts.append(conversation)
            warnings = () if run.info.redacted else conversation.warnings
            judged.origins[conversation.id] = Origin(conversation.source, warnings)
            judged.units[conversation.id] = [v.turn for v in verdicts]
            (summary,) = summarise(judge.rubric, units(view(run.info, [], verdicts)))
            judged.briefs.append(brief(summary))
            if live:
                with watched.aside():
                    print_conversation(console, judge.rubric, summary, warnings, applied)


def _judge_one(run: Run, judge: Judge, conversation: Conversation, judged: Judged, watched: Progress) -> list[Verdict]:
    def had(verdict: Verdict) -> None:
        judged.verdicts += 1
        watched.had(verdict)

    def kept(verdict: Verdict) -> None:
        judged.verdicts += 1
        watched.kept(verdict)

    return score_into(run, judge, conversation, on_kept=kept, on_verdict=had)


def _finish(
    run: Run, judged: Judged, outputs: Outputs, gate: Gate | None, console: Console, applied: Applied | None
) -> int:
    if len(judged.briefs) > FULL_CONVERSATIONS:
        print_overview(console, run.info.rubric, judged.briefs, lambda id: _summary(run, judged, id), applied)
    print_end(console, judged.briefs)
    if run.folder is not None:
        console.print(f"run kept in {run.folder}")
    places = [(id, turn) for id, turns in judged.units.items() for turn in turns]
    found = view(run.info, judged.texts, StoredVerdicts(run, places))
    gated = check(found, gate) if gate is not None else None
    if gated is not None:
        for line in describe(gated):
            console.print(visible(line))
    for path in _write(run, found, judged, outputs, gated, applied):
        console.print(f"written: {visible(path)}")
    if gated is not None and not gated.passed:
        return EXIT_GATE
    return EXIT_OK if any(b.coverage.scored for b in judged.briefs) else EXIT_NOTHING_SCORED


def _summary(run: Run, judged: Judged, id: str) -> ConversationSummary:
    verdicts = [run.verdict(id, turn) for turn in judged.units[id]]
    (summary,) = summarise(run.info.rubric, units(view(run.info, [], verdicts)))
    return summary


def _write(
    run: Run, found: RunView, judged: Judged, outputs: Outputs, gated: GateResult | None, applied: Applied | None
) -> list[str]:
    """Content is made before it is put in place; a file that cannot be written does not cost the others."""
    items = ((_summary(run, judged, id), origin) for id, origin in judged.origins.items())
    gate = gated.to_dict() if gated is not None else None
    jobs: list[tuple[str | None, Callable[[str], object]]] = [
        (outputs.html, lambda path: write_text(path, _html(found, applied))),
        (outputs.junit, lambda path: write_text(path, _junit(found, gated))),
        (
            outputs.json,
            lambda path: write_pieces(path, result_text(run.info, total_coverage(judged.briefs), gate, items, applied)),
        ),
    ]
    faults: list[AipsyJudgeError] = []
    written: list[str] = []
    for path, write in jobs:
        if path is None:
            continue
        try:
            write(path)
        except AipsyJudgeError as fault:
            faults.append(fault)
        else:
            written += [path] if path != "-" else []
    if faults:
        raise faults[0]
    return written


def _html(found: RunView, applied: Applied | None) -> str:
    from ..report.html import render_html

    return render_html(found, applied)


def _junit(found: RunView, gated: GateResult | None) -> str:
    from ..report.junit import render_junit

    return render_junit(found, gated)


def _what_is_kept(run: Run, judged: Judged, inputs: Inputs) -> str:
    count = f"{judged.verdicts} of {inputs.units} verdicts"
    if run.folder is None:
        return f"{count}; none is kept (with --out DIR they are, and --resume goes on)"
    return f"{count}; they are kept in {run.folder}: the same command with --resume goes on"
