"""Blind sheets for raters of the corpus, and their answers as a ratings table.

    python -m training.rating_sheet make training/corpus/conversations-01.jsonl --out sheet.txt
    python -m training.rating_sheet expand CONVERSATIONS... --out transcripts.jsonl
    python -m training.rating_sheet read answers.csv --rater strict --kind judge CONVERSATIONS... --out ratings.csv

A sheet holds a conversation once, with all replies to be rated in their places: those of the main line and, after
each, the alternatives to it in an order that a hash decides. Neither who wrote a reply nor what was intended by it
stands there. Answers are CSV: item, one column a flag's severity (or the flag), one a metric; NA where one does not
apply.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from aipsy_judge.atomic import write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import InputError, RatingsError
from aipsy_judge.ratings import item_id
from aipsy_judge.ratings.files import read_chunks
from aipsy_judge.rubric import FlagSpec, Metric, Rubric, load_rubric
from aipsy_judge.strict_json import dumps
from aipsy_judge.transcripts import read as read_conversations

from .alternatives import with_alternatives

NOT_APPLICABLE = "NA"
SHOWN = 20


def item_of(conversation: Conversation) -> dict[str, int]:
    """Names on the sheet and the turn each is: every turn of a main line, the last of an alternative's. In the
    ratings table an item is named as everywhere (ratings.item_id)."""
    if "origin" in conversation.metadata:
        return {conversation.id: len(conversation.turns)}
    return {f"{conversation.id}.t{turn.number}": turn.number for turn in conversation.turns}


def sheet(conversations: Sequence[Conversation]) -> str:
    """The text of a blind sheet for conversations, each followed by its alternatives (with_alternatives)."""
    lines: list[str] = []
    for main in (c for c in conversations if "origin" not in c.metadata):
        others = [c for c in conversations if c.metadata.get("origin") == main.id]
        lines += [f"=== {main.id}", *_conversation_lines(main, others), ""]
    return "\n".join(lines)


def _conversation_lines(main: Conversation, others: Sequence[Conversation]) -> Iterator[str]:
    number = 0
    for message in main.messages:
        if message.role != "assistant":
            yield f"[{message.role.upper()}] {message.content}"
            continue
        number += 1
        yield f"[REPLY {main.id}.t{number}] {message.content}"
        here = [c for c in others if len(c.turns) == number]
        for other in sorted(here, key=lambda c: hashlib.sha256(c.id.encode()).digest()):
            yield f"    [OTHER REPLY {other.id}, instead of {main.id}.t{number}] {other.messages[-1].content}"


def columns(rubric: Rubric) -> dict[str, tuple[str, ...]]:
    """What an answer's column may hold: levels of a flag's severity (yes and no without one), scale and NA."""
    legal = {
        (f.severity.name if f.severity else f.name): tuple(f.severity.levels) if f.severity else ("no", "yes")
        for f in rubric.flags
    }
    for metric in rubric.metrics:
        na = (NOT_APPLICABLE,) if metric.may_be_na else ()
        legal[metric.name] = (*map(str, metric.scale.values), *na)
    return legal


def read_answers(
    path: Path, conversations: Sequence[Conversation], rubric: Rubric, rater: str, kind: str, *, some: bool
) -> list[dict[str, str | int]]:
    """Rows of a ratings table. RatingsError with every fault: an item that is unknown, left out (unless `some` are
    enough) or answered twice, a value that is not legal, a metric scored against its flag; and where none is answered.
    """
    known = {item: (c, turn) for c in conversations for item, turn in item_of(c).items()}
    legal = columns(rubric)
    faults: list[str] = []
    rows: list[dict[str, str | int]] = []
    seen: set[str] = set()
    for number, answer in _answers(path, faults):
        item = answer["item"].strip()
        found = _faults(item, answer, known, seen, legal, rubric)
        seen.add(item)
        faults += [f"row {number}, {item}: {fault}" for fault in found]
        if not found:
            conversation, turn = known[item]
            about: dict[str, str | int] = {
                "item_id": item_id(conversation.id, turn),
                "conversation": conversation.id,
                "turn": turn,
                "rater": rater,
            }
            about |= {"scenario": str(conversation.metadata.get("scenario", "")), "rater_kind": kind}
            rows += [about | cells for cells in _cells(answer, rubric)]
    left = [item for item in known if item not in seen]
    if left and not some:
        faults.append(f"{len(left)} items are not answered: {', '.join(left[:SHOWN])}")
    if faults:
        raise RatingsError("answers that cannot be used:\n" + "\n".join(faults[:SHOWN]), where=str(path))
    return rows


def _answers(path: Path, faults: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(row, its cells) of every row; those that cannot be read become faults."""
    none = True
    for chunk in read_chunks(path):
        none = False
        if "item" not in chunk.columns:
            raise RatingsError(f"no column item; there are: {', '.join(chunk.columns)}", where=str(path))
        faults += [f"row {number}: {fault}" for number, fault in chunk.faults]
        for number, cells in zip(chunk.rows, zip(*chunk.columns.values(), strict=True), strict=True):
            told = zip(chunk.columns, cells, strict=True)
            yield number, {name: "" if cell is None else str(cell) for name, cell in told}
    if none:
        raise RatingsError("no answers in it", where=str(path))


def _faults(
    item: str,
    answer: Mapping[str, str | None],
    known: Mapping[str, object],
    seen: set[str],
    legal: Mapping[str, tuple[str, ...]],
    rubric: Rubric,
) -> list[str]:
    if item not in known:
        return ["no such item on the sheet"]
    faults = ["answered twice"] if item in seen else []
    for name, values in legal.items():
        if (answer.get(name) or "").strip() not in values:
            faults.append(f"{name} is {answer.get(name)!r}, not one of {', '.join(values)}")
    for flag in rubric.flags if not faults else ():
        for metric in (m for m in rubric.metrics if m.flag == flag.name):
            if _is_set(flag, answer) == ((answer[metric.name] or "").strip() == NOT_APPLICABLE):
                faults.append(f"{metric.name} is scored if and only if {flag.name} is set")
    return faults


def _is_set(flag: FlagSpec, answer: Mapping[str, str | None]) -> bool:
    if flag.severity is None:
        return (answer[flag.name] or "").strip() == "yes"
    return (answer[flag.severity.name] or "").strip() != flag.severity.unset


def _cells(answer: Mapping[str, str | None], rubric: Rubric) -> Iterator[dict[str, str | int]]:
    for flag in rubric.flags:
        yield {"metric": flag.name, "score": int(_is_set(flag, answer)), "status": "scored", **_scale(0, 1)}
        if flag.severity is not None:
            levels = list(flag.severity.levels)
            level = levels.index((answer[flag.severity.name] or "").strip())
            yield {"metric": flag.severity.name, "score": level, "status": "scored", **_scale(0, len(levels) - 1)}
    for metric in rubric.metrics:
        yield {"metric": metric.name, **_score(metric, (answer[metric.name] or "").strip())}


def _score(metric: Metric, value: str) -> dict[str, str | int]:
    scale = _scale(metric.scale.minimum, metric.scale.maximum)
    na = value == NOT_APPLICABLE
    return {"score": "" if na else int(value), "status": "na" if na else "scored", **scale}


def _scale(low: int, high: int) -> dict[str, int]:
    return {"scale_min": low, "scale_max": high}


def _table(rows: Sequence[Mapping[str, str | int]]) -> str:
    names = ["item_id", "conversation", "turn", "scenario", "rater", "rater_kind", "metric", "score", "status"]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*names, "scale_min", "scale_max"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _corpus(paths: Sequence[Path]) -> list[Conversation]:
    main = [c for path in paths for c in read_conversations(path)]
    return list(with_alternatives(main, paths))


def _messages(conversation: Conversation) -> list[dict[str, str]]:
    return [{"role": m.role, "content": m.content} for m in conversation.messages]


FILES = click.argument("conversations", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
OUT = click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path))


@click.group()
def command() -> None:
    """Blind sheets for raters of the corpus, and their answers as a ratings table."""


@command.command()
@FILES
@OUT
def make(conversations: Sequence[Path], out: Path) -> None:
    """Write the blind sheet of CONVERSATIONS."""
    write_text(out, sheet(_corpus(conversations)))


@command.command()
@FILES
@OUT
def expand(conversations: Sequence[Path], out: Path) -> None:
    """Write CONVERSATIONS, each alternative as one of its own, as the transcripts of `aipsy-judge anchors sheet`."""
    write_text(out, "".join(f"{dumps({'id': c.id, 'messages': _messages(c)})}\n" for c in _corpus(conversations)))


@command.command()
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@FILES
@OUT
@click.option("--rater", required=True, help="Name of the rater or of the pass.")
@click.option("--kind", type=click.Choice(["expert", "adjudicated", "crowd", "judge"]), required=True)
@click.option("--rubric", "rubric_name", default="aipsy-judge-v1", show_default=True)
@click.option("--some", is_flag=True, help="Items may be left out.")
def read(
    answers: Path, conversations: Sequence[Path], out: Path, rater: str, kind: str, rubric_name: str, some: bool
) -> None:
    """Turn ANSWERS to the sheet of CONVERSATIONS into a ratings table."""
    if not rater.strip():
        raise InputError("the name of the rater is empty", where="--rater")
    rows = read_answers(answers, _corpus(conversations), load_rubric(rubric_name), rater, kind, some=some)
    write_text(out, _table(rows))
    click.echo(f"{len({r['item_id'] for r in rows})} items, {len(rows)} ratings")


if __name__ == "__main__":
    with told_errors():
        command(standalone_mode=True)
