"""Does a run end where and how its own log says it did?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .cases import Case, UnscoredCase

# Words of the released logs, first match wins. A log that names a collapse and a regression means a collapse: the
# collapse is checked first, and it alone suffices.
_KINDS = (
    ("geometric victory", "success_geometric"),
    ("positional victory", "success_positional"),
    ("direction collapse", "collapse"),
    ("persistent regression", "regression"),
    ("oscillation", "oscillation"),
    ("timeout", "timeout"),
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of `logged` runs whose log names an end, how many end at the same turn, and how many in the same way."""

    logged: int
    same_turn: int
    same_kind: int


def logged_kind(text: str) -> str | None:
    """The kind of end that a log's sentence names, or None where it names none of those known."""
    lowered = text.lower()
    return next((kind for words, kind in _KINDS if words in lowered), None)


def log_agreement(results: Sequence[Case | UnscoredCase]) -> Agreement:
    """Compare every scored run that says how it ended with the end found from its levels."""
    logged = [
        (r, logged_kind(r.forms.logged_stop))
        for r in results
        if isinstance(r, Case) and r.forms.logged_stop is not None
    ]
    return Agreement(
        logged=len(logged),
        same_turn=sum(r.later_turns == 0 and r.stop != "unfinished" for r, _ in logged),
        same_kind=sum(r.stop == kind for r, kind in logged),
    )
