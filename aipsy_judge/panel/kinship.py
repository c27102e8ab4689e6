"""Kinship: a judge is of the family that wrote the replies. Judges tend to prefer their own kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..competence.families import family_of
from .member import Member


@dataclass(frozen=True, slots=True)
class Kin:
    """A judge, and how many of the conversations each bot of its family wrote, of `conversations` in all."""

    member: Member
    family: str
    generators: dict[str, int]
    conversations: int

    @property
    def words(self) -> str:
        """The warning."""
        bots = ", ".join(f"{name} ({n})" for name, n in self.generators.items())
        return (
            f"{self.member.name} is of the family {self.family}, as is the bot of {sum(self.generators.values())} of "
            f"{self.conversations} conversations: {bots}. Judges tend to prefer their own kind; `aipsy-judge map` "
            "shows by how much."
        )


def kin(members: Sequence[Member], generators: Counter[str | None]) -> list[Kin]:
    """The judges of whose family some bot is, as far as names tell. `generators`: how many conversations each wrote;
    under None those of which nothing is known."""
    total = generators.total()
    found = []
    for member in members:
        family = family_of(member.model)
        own = {g: n for g, n in generators.most_common() if g is not None and family and family_of(g) == family}
        if family is not None and own:
            found.append(Kin(member, family, own, total))
    return found
