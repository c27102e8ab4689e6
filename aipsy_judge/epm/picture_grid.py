"""Every model's dialogues side by side: progress over the turns, and the mean indices as small radars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .cases import Case
from .compare import Comparison, ModelSummary
from .end_marks import colour_of, end_mark, legend
from .picture_radar import radar
from .space import Floats
from .svg import Frame, grid, hint, line, picture, polyline, tag, ticks, words

_COLUMNS, _CELL, _HEIGHT, _LEFT, _TOP = 4, 218.0, 150.0, 40.0, 30.0


def progress_picture(comparison: Comparison) -> str:
    """A cell a model, a line a dialogue: energy in shares of the gate |P_0| over the turns, ending in its mark.

    All cells share their scales. Dialogues without a deficit have no gate and no line.
    """
    by_model = {m.model: _dialogues(comparison, m.model) for m in comparison.models}
    shares = [s for found in by_model.values() for _, s in found]
    if not shares:
        return ""
    across = (0.0, float(max(c.turns for found in by_model.values() for c, _ in found)) + 1)
    low, high = min(float(s.min()) for s in shares), max(1.2, max(float(s.max()) for s in shares))
    # A single plunge must not flatten all the others: lines leave the cell below twice the gate.
    up = (max(low, -2.0) - 0.1, high + 0.1)
    cells = [_progress(m.model, by_model[m.model], _frame(n, across, up)) for n, m in enumerate(comparison.models)]
    bottom = _TOP + _rows(len(cells)) * (_HEIGHT + 58)
    kinds = [c.stop for found in by_model.values() for c, _ in found]
    return picture(_width(len(cells)), bottom + 16, "Energy over turns, every dialogue", *cells,
                   legend(kinds, _LEFT, bottom + 4))  # fmt: skip


def radars_picture(comparison: Comparison) -> str:
    """A small radar a model: the mean of its indices; the bold ring is 100, the rim 150."""
    models = [m for m in comparison.models if m.cases]
    if not models:
        return ""
    cells = [_radar(m, n) for n, m in enumerate(models)]
    return picture(_width(len(cells)), _TOP + _rows(len(cells)) * 208 - 6, "Mean indices of every model", *cells)


def _dialogues(comparison: Comparison, model: str) -> list[tuple[Case, Floats]]:
    cases = [c for c in comparison.cases if isinstance(c, Case) and c.forms.model == model and c.path.radius[0] > 0]
    return [(c, np.asarray(c.path.energy / c.path.radius[0])) for c in cases]


def _progress(model: str, found: Sequence[tuple[Case, Floats]], frame: Frame) -> str:
    parts = [
        words(model, frame.left, frame.top - 9, class_="name"),
        grid(frame, ticks(*frame.x_range, 5), ticks(*frame.y_range, 4)),
        line(frame.at(frame.x_range[0], 0), frame.at(frame.x_range[1], 0), class_="axis"),
        line(frame.at(frame.x_range[0], 1), frame.at(frame.x_range[1], 1), class_="gate"),
    ]
    floor = frame.y_range[0]
    for case, shares in found:
        points = [frame.at(min(t * case.forms.every, case.turns), max(float(s), floor)) for t, s in enumerate(shares)]
        label = hint(f"{case.forms.case}: {case.stop.replace('_', ' ')} at turn {case.turns}")
        parts.append(
            tag("g", label, polyline(points, class_="thread", stroke=colour_of(case.stop)),
                end_mark(case.stop, *points[-1], size=3))
        )  # fmt: skip
    return "".join(parts)


def _radar(model: ModelSummary, n: int) -> str:
    x, y = _LEFT + (n % _COLUMNS) * _CELL + 78, _TOP + (n // _COLUMNS) * 208 + 92
    name = words(model.model, x, y - 88, class_="name", text_anchor="middle")
    score = words(f"EPM-Q {model.scores['epm_q']:.1f}", x, y + 90, class_="figure", text_anchor="middle")
    return name + radar(model.indices, x, y, 74, labels=False) + score


def _frame(n: int, across: tuple[float, float], up: tuple[float, float]) -> Frame:
    left, top = _LEFT + (n % _COLUMNS) * _CELL, _TOP + (n // _COLUMNS) * (_HEIGHT + 58)
    return Frame(left, top, _CELL - 44, _HEIGHT, across, up)


def _rows(cells: int) -> int:
    return -(-cells // _COLUMNS)


def _width(cells: int) -> float:
    return _LEFT + _COLUMNS * _CELL - 20
