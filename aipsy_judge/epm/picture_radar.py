"""The nine indices as a radar."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .indices import GROUPS, NAMES
from .svg import Point, line, picture, polyline, tag, words

# Open indices pass 100; beyond this the mark stays on the rim and only the number tells.
TOP = 150.0
_RINGS = (50.0, 100.0, 150.0)


def radar_picture(indices: Mapping[str, float | None], title: str) -> str:
    """A radar of its own, with every index's name and value around it."""
    width, height, radius = 430.0, 380.0, 132.0
    return picture(width, height, title, radar(indices, width / 2, height / 2, radius, labels=True))


def radar(indices: Mapping[str, float | None], x: float, y: float, radius: float, *, labels: bool) -> str:
    """The nine spokes in three groups; undefined indices leave a gap in the outline."""
    spokes = {name: _direction(n) for n, name in enumerate(NAMES)}
    points = {
        name: _point(x, y, radius * min(value, TOP) / TOP, spokes[name])
        for name, value in indices.items()
        if value is not None
    }
    outline = [points[name] for name in NAMES if name in points]
    whole = len(outline) == len(NAMES)
    return "".join(
        [
            *(
                tag("circle", cx=x, cy=y, r=radius * ring / TOP, class_="ring full" if ring == 100 else "ring")
                for ring in _RINGS
            ),
            *(line((x, y), _point(x, y, radius, d), class_="grid") for d in spokes.values()),
            polyline(outline, closed=True, class_="area" if whole else "area open"),
            *(
                tag("circle", cx=px, cy=py, r=3.2 if labels else 1.9, class_=f"dot {_group(name)}")
                for name, (px, py) in points.items()
            ),
            *(_label(name, indices.get(name), x, y, radius, d) for name, d in spokes.items() if labels),
            *(words(f"{ring:g}", x + 3, y - radius * ring / TOP + 11, class_="small") for ring in _RINGS if labels),
        ]
    )


def _label(name: str, value: float | None, x: float, y: float, radius: float, direction: Point) -> str:
    px, py = _point(x, y, radius + 16, direction)
    anchor = "middle" if abs(direction[0]) < 0.25 else "start" if direction[0] > 0 else "end"
    figure = "–" if value is None else f"{value:.1f}"
    py += 4 + 8 * direction[1]
    return words(name, px, py - 6, class_=f"name {_group(name)}", text_anchor=anchor) + words(
        figure, px, py + 8, class_="figure", text_anchor=anchor
    )


def _group(name: str) -> str:
    return next(group for group, names in GROUPS.items() if name in names)


def _direction(n: int) -> Point:
    # The first group straddles the top.
    angle = 2 * math.pi * (n - 1) / len(NAMES) - math.pi / 2
    return math.cos(angle), math.sin(angle)


def _point(x: float, y: float, length: float, direction: Point) -> Point:
    return x + length * direction[0], y + length * direction[1]
