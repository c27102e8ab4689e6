"""The statistics libraries, imported when first used: they take seconds to load and are an extra."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import AipsyJudgeError, MissingExtraError

# Above, the closed forms give the figure itself: they are proven equal, and a map asks for hundreds of figures.
LIBRARY_ITEMS = 20_000


def stats_library(name: str) -> Any:
    """A module of the `stats` extra. Raises MissingExtraError."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(name.split(".")[0], "stats", "Agreement statistics") from error


def confirmed(value: float, closed_form: float, library: str) -> float:
    """`value` as the library gave it, once the closed form that the intervals rest on gives the same.

    A library that renames its rows or changes a definition must stop the figure, not change it.
    """
    if not abs(value - closed_form) <= 1e-6 * max(1.0, abs(closed_form)):
        raise AipsyJudgeError(
            f"{library} gives {value!r} where its closed form gives {closed_form!r}",
            hint=f"This version of {library} is not one the statistics were tested with: see pyproject.toml.",
        )
    return value
