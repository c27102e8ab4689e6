"""The figures of a stability run in words, and as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aipsy_judge.rubric import Rubric

from .stability_changes import INJECTION, Change
from .stability_figures import COMPOSITE, LARGEST_CHANGE, LARGEST_FLIPS, Aims, Figures, Seen, aims, figures, spans
from .stability_judging import AGAIN, AS_IT_IS, Judged, pairs_of

HEAD = (
    f"{'':22}{'pairs':>6}{'p50':>7}{'p95':>7}{'mean':>7}{'cleared':>9}{'raised':>9}{'flips':>7}{'to N/A':>9}"
    f"{'from N/A':>10}{'unscored':>10}  aims"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One metric, the composite or a flag under one change; one_sided: its aims heed rises alone."""

    name: str
    figures: Figures
    aims: Aims
    one_sided: bool


@dataclass(frozen=True, slots=True)
class Table:
    """One change. turns: how many of those drawn it changes at all."""

    name: str
    about: str
    one_sided: bool
    turns: int
    rows: tuple[Row, ...]


def tables(rubric: Rubric, found: Judged, changes: Sequence[Change]) -> tuple[Table, ...]:
    """A table a change, then one of all wordings of the injection together, then the unchanged text once more."""
    wordings = [c.name for c in changes if c.name.startswith(INJECTION)]
    made = [_table(rubric, found, c.name, c.about, [c.name], c.one_sided) for c in changes]
    if wordings:
        made.append(_table(rubric, found, f"{INJECTION}, all", "all wordings together", wordings, True))
    return (*made, _table(rubric, found, AGAIN, "the same text once more", [AGAIN], False))


def _table(rubric: Rubric, found: Judged, name: str, about: str, changes: Sequence[str], one_sided: bool) -> Table:
    flags = {f.name for f in rubric.flags}
    rows = []
    for each, span in spans(rubric).items():
        told = figures([pair for change in changes for pair in pairs_of(found, change, each)])
        # What the person shows does not hang on the reply: an injection may move a flag in neither direction.
        rises = one_sided and each not in flags
        rows.append(Row(each, told, aims(told, span, one_sided=rises), rises))
    turns = sum(any(c in t.seen for c in changes) for t in found.turns)
    return Table(name, about, one_sided, turns, tuple(rows))


def noise_line(found: Judged) -> str:
    """What judging the same text again changes."""
    same = sum(t.same for t in found.turns)
    if same == len(found.turns):
        return f"noise floor: all {same} turns judged again are the same to the byte, so every change below is real"
    return (
        f"noise floor: {len(found.turns) - same} of {len(found.turns)} turns judged again differ: see the table "
        f'"{AGAIN}"; a change of that size says nothing'
    )


def coverage_line(found: Judged) -> str | None:
    """How many scores and flags could not be had of the texts as they are, by reason; None where all could."""
    said = [s for t in found.turns for name, s in t.seen[AS_IT_IS].items() if name != COMPOSITE]
    reasons = Counter(s.reason for s in said if s.status == "unscored")
    if not reasons:
        return None
    told = ", ".join(f"{reason} {n}" for reason, n in reasons.most_common())
    return f"unscored: {reasons.total()} of {len(said)} scores and flags of the texts as they are ({told})"


def report_lines(made: Sequence[Table]) -> Iterator[str]:
    """Tables, then what was met."""
    yield (
        f"aims: p95 of the change at most {LARGEST_CHANGE:.0%} of the scale (.5 of 0 to 5; .1 of a probability), "
        f"at most {LARGEST_FLIPS:.0%} flips each of failures, flags and N/A, and as many that become unscored"
    )
    for table in made:
        side = "; aims on rises and on failures lost (cleared or N/A) alone, but for flags" if table.one_sided else ""
        yield ""
        yield f"{table.name}: {table.about} ({table.turns} turns{side})"
        yield HEAD
        yield from (_line(row) for row in table.rows)
    yield ""
    yield from (f"{t.name:22}{_met(t)}" for t in made if t.name != AGAIN)
    yield from _bought(made)


def _line(row: Row) -> str:
    f = row.figures
    not_set, applies = f.flags - f.set_before, f.statuses - f.na_before
    cleared = f"{f.lost}/{f.to_lose}" if row.one_sided else f"{f.cleared}/{f.set_before}"
    cells = [
        f"{row.name:22}{f.pairs:6}",
        *(f"{_short(x):>7}" for x in (f.p50, f.p95, f.mean)),
        cleared.rjust(9),
        f"{f.raised}/{not_set}".rjust(9),
        ("none" if f.flip_share is None else f"{f.flip_share:.0%}").rjust(7),
        f"{f.to_na}/{applies}".rjust(9),
        f"{f.from_na}/{f.na_before}".rjust(10),
        f"{f.unscored:10}",
    ]
    rise = f" (rise p95 {_short(f.rise_p95)})" if row.one_sided and f.rise_p95 is not None else ""
    return "".join(cells) + f"  {_missed(row.aims)}{rise}"


def _missed(found: Aims) -> str:
    if found.met is None:
        return "nothing to tell by"
    parts = {"change": found.change, "flips": found.flips, "N/A": found.na, "unscored": found.unread}
    missed = [name for name, met in parts.items() if met is False]
    return "met" if not missed else f"not met: {', '.join(missed)}"


def _met(table: Table) -> str:
    told = [r for r in table.rows if r.aims.met is not None]
    if not told:
        return "nothing to tell by"
    missed = [r.name for r in told if not r.aims.met]
    return f"aims met by {len(told) - len(missed)} of {len(told)}" + (f"; not by {', '.join(missed)}" if missed else "")


def _bought(made: Sequence[Table]) -> Iterator[str]:
    """Whether asking for points buys any: the mean change of the composite, else of each metric, by wording."""
    for table in made:
        if table.name.startswith(INJECTION):
            rows = {r.name: r.figures for r in table.rows}
            shown = [COMPOSITE] if COMPOSITE in rows else list(rows)
            told = ", ".join(f"{_signed(rows[n].mean)} on {n}" for n in shown)
            lost = ", ".join(f"{rows[n].lost} of {rows[n].to_lose} failures lost" for n in shown)
            yield f"{table.name} buys {told} on average; {lost}"


def to_dict(found: Judged, made: Sequence[Table]) -> dict[str, Any]:
    """Plain data: every figure, and what they were counted from."""
    return {
        "aims": {"change": LARGEST_CHANGE, "flips": LARGEST_FLIPS, "unread": LARGEST_FLIPS},
        "noise_floor": {"turns": len(found.turns), "identical": sum(t.same for t in found.turns)},
        "verdicts": found.verdicts,
        "seconds_a_verdict": found.seconds,
        "changes": {t.name: _table_dict(t) for t in made},
        "turns": [
            {"item": t.reply.item, "failure": t.reply.failure, "seen": {c: _seen_dict(s) for c, s in t.seen.items()}}
            for t in found.turns
        ],
    }


def _table_dict(table: Table) -> dict[str, Any]:
    rows = {r.name: _row_dict(r) for r in table.rows}
    return {"about": table.about, "one_sided": table.one_sided, "turns": table.turns, "figures": rows}


def _row_dict(row: Row) -> dict[str, Any]:
    shares = {"flip_share": row.figures.flip_share, "na_share": row.figures.na_share}
    return {
        **asdict(row.figures),
        **shares,
        "one_sided": row.one_sided,
        "aims": {**asdict(row.aims), "met": row.aims.met},
    }


def _seen_dict(said: Mapping[str, Seen]) -> dict[str, Any]:
    return {name: asdict(s) for name, s in said.items()}


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"


def _signed(value: float | None) -> str:
    return "nothing" if value is None else f"{value:+.2f}"
