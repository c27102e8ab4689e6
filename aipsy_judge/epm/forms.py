"""Filled forms of one dialogue: levels, some of which may not have been readable, and the evidence for them."""

from __future__ import annotations

from dataclasses import dataclass

UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence given as evidence: where it stands (index of the message; None: in the persona card) and the
    probability of its choice among all sentences, 0..1, where the judge gives one."""

    text: str
    message: int | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Cited:
    """The evidence for one level: of the starting form (rating None) or of a rating, counted from 0. `quote` None:
    none could be had."""

    rating: int | None
    id: str
    quote: Quote | None


@dataclass(frozen=True, slots=True)
class Origin:
    """The judge that filled the forms and what a reader must know of it.

    lane                 judge, rubric and contract of both forms: unlike lanes are never compared
    remarks              of the judge, e.g. that it was never trained for judging
    unread               levels that could not be read, in words
    suspected_injection  what in the text looks like an attempt to steer the judge
    """

    judge: str
    lane: str
    remarks: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    suspected_injection: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forms:
    """The levels of one dialogue. None stands for a level that could not be read, never for 0.

    start_levels  I levels of the starting form, or None where only P_0 is known
    start         P_0 (D), or None where only the levels are known
    turn_levels   one row of 2D levels a rating
    every         turns a rating covers (K)
    threshold     how hard the person is to reach (Low, Medium, High), where known
    tolerance, logged_turns, logged_stop   how the run says it was ended, where it does
    evidence      quotes for levels, where a judge gave them
    origin        who filled the forms, where they say so
    """

    where: str
    model: str
    case: str
    start_levels: tuple[float | None, ...] | None
    start: tuple[float, ...] | None
    turn_levels: tuple[tuple[float | None, ...], ...]
    every: int = 1
    threshold: str | None = None
    tolerance: float | None = None
    logged_turns: int | None = None
    logged_stop: str | None = None
    evidence: tuple[Cited, ...] = ()
    origin: Origin | None = None

    @property
    def name(self) -> str:
        """For messages: the place in the file, and whose dialogue it is."""
        return f"{self.where}, {self.title}"

    @property
    def title(self) -> str:
        """Model and case, as far as they are named."""
        return " / ".join(n for n in (self.model, self.case) if n != UNNAMED) or UNNAMED
