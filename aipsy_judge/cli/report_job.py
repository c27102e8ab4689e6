"""What `report` does: read the run, check its gate, write; nothing is written before its content is whole."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ..atomic import check_writable, write_text
from ..errors import EXIT_GATE, EXIT_NOTHING_SCORED, EXIT_OK, InputError
from ..gate import check, describe
from ..gate_file import load_gate
from ..report.html import render_html
from ..report.junit import render_junit
from ..report.visible import visible
from ..report.wording import plural
from ..runs import load_run
from ..units import by_conversation, units
from ..verdict import Scored

if TYPE_CHECKING:
    from ..correction.applied import Applied


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to write, the gate, and the correction to show; None: not."""

    html: str | None
    junit: str | None
    gate: str | None
    correction: str | None = None


def report_run(path: str, wanted: Wanted) -> int:
    """The whole of `report`; its exit code. Raises AipsyJudgeError."""
    _check_targets(path, wanted)
    gate = load_gate(wanted.gate) if wanted.gate is not None else None
    applied = _load_applied(wanted.correction)
    run = load_run(path)
    if applied is not None:
        applied.check(run.lane.judge, run.lane.rubric)
    result = check(run, gate) if gate is not None else None
    texts = {
        wanted.html: render_html(run, applied) if wanted.html is not None else "",
        wanted.junit: render_junit(run, result) if wanted.junit is not None else "",
    }
    for target, text in texts.items():
        if target is not None:
            write_text(target, text)
    found = units(run)
    if result is not None:
        # A run that was stopped knows only the conversations that it had begun.
        held = f"{plural(len(found), run.rubric.unit)} of {plural(len(by_conversation(found)), 'conversation')}"
        click.echo(f"The run holds {held}; input that it never reached is not known to it.")
        for line in describe(result):
            click.echo(visible(line))
        if not result.passed:
            return EXIT_GATE
    scored = any(isinstance(s, Scored) for u in found for s in u.scores.values())
    return EXIT_OK if scored else EXIT_NOTHING_SCORED


def _load_applied(path: str | None) -> Applied | None:
    if path is None:
        return None
    from ..correction.applied import load_applied

    return load_applied(path)


def _check_targets(path: str, wanted: Wanted) -> None:
    targets = [t for t in (wanted.html, wanted.junit) if t is not None]
    if not targets and wanted.gate is None:
        raise InputError("nothing to do", hint="Name what to make: --html FILE, --junit FILE or --gate FILE.")
    if wanted.correction is not None and wanted.html is None:
        raise InputError("--correction is shown in the report for people only", hint="Name it: --html FILE.")
    if len({os.path.realpath(t) for t in targets}) < len(targets):
        raise InputError("--html and --junit name the same file", where=targets[0])
    given = {os.path.realpath(p) for p in (path, wanted.gate, wanted.correction) if p is not None}
    for target in targets:
        if os.path.realpath(target) in given:
            raise InputError("is an input; it is not overwritten with the output", where=target)
        check_writable(target)
