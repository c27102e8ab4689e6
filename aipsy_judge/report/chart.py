"""Geometry of the report's small charts. Plain coordinates: the template draws them as inline SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["score", "low", "na", "unscored"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One turn on a course: where it stands and what it is. `low`: below the threshold. N/A and unscored stand on
    the rail below the plot, never at a value."""

    x: float
    y: float
    kind: Kind
    label: str


@dataclass(frozen=True, slots=True)
class Course:
    """A metric over the turns of a conversation, in a box of width x height units.

    lines      stretches of neighbouring scored turns, as SVG point lists; the line breaks at every gap
    threshold  height of the critical threshold, or None
    grid       (y, label) of the scale's ends
    ticks      (x, label) of some turn numbers, the first and last among them
    """

    width: float
    height: float
    left: float
    right: float
    rail: float
    marks: tuple[Mark, ...]
    lines: tuple[str, ...]
    threshold: float | None
    grid: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    size: float


@dataclass(frozen=True, slots=True)
class Point:
    """What a course shows at one turn; `value` is None for N/A and unscored."""

    turn: int
    kind: Kind
    value: float | None
    label: str


WIDTH, HEIGHT = 320.0, 74.0
LEFT, RIGHT, TOP, BOTTOM = 18.0, 312.0, 8.0, 48.0
RAIL = 57.0  # N/A and unscored: clear of the lowest value
MOST_TICKS = 10


def course(points: Sequence[Point], minimum: float, maximum: float, threshold: float | None) -> Course:
    """Lay out a course. `minimum` and `maximum` are the ends of the scale; T points, one a turn."""

    def height(value: float) -> float:
        return BOTTOM - (value - minimum) / (maximum - minimum) * (BOTTOM - TOP)

    xs = _spaced(len(points))
    marks = tuple(
        Mark(x, round(height(p.value), 1) if p.value is not None else RAIL, p.kind, p.label)
        for x, p in zip(xs, points, strict=True)
    )
    return Course(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=RIGHT,
        rail=RAIL,
        marks=marks,
        lines=_stretches(marks),
        threshold=round(height(threshold), 1) if threshold is not None else None,
        grid=((TOP, _short(maximum)), (BOTTOM, _short(minimum))),
        ticks=_ticks(xs, [p.turn for p in points]),
        size=max(1.2, min(3.2, 80.0 / max(len(points), 1))),
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: x and width in units, `height` as a share 0..1 of the plot's height."""

    x: float
    width: float
    height: float
    label: str
    chosen: bool = False
    show_label: bool = True

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 1)


def bars(heights: Mapping[str, float], width: float, *, chosen: str | None = None) -> tuple[Bar, ...]:
    """Bars side by side over `width` units, one a label; with many, only the first and last are labelled."""
    if not heights:
        return ()
    step = width / len(heights)
    crowded = len(heights) > 12
    last = len(heights) - 1
    return tuple(
        Bar(round(i * step, 2), round(step * 0.78, 2), share, label, label == chosen, not crowded or i in (0, last))
        for i, (label, share) in enumerate(heights.items())
    )


def outline(bars: Iterable[Bar], base: float) -> str:
    """Bars standing on the line y = `base`, which is also the height of a full one, as one SVG path."""
    tall = [(b.x, b.width, round(base * b.height, 1)) for b in bars]
    return "".join(f"M{x:g} {base:g}v-{h:g}h{w:g}v{h:g}z" for x, w, h in tall if h > 0)


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of a stacked bar, in percent of its width."""

    start: float
    width: float
    kind: str


def stacked(counts: Mapping[str, int]) -> tuple[Slice, ...]:
    """Shares of a whole side by side, 0..100; nothing for no counts."""
    total = sum(counts.values())
    slices: list[Slice] = []
    start = 0.0
    for kind, count in counts.items():
        share = 100.0 * count / total if total else 0.0
        if count:
            slices.append(Slice(round(start, 3), round(share, 3), kind))
        start += share
    return tuple(slices)


def _spaced(n: int) -> list[float]:
    if n == 1:
        return [(LEFT + RIGHT) / 2]
    inset = 6.0
    step = (RIGHT - LEFT - 2 * inset) / max(n - 1, 1)
    return [round(LEFT + inset + i * step, 1) for i in range(n)]


def _stretches(marks: Sequence[Mark]) -> tuple[str, ...]:
    stretches: list[list[Mark]] = [[]]
    for mark in marks:
        if mark.kind in ("score", "low"):
            stretches[-1].append(mark)
        elif stretches[-1]:
            stretches.append([])
    return tuple(" ".join(f"{m.x:g},{m.y:g}" for m in s) for s in stretches if len(s) > 1)


def _ticks(xs: Sequence[float], turns: Sequence[int]) -> tuple[tuple[float, str], ...]:
    n = len(xs)
    if n <= MOST_TICKS:
        return tuple((x, str(t)) for x, t in zip(xs, turns, strict=True))
    step = -(-n // MOST_TICKS)
    # The last turn is always named; one that would run into it is left out.
    chosen = [i for i in range(0, n, step) if n - 1 - i >= step / 2] + [n - 1]
    return tuple((xs[i], str(turns[i])) for i in chosen)


def _short(value: float) -> str:
    return f"{value:g}"
