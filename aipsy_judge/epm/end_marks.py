"""One mark for each kind of end, told apart by shape as well as by colour."""

from __future__ import annotations

from collections.abc import Sequence

from .stop import KINDS, UNFINISHED
from .svg import polyline, tag, words

_SHAPES = {
    "success_geometric": "disc",
    "success_positional": "disc",
    "success_aligned": "disc",
    "collapse": "down",
    "regression": "down",
    "timeout": "square",
    "oscillation": "diamond",
    UNFINISHED: "ring",
}
_WORDS = {
    "disc": "success",
    "down": "collapse or regression",
    "square": "timeout",
    "diamond": "oscillation",
    "ring": "unfinished",
}


def colour_of(kind: str) -> str:
    """The CSS colour of a kind of end."""
    return {"disc": "var(--good)", "down": "var(--bad)"}.get(_SHAPES[kind], "var(--quiet)")


def end_mark(kind: str, x: float, y: float, size: float = 4) -> str:
    """The mark of a kind of end, `size` about half its width."""
    return _shape(_SHAPES[kind], colour_of(kind), x, y, size)


def legend(kinds: Sequence[str], x: float, y: float) -> str:
    """The marks of these kinds with their words, side by side."""
    parts = []
    for shape in dict.fromkeys(_SHAPES[k] for k in (*KINDS, UNFINISHED) if k in kinds):
        colour = next(colour_of(k) for k, s in _SHAPES.items() if s == shape)
        parts += [_shape(shape, colour, x, y - 4, 4.5), words(_WORDS[shape], x + 9, y, class_="note")]
        x += 26 + 6.2 * len(_WORDS[shape])
    return "".join(parts)


def _shape(shape: str, colour: str, x: float, y: float, size: float) -> str:
    match shape:
        case "disc":
            return tag("circle", cx=x, cy=y, r=size, fill=colour)
        case "ring":
            return tag("circle", cx=x, cy=y, r=size - 0.8, fill="var(--paper)", stroke=colour, stroke_width=1.6)
        case "square":
            return tag("rect", x=x - size * 0.85, y=y - size * 0.85, width=size * 1.7, height=size * 1.7, fill=colour)
        case "down":
            corners = [(x - size, y - size * 0.75), (x + size, y - size * 0.75), (x, y + size)]
            return polyline(corners, closed=True, fill=colour)
        case _:
            corners = [(x, y - size * 1.15), (x + size * 1.15, y), (x, y + size * 1.15), (x - size * 1.15, y)]
            return polyline(corners, closed=True, fill=colour)
