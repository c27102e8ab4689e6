"""The few pieces of SVG that the pictures are made of. Colours are the report's CSS variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ..report.visible import visible

Point = tuple[float, float]


def tag(name: str, *children: str, **attributes: str | float | None) -> str:
    """An element. `class_` and `stroke_width` become class and stroke-width; None leaves an attribute out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(children)}</{name}>" if children else f"<{name}{given}/>"


def picture(width: float, height: float, title: str, *children: str) -> str:
    """A whole picture that scales with the page; `title` is what a screen reader says."""
    box = f"0 0 {_value(width)} {_value(height)}"
    return tag("svg", tag("title", plain(title)), *children, viewBox=box, role="img", class_="picture")


def words(text: str, x: float, y: float, **attributes: str | float | None) -> str:
    """Text at a point."""
    return tag("text", plain(text), x=x, y=y, **attributes)


def line(a: Point, b: Point, **attributes: str | float | None) -> str:
    return tag("line", x1=a[0], y1=a[1], x2=b[0], y2=b[1], **attributes)


def polyline(points: Iterable[Point], *, closed: bool = False, **attributes: str | float | None) -> str:
    listed = " ".join(f"{_value(x)},{_value(y)}" for x, y in points)
    return tag("polygon" if closed else "polyline", points=listed, **attributes)


def hint(text: str) -> str:
    """What is shown when the pointer rests on the element it is put into."""
    return tag("title", plain(text))


def plain(text: str) -> str:
    """Text of strangers, safe inside SVG and HTML."""
    return escape(visible(text, keep_newlines=False))


@dataclass(frozen=True, slots=True)
class Frame:
    """A box on the page and the stretch of data it shows; y grows upwards in data, downwards on the page."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * self.width

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.top + (high - value) / (high - low) * self.height

    def at(self, x: float, y: float) -> Point:
        return self.x(x), self.y(y)

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within low..high, at most `most` + 1 of them, a step of 1, 2 or 5 times a power of ten apart.

    >>> ticks(-23, 4, 6)
    [-20, -15, -10, -5, 0]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough - 1e-12)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 10) if step < 1 else int(k * step) for k in range(first, last + 1)]


def grid(frame: Frame, xs: Sequence[float], ys: Sequence[float], *, x_labels: bool = True) -> str:
    """Thin lines at the ticks, their numbers left and below."""
    parts = [
        *(line((frame.x(v), frame.top), (frame.x(v), frame.bottom), class_="grid") for v in xs),
        *(line((frame.left, frame.y(v)), (frame.right, frame.y(v)), class_="grid") for v in ys),
        *(words(f"{v:g}", frame.left - 6, frame.y(v) + 3.5, class_="tick", text_anchor="end") for v in ys),
    ]
    if x_labels:
        parts += [words(f"{v:g}", frame.x(v), frame.bottom + 14, class_="tick", text_anchor="middle") for v in xs]
    return "".join(parts)


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return escape(value, quote=True)
    return f"{value:.2f}".rstrip("0").rstrip(".")
