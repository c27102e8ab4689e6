"""Before anything is trained: what each row trains, and whether it is what will be asked. Stops on a row that is not.

python -m training.preflight RECIPE
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Any

import click

from aipsy_judge.backends.protocol import Tokens
from aipsy_judge.engine.encode import encode, end_of_turn
from aipsy_judge.errors import InputError
from aipsy_judge.prompt import ChatMessage, Piece

from .program import recipe_program
from .recipe import Recipe
from .rows import END, PARTS, STAGE, Row, read_rows

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, median and most per row."""

    least: int
    median: float
    most: int


@dataclass(frozen=True, slots=True)
class Preflight:
    """rows     there are, and `shown`, how often an epoch shows them in all
    tokens   of a row, prompt and answers
    trained  targets a row, by kind ("slot" takes all slots together) and "all"
    slots    rows that train a slot, by its name
    weight   share of all weight, by kind
    """

    rows: int
    shown: int
    tokens: Spread
    trained: Mapping[str, Spread]
    slots: Mapping[str, int]
    weight: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def preflight(rows: Sequence[Row], tokens: Tokens, where: str) -> Preflight:
    """What the rows train. Raises InputError with every kind of fault that a row has.

    A row must train a slot; its answers must leave the end of a prompt, of which all end as the chat template ends one
    (with what turns thinking off), the longest comes first, unbranched, and opens with BOS at most once; its answers
    must end in the token that stops a judge.
    """
    if not rows:
        raise InputError("no rows to train on", where=where, hint="See summary.json beside it for what was dropped.")
    ending, stop = _prompt_ending(tokens), end_of_turn(tokens)
    begin = tokens.special_tokens.get("bos_token")
    bos = tokens.tokenize(begin, special=True) if begin else []
    counts = {sum(t in bos for t in row.tokens[: row.prompt_tokens]) for row in rows}
    faults = [f"{row.item_id}: {fault}" for row in rows for fault in _faults(row, ending, stop, bos)]
    if len(counts) > 1:
        faults.append(f"prompts hold {begin} {' or '.join(map(str, sorted(counts)))} times, which the template decides")
    if faults:
        more = [f"... and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise InputError(
            "rows that would train the wrong thing:\n" + "\n".join(f"  {f}" for f in [*faults[:SHOWN], *more]),
            where=where,
            hint="Make them again with python -m training.render RECIPE.",
        )
    return _told(rows)


def _faults(row: Row, ending: Sequence[int], stop: int, bos: Sequence[int]) -> Iterator[str]:
    if not any(t.slot for t in row.targets):
        yield "trains nothing: no slot has a target"
        return
    count = row.prompt_tokens
    prompt = row.tokens[:count]
    led = {index for target in row.targets for index in row.path(target.at)}
    if row.parents[:count] != tuple(range(-1, count - 1)) or len(led) < len(row.tokens):
        yield "its answers do not all leave the end of a prompt"
    openings = [[row.tokens[i] for i in row.path(start)[-len(ending) :]] for start in row.starts]
    if any(opening != list(ending) for opening in openings):
        yield "a prompt of it does not end as the chat template ends one"
    if bos and list(prompt[: 2 * len(bos)]) == [*bos, *bos]:
        yield "its prompt begins with BOS twice"
    ends = [t.tokens for t in row.targets if t.kind == END]
    if set(ends) != {(stop,)}:
        yield "an answer does not end in the token that stops a judge"


def _prompt_ending(tokens: Tokens) -> list[int]:
    """What every prompt ends in, whatever was said: the template's opening of an answer."""
    one, other = (encode(tokens, [ChatMessage("user", (Piece(text, False),))]) for text in ("a", "Z"))
    pairs = zip(reversed(one), reversed(other), strict=False)
    return list(reversed([a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]))


def _told(rows: Sequence[Row]) -> Preflight:
    kinds = [Counter("slot" if t.slot else t.kind for t in row.targets) for row in rows]
    weights: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    for row in rows:
        slots.update({t.slot for t in row.targets if t.slot})
        for target in row.targets:
            weights["slot" if target.slot else target.kind] += target.weight * row.repeats  # type: ignore[assignment]
    total = sum(weights.values())
    names = sorted({kind for count in kinds for kind in count})
    trained = {name: _spread(count[name] for count in kinds) for name in names}
    return Preflight(
        rows=len(rows),
        shown=sum(row.repeats for row in rows),
        tokens=_spread(len(row.tokens) for row in rows),
        trained={**trained, "all": _spread(len(row.targets) for row in rows)},
        slots=dict(sorted(slots.items())),
        weight={name: round(weights[name] / total, 4) for name in names},
    )


def _spread(values: Iterable[int]) -> Spread:
    found = list(values)
    return Spread(min(found), median(found), max(found))


def lines(found: Preflight) -> list[str]:
    """What a reader must know, a line each."""
    out = [
        f"{found.rows} rows, shown {found.shown} times an epoch; tokens a row {_shown(found.tokens)}",
        "trained tokens a row (least, median, most):",
    ]
    for kind, spread in found.trained.items():
        share = f", {found.weight[kind]:.1%} of the weight" if kind in found.weight else ""
        out.append(f"  {kind}: {_shown(spread)}{share}")
    return [*out, "rows that train a slot: " + ", ".join(f"{name} {count}" for name, count in found.slots.items())]


def _shown(spread: Spread) -> str:
    return f"{spread.least}, {spread.median:g}, {spread.most}"


@recipe_program
def main(recipe: Recipe, out: Path) -> None:
    """Say what the rows of RECIPE train, and stop where they would train the wrong thing."""
    from .hf_tokens import base_tokens
    from .stage import finished

    folder = finished(out, STAGE)
    tokens = base_tokens(recipe.base)
    for part in PARTS:
        rows = read_rows(folder / f"{part}.jsonl")
        if rows or part == PARTS[0]:
            click.echo(f"{part}: " + "\n".join(lines(preflight(rows, tokens, f"{folder / part}.jsonl"))))


if __name__ == "__main__":
    main()
