"""What the judge is called by clients, and how it says in every answer who judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..judge import Judge
from .refusal import Refusal

FAMILY = "aipsy-judge"  # the name that the benchmark's client looks for, as `aipsy-judge` or `aipsy-judge:TAG`


@dataclass(frozen=True, slots=True)
class Names:
    """`listed` is what the lists of models show; `tag` is the judge's own name, also valid behind the family's."""

    listed: str
    tag: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every name that means this judge. Case matters, as it does to the clients."""
        family = self.listed.removesuffix(":latest")
        return tuple(dict.fromkeys((family, f"{family}:latest", f"{family}:{self.tag}", self.tag)))

    def check(self, asked: str) -> None:
        """Raise Refusal(404) for a model that is not served: another one never answers in its name."""
        if asked not in self.all:
            raise Refusal(
                404,
                f"model {asked[:100]!r} is not served here.",
                hint=f"Served: {', '.join(self.all)}.",
            )


def names_of(judge: Judge, family: str = FAMILY) -> Names:
    return Names(f"{family}:latest", judge.lane.judge.partition("@")[0])


def identity(judge: Judge, *, as_own: bool = False) -> dict[str, Any]:
    """Who judged, as data: the lane, the version, what a reader must know."""
    return {
        "server": f"{FAMILY} {__version__}",
        **judge.lane.to_dict(),
        "answered_as_own": as_own,
        "remarks": list(judge.remarks),
    }


def stamp(who: Mapping[str, Any]) -> str:
    """Who judged, in one line for a reader of the reasoning: the only text of ours that the benchmark shows."""
    own = ", answered by its own contract" if who["answered_as_own"] else ""
    return f"[{who['server']}; judge {who['judge']}; contract {who['contract']}{own}]"
