"""The path through the deficit space, seen along each pair of its axes."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import dist

from .cases import Case
from .end_marks import end_mark
from .space import Axis, Space
from .svg import Frame, Point, grid, hint, line, picture, tag, ticks, words

_SIDE, _LEFT, _GAP, _TOP = 246.0, 52.0, 70.0, 16.0


def path_picture(case: Case, space: Space, zone: float) -> str:
    """One square a pair of axes, all at one scale: the path, the target zone (every axis at or above -zone), the
    straight way to the origin. With one axis there is no pair and no picture: the empty string."""
    pairs = list(combinations(range(len(space.axes)), 2))
    if not pairs:
        return ""
    low = min(float(case.path.position.min()), -2 * zone) - 1.5
    high = max(float(case.path.position.max()) + 1.5, zone)
    # However far the path ran, the zone stays large enough to be seen.
    high = max(high, 0.16 * (high - low))
    squares = [
        _square(case, space, i, j, zone, Frame(_LEFT + (n % 3) * (_SIDE + _GAP), _TOP + (n // 3) * (_SIDE + 66), _SIDE,
                _SIDE, (low, high), (low, high)))
        for n, (i, j) in enumerate(pairs)
    ]  # fmt: skip
    columns, rows = min(len(pairs), 3), -(-len(pairs) // 3)
    width, height = _LEFT + columns * (_SIDE + _GAP) - _GAP + 14, _TOP + rows * (_SIDE + 66) - 20
    return picture(width, height, f"Path of {case.forms.case} through the deficit space", *squares)


def _square(case: Case, space: Space, i: int, j: int, zone: float, frame: Frame) -> str:
    marks = ticks(*frame.x_range, 6)
    points = [frame.at(float(p[i]), float(p[j])) for p in case.path.position]
    corner = frame.at(-zone, -zone)
    return "".join(
        [
            tag(
                "rect",
                x=corner[0],
                y=frame.top,
                width=frame.right - corner[0],
                height=corner[1] - frame.top,
                class_="zone",
            ),
            grid(frame, marks, marks),
            line(frame.at(0, frame.y_range[0]), frame.at(0, frame.y_range[1]), class_="axis"),
            line(frame.at(frame.x_range[0], 0), frame.at(frame.x_range[1], 0), class_="axis"),
            line(points[0], frame.at(0, 0), class_="straight"),
            words("target", frame.right - 5, frame.top + 13, class_="note", text_anchor="end"),
            *(_segment(case, t, a, b) for t, (a, b) in enumerate(pairwise(points), start=1)),
            *_numbers(points),
            tag("circle", cx=points[0][0], cy=points[0][1], r=4, class_="start"),
            end_mark(case.stop, *points[-1], size=5),
            _axis_names(frame, space.axes[i], space.axes[j]),
        ]
    )


def _segment(case: Case, t: int, a: Point, b: Point) -> str:
    gain = float(case.path.gain[t])
    kind = "gain" if gain > 0 else "loss" if gain < 0 else "none"
    label = f"rating {t}: {gain:+.2f}"
    return line(a, b, class_=f"step {kind}") + tag("circle", hint(label), cx=b[0], cy=b[1], r=2.3, class_=f"dot {kind}")


def _numbers(points: list[Point]) -> list[str]:
    """Every fifth rating's number beside the path, unless it would lie on another number or an end of the path."""
    taken = [points[0], points[-1]]
    parts = []
    for t in range(5, len(points) - 1, 5):
        if all(dist(points[t], other) > 15 for other in taken):
            taken.append(points[t])
            parts.append(words(str(t), points[t][0] + 6, points[t][1] + 11, class_="small"))
    return parts


def _axis_names(frame: Frame, across: Axis, up: Axis) -> str:
    x, y = frame.left - 34, frame.top + frame.height / 2
    return words(
        f"{across.id}  {across.title}",
        frame.left + frame.width / 2,
        frame.bottom + 31,
        class_="name",
        text_anchor="middle",
    ) + words(
        f"{up.id}  {up.title}", x, y, class_="name", text_anchor="middle", transform=f"rotate(-90 {x:.1f} {y:.1f})"
    )
