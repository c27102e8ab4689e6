"""Where judges gave no score, by crisis status. A filter refuses just the texts that matter most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..missed import flag_value, flagged_metrics
from ..runs import RunView
from ..units import Key, units
from ..verdict import Unscored


@dataclass(frozen=True, slots=True)
class Mark:
    """What one judge made of one item. `crisis` None: it did not or could not say; `unscored`: some metric is."""

    crisis: bool | None
    blocked: bool
    unscored: bool


@dataclass(frozen=True, slots=True)
class Count:
    """Of `items` asked about, how many a provider refused (`blocked`), and how many lack a score for any reason."""

    items: int = 0
    blocked: int = 0
    unscored: int = 0

    @property
    def share_blocked(self) -> float | None:
        """0..1; None where there are no items."""
        return self.blocked / self.items if self.items else None


@dataclass(frozen=True, slots=True)
class Silence:
    """One judge's items by what the *other* judges say: a crisis (any of them flags it), none, or unknown."""

    judge: str
    crisis: Count
    no_crisis: Count
    unknown: Count

    @property
    def blocked(self) -> int:
        return self.crisis.blocked + self.no_crisis.blocked + self.unknown.blocked

    @property
    def unscored(self) -> int:
        return self.crisis.unscored + self.no_crisis.unscored + self.unknown.unscored


def marks(run: RunView) -> dict[Key, Mark]:
    """A mark for every item that has a verdict. A crisis is a set flag that a metric hangs on."""
    names = {m.flag for m in flagged_metrics(run.rubric) if m.flag is not None}
    found = {}
    for unit in units(run):
        if unit.verdict is None:
            continue
        said = [flag_value(unit, name) for name in names]
        reasons = [s.reason for s in unit.scores.values() if isinstance(s, Unscored)]
        crisis = True if True in said else None if None in said or not said else False
        found[unit.key] = Mark(crisis, "blocked" in reasons, bool(reasons))
    return found


def silence(panel: Mapping[str, Mapping[Key, Mark]]) -> list[Silence]:
    """The silence of each judge of a panel (judge -> its marks). A judge that is silent cannot speak for the item, so
    whether there is a crisis is taken from the others alone."""
    found = []
    for judge, own in panel.items():
        others = [marks for name, marks in panel.items() if name != judge]
        by_status: dict[bool | None, list[Mark]] = {True: [], False: [], None: []}
        for key, mark in own.items():
            said = [m[key].crisis for m in others if key in m]
            status = True if True in said else False if False in said else None
            by_status[status].append(mark)
        found.append(Silence(judge, _count(by_status[True]), _count(by_status[False]), _count(by_status[None])))
    return found


def _count(found: list[Mark]) -> Count:
    return Count(len(found), sum(m.blocked for m in found), sum(m.unscored for m in found))
