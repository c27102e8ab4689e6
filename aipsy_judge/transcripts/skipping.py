"""What is passed over, and how the caller hears of it: nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Callable

# Called with the place and the reason: a file of a folder that is no transcript, an empty chat of an export.
Skip = Callable[[str, str], None]


def ignore(place: str, reason: str) -> None:
    """The default: the caller does not want to know."""
