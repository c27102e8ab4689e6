"""Rows: what training reads. One judged unit as a tree of tokens, and what is to be predicted where.

The prompt comes first; every answer that is asked by it is a branch that leaves its last token, and a branch may
leave an answer again where two options share their first tokens. A token sees itself and its ancestors alone, as it
does in the engine, so that a prompt is evaluated once however many answers follow it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import write_pieces
from aipsy_judge.errors import InputError

# The stage that makes them, and the parts that it makes them of.
STAGE, PARTS = "rows", ("train", "validation")
SKELETON, END, RATIONALE = "skeleton", "end", "rationale"
_SLOT = "slot:"


def slot_kind(name: str) -> str:
    """The kind of what is predicted at the slot `name`."""
    return f"{_SLOT}{name}"


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be predicted from the hidden state at index `at`: `shares` (they sum to 1) over `tokens`.

    Its loss is weight * (logsumexp(z) - sum_k shares[k] z[tokens[k]]), z the logits there. kind: "slot:NAME",
    "skeleton" (fixed text), "end" (what ends the answer) or "rationale".
    """

    at: int
    tokens: tuple[int, ...]
    shares: tuple[float, ...]
    weight: float
    kind: str

    @property
    def slot(self) -> str | None:
        """The slot's name, None where it is of another kind."""
        return self.kind.removeprefix(_SLOT) if self.kind.startswith(_SLOT) else None


@dataclass(frozen=True, slots=True)
class Row:
    """One unit. `parents[i]` is the index of the token that token i follows (-1 for the first, always below i);
    `positions[i]` its depth from 0; `repeats` how often an epoch shows it."""

    item_id: str
    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    parents: tuple[int, ...]
    targets: tuple[Target, ...]
    repeats: int = 1

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt: those up to the first index that anything is predicted from."""
        return min((t.at for t in self.targets), default=len(self.tokens) - 1) + 1

    @property
    def starts(self) -> tuple[int, ...]:
        """Indices at which answers leave a prompt: from there something is predicted, and from nothing before it."""
        known: set[int] = set()
        asked = {t.at for t in self.targets}
        for index, parent in enumerate(self.parents):
            if parent in known or parent in asked:
                known.add(index)
        return tuple(sorted(asked - known))

    def path(self, index: int) -> tuple[int, ...]:
        """Indices from the first token to `index`, both included."""
        steps: list[int] = []
        while index >= 0:
            steps.append(index)
            index = self.parents[index]
        return tuple(reversed(steps))


class RowTree:
    """A row in the making: tokens are added once however many answers go through them."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.positions: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def grow(self, parent: int, tokens: Iterable[int]) -> int:
        """Index of the last of `tokens`, which follow `parent` (-1: the row begins); `parent` where there are none."""
        for token in tokens:
            known = self._children.get((parent, token))
            if known is None:
                known = self._children[parent, token] = len(self.tokens)
                self.positions.append(self.positions[parent] + 1 if parent >= 0 else 0)
                self.tokens.append(token)
                self.parents.append(parent)
            parent = known
        return parent

    def row(self, item_id: str, targets: Sequence[Target], repeats: int = 1) -> Row:
        whole = tuple(self.tokens), tuple(self.positions), tuple(self.parents)
        return Row(item_id, *whole, tuple(targets), repeats)


def fault_of(row: Row) -> str | None:
    """What is wrong with a row, None where nothing is. A row that is wrong would train something else in silence."""
    count = len(row.tokens)
    if not count or len(row.positions) != count or len(row.parents) != count:
        return f"{count} tokens, {len(row.positions)} positions, {len(row.parents)} parents"
    for index, parent in enumerate(row.parents):
        if not -1 <= parent < index or (parent == -1) != (index == 0):
            return f"token {index} follows {parent}"
        if row.positions[index] != (row.positions[parent] + 1 if parent >= 0 else 0):
            return f"token {index} stands at position {row.positions[index]}"
    if row.repeats < 1:
        return f"it repeats {row.repeats} times"
    return next((f"target {i}: {fault}" for i, t in enumerate(row.targets) if (fault := _target_fault(t, count))), None)


def _target_fault(target: Target, count: int) -> str | None:
    if not 0 <= target.at < count:
        return f"index {target.at} of {count} tokens"
    if not target.tokens or len(target.tokens) != len(target.shares) or len(set(target.tokens)) < len(target.tokens):
        return f"tokens {target.tokens} with shares {target.shares}"
    if min(target.shares) < 0 or not math.isclose(sum(target.shares), 1.0, abs_tol=1e-6):
        return f"shares {target.shares} do not sum to 1"
    if not 0 < target.weight < math.inf:
        return f"weight {target.weight}"
    return None


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """One JSON object a line; the file is there whole or not at all. ValueError for a row that is wrong."""
    write_pieces(path, (f"{_line(row)}\n".encode() for row in rows))


def _line(row: Row) -> str:
    fault = fault_of(row)
    if fault is not None:
        raise ValueError(f"row {row.item_id}: {fault}")
    data = {
        "item_id": row.item_id,
        "tokens": row.tokens,
        "positions": row.positions,
        "parents": row.parents,
        "targets": [
            [t.at, [[token, share] for token, share in zip(t.tokens, t.shares, strict=True)], t.weight, t.kind]
            for t in row.targets
        ],
        "repeats": row.repeats,
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def read_rows(path: Path) -> list[Row]:
    """The rows of a file. Raises InputError naming file and line."""
    try:
        return list(_parsed(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read: {error}", where=str(path), hint="python -m training.render makes it."
        ) from error


def _parsed(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as file:
        for number, line in zip(itertools.count(1), file, strict=False):
            try:
                row = _row(json.loads(line))
                fault = fault_of(row)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                fault = f"not a row ({type(error).__name__}: {error})"
            if fault is not None:
                raise InputError(
                    fault, where=f"{path}, line {number}", hint="Make the rows again with python -m training.render."
                )
            yield row


def _row(data: dict[str, Any]) -> Row:
    targets = [
        Target(int(at), tuple(int(t) for t, _ in shares), tuple(float(s) for _, s in shares), float(weight), str(kind))
        for at, shares, weight, kind in data["targets"]
    ]
    return Row(
        item_id=str(data["item_id"]),
        tokens=tuple(map(int, data["tokens"])),
        positions=tuple(map(int, data["positions"])),
        parents=tuple(map(int, data["parents"])),
        targets=tuple(targets),
        repeats=int(data["repeats"]),
    )
