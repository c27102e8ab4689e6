"""Two runs of one lane, paired by item: which units are in both, and what became of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .conversation import Conversation
from .errors import LaneError
from .runs import RunView
from .units import Key, Unit, units


@dataclass(frozen=True, slots=True)
class Pair:
    """One unit in both runs."""

    base: Unit
    new: Unit

    @property
    def key(self) -> Key:
        return self.base.key


@dataclass(frozen=True, slots=True)
class Paired:
    """The pairs in the order of BASE, and what stands alone on either side."""

    pairs: tuple[Pair, ...]
    only_base: tuple[Unit, ...]
    only_new: tuple[Unit, ...]


def pair_runs(base: RunView, new: RunView) -> Paired:
    """Pair by conversation id and turn number.

    The texts of a pair differ (the assistant that is compared has changed), so they are no part of the key: the ids
    must mean the same in both runs, and the persons' lines should be the same. Raises LaneError for unlike lanes,
    InputError where a run cannot be counted.
    """
    refuse_unlike(base, new)
    ours, theirs = ({u.key: u for u in units(run)} for run in (base, new))
    return Paired(
        pairs=tuple(Pair(unit, theirs[key]) for key, unit in ours.items() if key in theirs),
        only_base=tuple(u for key, u in ours.items() if key not in theirs),
        only_new=tuple(u for key, u in theirs.items() if key not in ours),
    )


def refuse_unlike(base: RunView, new: RunView) -> None:
    """Raise LaneError, naming everything in which the lanes or the settings of two runs differ."""
    ours, theirs = base.lane.to_dict(), new.lane.to_dict()
    unlike = [f"{key}: {ours[key]} and {theirs[key]}" for key in ours if ours[key] != theirs[key]]
    unlike += [f"setting {key}: {a} and {b}" for key, a, b in _unlike_settings(base.settings, new.settings)]
    if unlike:
        raise LaneError("the two runs are of unlike lanes and cannot be compared:\n  " + "\n  ".join(unlike))


# Every processor sums what it computes in the same order: with more of them a verdict comes sooner and is the same.
# It is as many as the machine has, so a base from a laptop must stay comparable to a run of a CI machine.
_NO_FIGURE = frozenset({"threads"})


def _unlike_settings(base: Mapping[str, Any], new: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
    keys = [key for key in dict.fromkeys([*base, *new]) if key not in _NO_FIGURE]
    shown = [(key, _shown(base, key), _shown(new, key)) for key in keys]
    return [(key, a, b) for key, a, b in shown if a != b]


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return json.dumps(settings[key], sort_keys=True, default=str) if key in settings else "not set"


def other_lines(base: RunView, new: RunView, pairs: Sequence[Pair]) -> tuple[Key, ...]:
    """Pairs before which the person said something else in the two runs, where both runs keep the text.

    There the score may have moved because the person did.
    """
    ours, theirs = ({c.id: c for c in run.conversations} for run in (base, new))
    both = [p.key for p in pairs if p.key[0] in ours and p.key[0] in theirs]
    return tuple(key for key in both if _lines(ours[key[0]], key[1]) != _lines(theirs[key[0]], key[1]))


def _lines(conversation: Conversation, turn: int | None) -> list[str]:
    """What the person had said when a turn was judged (or in all)."""
    end = next((t.index for t in conversation.turns if t.number == turn), len(conversation.messages))
    return [m.content for m in conversation.messages[:end] if m.role == "user"]
