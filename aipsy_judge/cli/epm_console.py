"""Tables and notes of `epm` on the terminal, and the folder its files go to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..epm.sheets import Sheet, as_table
from ..errors import InputError
from ..report.visible import visible

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    from rich.console import Console

    # A pipe has no width of its own; 80 columns would fold the tables.
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False)


def show(screen: Console, *sheets: Sheet) -> None:
    """Each sheet under its title."""
    from rich.text import Text

    for sheet in sheets:
        # A title of its own is not folded to the width of a narrow table.
        screen.print(Text(visible(sheet.title, keep_newlines=False), style="bold"), soft_wrap=True)
        screen.print(as_table(sheet))


def show_notes(screen: Console, notes: list[str]) -> None:
    from rich.text import Text

    for note in notes:
        screen.print(Text(visible(note, keep_newlines=False)), style="dim", soft_wrap=True)


def make_folder(out: Path | None) -> None:
    """Made before the work, so that a typing error is not found after it. InputError."""
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made a folder: {error.strerror or error}", where=str(out)) from error
