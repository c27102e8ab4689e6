"""One dialogue through the model of EMPA: its forms, given or filled by a judge, to figures and pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ..atomic import check_writable, write_text
from ..conversation import Conversation
from ..epm.as_json import dialogue_to_dict
from ..epm.cases import Case, evaluate_cases
from ..epm.forms import UNNAMED, Forms
from ..epm.forms_file import parse_forms, read_forms
from ..epm.imputation import check_strictness
from ..epm.judged_file import check_quotes, judged_to_dict
from ..epm.judging import judge_dialogue
from ..epm.pack import Pack
from ..epm.parameters import Parameters
from ..epm.remarks import remarks
from ..epm.report import dialogue_report
from ..epm.sheets import dialogue_sheet
from ..errors import EXIT_NOTHING_SCORED, EXIT_OK, InputError
from ..judge import Judge, JudgeOptions
from ..opening import open_judge
from ..report.wording import plural
from ..rubric import Rubric
from ..strict_json import dumps
from ..transcripts import read
from .epm_console import console, make_folder, show, show_notes


@dataclass(frozen=True, slots=True)
class Source:
    """What is evaluated: a dialogue, and either forms that are filled or a card and a judge to fill them.

    id, model  which conversation of the file, and what to call the model; `every` turns a rating covers
    """

    dialogue: str
    persona: Path | None
    levels: Path | None
    id: str | None
    model: str | None
    every: int
    judge: str | None
    adapter: str | None
    options: JudgeOptions


def evaluate_dialogue(
    source: Source, pack: Pack, parameters: Parameters, *, strict: bool, out: Path | None, json_path: Path | None
) -> int:
    """Print the table, write what was asked for; the exit code."""
    check_strictness(parameters, strict)
    if json_path is not None:
        check_writable(json_path)
    make_folder(out)
    conversation = _conversation(source)
    card = _card(source.persona)
    if source.levels is not None:
        forms = _given_forms(source, source.levels, conversation, pack)
    elif card is not None:
        filled = _filled_forms(source, conversation, card, pack)
        forms = parse_forms(filled, pack.space, where=source.dialogue)
        if out is not None:
            write_text(out / "forms.json", dumps(filled, indent=1) + "\n")
    else:
        raise InputError(
            "neither levels nor a persona card",
            where=source.dialogue,
            hint="Give --persona CARD for a judge to fill the forms, or --levels FORMS that are filled.",
        )
    check_quotes(forms, conversation, card)
    (result,) = evaluate_cases([forms], pack.space, parameters, strict=strict)
    screen = console()
    if isinstance(result, Case):
        show(screen, dialogue_sheet(result))
        click.echo(result.end)
    show_notes(screen, remarks([result], parameters))
    data = dumps(dialogue_to_dict(result, pack, parameters), indent=1) + "\n"
    if json_path is not None:
        write_text(json_path, data)
    if out is not None:
        write_text(out / "result.json", data)
        write_text(out / "report.html", dialogue_report(result, pack, parameters))
    return EXIT_OK if isinstance(result, Case) else EXIT_NOTHING_SCORED


def _conversation(source: Source) -> Conversation:
    found = read(source.dialogue)
    if source.id is not None:
        found = [c for c in found if c.id == source.id]
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"{plural(len(found), 'conversation')}{f' called {source.id!r}' if source.id else ''} in it, one is evaluated "
        "at a time",
        where=source.dialogue,
        hint="Choose one with --id; many filled forms are compared by `aipsy-judge epm compare`.",
    )


def _card(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error


def _given_forms(source: Source, path: Path, conversation: Conversation, pack: Pack) -> Forms:
    """The forms of this dialogue: as many ratings as its turns make."""
    found = read_forms(path, pack.space)
    if len(found) != 1:
        raise InputError(f"forms of {len(found)} dialogues", where=str(path), hint="Compare them: epm compare.")
    forms, turns = found[0], len(conversation.turns)
    if len(forms.turn_levels) != -(-turns // forms.every):
        raise InputError(
            f"{len(forms.turn_levels)} ratings of {forms.every} turns each do not make the {turns} turns of "
            f"{conversation.id}",
            where=str(path),
        )
    case = conversation.id if forms.case == UNNAMED else forms.case
    return replace(forms, model=source.model or forms.model, case=case, logged_turns=turns)


def _filled_forms(source: Source, conversation: Conversation, card: str, pack: Pack) -> dict[str, Any]:
    told = str(conversation.metadata.get("model") or UNNAMED)
    judged = judge_dialogue(
        conversation,
        card,
        pack,
        _opener(source),
        every=source.every,
        on_form=_progress if sys.stderr.isatty() else _quiet,
    )
    return judged_to_dict(judged, pack, model=source.model or told, case=conversation.id, turns=len(conversation.turns))


def _opener(source: Source) -> Callable[[Rubric], Judge]:
    said: list[str] = []

    def open_for(rubric: Rubric) -> Judge:
        # The forms are rubrics of their own: only the contract that shows a whole rubric can ask them.
        judge = open_judge(source.judge, rubric=rubric, contract="full", adapter=source.adapter, options=source.options)
        if judge.is_remote and not said:
            said.extend(judge.remarks)
            for remark in judge.remarks:
                click.echo(remark, err=True)
        return judge

    return open_for


def _progress(done: int, total: int) -> None:
    click.echo(f"\rform {done} of {total}" + ("\n" if done == total else ""), nl=False, err=True)


def _quiet(done: int, total: int) -> None:
    """Nobody is watching."""
