"""How every program of this project ends: an error of ours is told once on stderr, with its documented exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from ..errors import EXIT_INPUT, AipsyJudgeError
from ..report.visible import visible


@contextmanager
def told_errors() -> Iterator[None]:
    """Errors go to stderr without a traceback, what to do next on a line of its own; then the process exits."""
    try:
        yield
    except AipsyJudgeError as error:
        # Ids and keys in a message come from files: none may steer the terminal.
        click.echo(visible(f"error: {error}"), err=True)
        if error.hint:
            click.echo(visible(f"  next: {error.hint}"), err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        # A name that is too long, a folder that went away: the system's own words, one line like every other error.
        where = f"{error.filename}: " if error.filename is not None else ""
        click.echo(visible(f"error: {where}{error.strerror or error}"), err=True)
        sys.exit(EXIT_INPUT)
