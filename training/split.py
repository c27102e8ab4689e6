"""The split into train, validation and test: whole groups, by shares or as a frozen file says; a leak is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from aipsy_judge.errors import InputError
from aipsy_judge.ratings.files import read_chunks

from .groups import Grouping
from .items import Item
from .recipe import Split

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
# Columns that say whose part a row tells, and which name of an item each may be.
NAMED_BY = {
    "item_id": ("item",),
    "conversation": ("conversation",),
    "scenario": ("scenario",),
    "group": ("scenario", "conversation", "item"),
    "id": ("scenario", "conversation", "item"),
}
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Assigned:
    """Item id -> its part, and its group."""

    part: Mapping[str, Part]
    group: Mapping[str, str]


def split_items(items: Sequence[Item], grouping: Grouping, split: Split, seed: int) -> Assigned:
    """Raises InputError where there are fewer groups than parts, or the frozen file leaves an item out, contradicts
    itself, or lets a group leak from one part into another."""
    group = {i.id: grouping.of[i.conversation] for i in items}
    if split.file is not None:
        part = _frozen(items, _read(Path(split.file)), split.file)
        _refuse_leaks(items, part, grouping, split.file)
    else:
        parts = _by_shares(group, split, seed)
        part = {i.id: parts[group[i.id]] for i in items}
    return Assigned(part, group)


def _by_shares(group: Mapping[str, str], split: Split, seed: int) -> dict[str, Part]:
    """Group -> part: the largest first, in a seeded order, each to the part that lacks most of its share."""
    shares: dict[Part, float] = {p: s for p in PARTS if (s := float(getattr(split, p)))}
    sizes: dict[str, int] = {}
    for name in group.values():
        sizes[name] = sizes.get(name, 0) + 1
    if len(sizes) < len(shares):
        raise InputError(
            f"{len(sizes)} group{'s' if len(sizes) != 1 else ''} of items cannot fill {len(shares)} parts",
            where="split",
            hint="Give more conversations, split by conversation, or set a share to 0.",
        )
    order = sorted(sizes, key=lambda g: (-sizes[g], sha256(f"{seed}:{g}".encode()).hexdigest()))
    filled: dict[Part, int] = dict.fromkeys(shares, 0)
    found: dict[str, Part] = {}
    total = sum(sizes.values())
    for n, name in enumerate(order):
        empty = [p for p in shares if not filled[p]]
        # The last groups are kept for parts that have none yet.
        open_parts = empty if len(order) - n <= len(empty) else list(shares)
        part = max(open_parts, key=lambda p: (shares[p] * total - filled[p], shares[p]))
        found[name] = part
        filled[part] += sizes[name]
    return found


def _frozen(items: Sequence[Item], told: Mapping[tuple[str, str], Part], file: str) -> dict[str, Part]:
    found: dict[str, Part] = {}
    faults = []
    for item in items:
        names = {"item": item.id, "conversation": item.conversation, "scenario": item.scenario}
        parts = {told[kind, name] for kind, name in names.items() if name is not None and (kind, name) in told}
        if len(parts) == 1:
            found[item.id] = parts.pop()
        else:
            faults.append(f"{item.id}: told to be in {_and(parts)}" if parts else f"{item.id}: no part is told")
    if faults:
        raise InputError(_lines(f"{len(faults)} items have no one part:", faults), where=file)
    return found


def _refuse_leaks(items: Sequence[Item], part: Mapping[str, Part], grouping: Grouping, file: str) -> None:
    """Every conversation, and every pair of what belongs together, that lies in two parts."""
    parts: dict[str, set[Part]] = {}
    for item in items:
        parts.setdefault(item.conversation, set()).add(part[item.id])
    leaks = [f"{c} is in {_and(p)}" for c, p in sorted(parts.items()) if len(p) > 1]
    for link in grouping.links:
        if parts[link.first] != parts[link.second]:
            ends = f"{link.first} ({_and(parts[link.first])}), {link.second} ({_and(parts[link.second])})"
            leaks.append(f"{ends}: {link.why}")
    if leaks:
        raise InputError(
            _lines(f"the frozen split leaks at {len(leaks)} places:", leaks),
            where=file,
            hint="Put what belongs together in one part, or raise split.near_duplicate if these texts are unlike.",
        )


def _read(path: Path) -> dict[tuple[str, str], Part]:
    """(kind of name, name) -> part."""
    found: dict[tuple[str, str], Part] = {}
    for chunk in read_chunks(path):
        if chunk.faults:
            raise InputError(chunk.faults[0][1], where=f"{path}, row {chunk.faults[0][0]}")
        column = next((c for c in NAMED_BY if c in chunk.columns), None)
        if column is None or "part" not in chunk.columns:
            raise InputError(f"needs a column part, and one of {', '.join(NAMED_BY)}", where=str(path))
        for row, name, part in zip(chunk.rows, chunk.columns[column], chunk.columns["part"], strict=True):
            _tell(found, NAMED_BY[column], str(name), part, f"{path}, row {row}")
    return found


def _tell(found: dict[tuple[str, str], Part], kinds: Sequence[str], name: str, part: Any, where: str) -> None:
    if part not in PARTS:
        raise InputError(f"part is {part!r}, not one of {', '.join(PARTS)}", where=where)
    for kind in kinds:
        if found.setdefault((kind, name), part) != part:
            raise InputError(f"{name} is in {found[kind, name]} and in {part}", where=where)


def _and(parts: set[Part]) -> str:
    return " and ".join(p for p in PARTS if p in parts)


def _lines(head: str, lines: Sequence[str]) -> str:
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return head + "".join(f"\n  {line}" for line in [*lines[:SHOWN], *more])
