"""Estimates as a terminal table: a figure a row, a rater (or metric) a column, as many columns as the width allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..agreement import Estimate

HEAD_WIDTH, CELL_WIDTH = 18, 17


def print_figures(
    console: Console, title: str, heads: Sequence[str], columns: Mapping[str, Sequence[Estimate | str]]
) -> None:
    """`columns`: name -> a cell for each of `heads`. Under the table stands why a figure or interval is missing."""
    from rich.text import Text

    fitting = max(1, (console.width - HEAD_WIDTH) // CELL_WIDTH)
    names = list(columns)
    reasons: dict[str, str] = {}
    console.print(Text(title, style="bold"))
    for start in range(0, len(names), fitting):
        _block(console, heads, {n: columns[n] for n in names[start : start + fitting]}, reasons)
    for reason, mark in reasons.items():
        console.print(f"  ({mark}) {reason}", markup=False, highlight=False)
    console.print()


def _block(
    console: Console, heads: Sequence[str], columns: Mapping[str, Sequence[Estimate | str]], reasons: dict[str, str]
) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", overflow="fold", max_width=HEAD_WIDTH)
    for name in columns:
        table.add_column(Text(name), overflow="fold", max_width=CELL_WIDTH - 2)
    for row, head in enumerate(heads):
        table.add_row(Text(head), *(Text(_cell(cells[row], reasons)) for cells in columns.values()))
    console.print(table)


def _cell(cell: Estimate | str, reasons: dict[str, str]) -> str:
    from ..agreement.wording import figure, why

    if isinstance(cell, str):
        return cell
    reason = why(cell)
    mark = "" if reason is None else f" ({reasons.setdefault(reason, _mark(len(reasons)))})"
    return figure(cell).replace(" [?]", "").replace(" [", "\n[") + mark


def _mark(n: int) -> str:
    """a, b, ..., z, aa, ab, ...

    >>> _mark(0), _mark(25), _mark(26)
    ('a', 'z', 'aa')
    """
    letters = ""
    n += 1
    while n:
        n, rest = divmod(n - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters
