"""A comparison of two runs on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..compare import FAILING_FORM, FORM, Comparison
from ..paired_difference import METHOD, Difference
from ..units import Key
from .hidden import on_one_line
from .wording import mean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_LISTED = 50  # units of a kind; all of them stand in the JSON
KIND_WORDS = {"scored": "scored", "na": "N/A", "unscored": "unscored"}


def print_comparison(console: Console, found: Comparison) -> None:
    """Pairs, the table of differences, what changed between scored, N/A and unscored, and the units to look at."""
    console.print(_pairs_words(found))
    console.print()
    console.print(_difference_table(found))
    console.print(f"Difference: {FORM}; above 0 NEW is better. Interval: {METHOD}.")
    console.print(f"Failing: {FAILING_FORM}; above 0 NEW is worse.")
    for d in (*found.differences, found.failing):
        if d.low is None:
            console.print(f"  {d.metric}: no interval ({d.reason})")
    _print_transitions(console, found.differences)
    _print_units(console, found)
    for remark in found.remarks:
        console.print(f"Note: {remark}.")


def place(key: Key) -> str:
    """A unit in words."""
    return on_one_line(key[0]) if key[1] is None else f"{on_one_line(key[0])}, turn {key[1]}"


def _pairs_words(found: Comparison) -> str:
    alone = f"only in BASE: {len(found.only_base)}, only in NEW: {len(found.only_new)}"
    return (
        f"Paired by conversation id and turn: {found.pairs} pairs from {found.conversations} conversations ({alone}). "
        "The replies of a pair may differ, so ids must mean the same in both runs."
    )


def _difference_table(found: Comparison) -> Table:
    table = _table("metric", "BASE", "NEW", "difference", "interval", "pairs\n(chats)")
    for d in found.differences:
        interval = "–" if d.low is None else f"{d.low:+.2f} to {d.high:+.2f}"
        gap = "–" if d.difference is None else f"{d.difference:+.2f}"
        table.add_row(d.metric, mean(d.base), mean(d.new), gap, interval, f"{d.n} ({d.conversations})")
    d = found.failing
    interval = "–" if d.low is None or d.high is None else f"{_share(d.low, '+')} to {_share(d.high, '+')}"
    pairs = f"{d.n} ({d.conversations})"
    table.add_row(d.metric, _share(d.base), _share(d.new), _share(d.difference, "+"), interval, pairs)
    return table


def _share(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.1%}"


def _print_transitions(console: Console, differences: Sequence[Difference]) -> None:
    kinds = sorted({k for d in differences for k in d.transitions if k[0] != k[1]})
    if not kinds:
        console.print("No metric changed between scored, N/A and unscored.")
        return
    console.print()
    table = _table("changed kind", *(f"{KIND_WORDS[a]} to {KIND_WORDS[b]}" for a, b in kinds))
    for d in differences:
        if any(k in d.transitions for k in kinds):
            table.add_row(d.metric, *(str(d.transitions.get(k, 0)) for k in kinds))
    console.print(table)


def _print_units(console: Console, found: Comparison) -> None:
    lists: list[tuple[str, Iterable[Key]]] = [
        ("Newly missed crises", found.new_missed),
        ("Newly failing", found.newly_failing),
        ("Only in NEW, and failing", found.failing_alone),
        ("No longer known whether they fail", found.newly_undetermined),
        *((f"Flag {flag} no longer set", keys) for flag, keys in found.flags_lost.items()),
        ("Newly passing", found.newly_passing),
    ]
    for title, keys in lists:
        shown = [place(k) for k in keys]
        console.print(f"{title}: {len(shown) or 'none'}")
        for line in shown[:MOST_LISTED]:
            console.print(f"  {line}")
        if len(shown) > MOST_LISTED:
            console.print(f"  and {len(shown) - MOST_LISTED} more (--json lists all)")


def _table(first: str, *others: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
