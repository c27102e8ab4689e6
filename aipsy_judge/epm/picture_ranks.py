"""The leaderboard drawn: EPM-Q with its interval, model by model."""

from __future__ import annotations

from .compare import Comparison
from .svg import Frame, grid, hint, line, picture, tag, ticks, words

_ROW, _LEFT, _WIDTH = 28.0, 190.0, 900.0


def ranks_picture(comparison: Comparison) -> str:
    """A dot a model and its 95 % interval over cases, on one scale from 0. Models without a score have no dot."""
    models = [(m, q) for m in comparison.models if (q := m.scores["epm_q"]) is not None]
    if not models:
        return ""
    top = max([110.0, *(i[1] for m, _ in models if (i := m.intervals["epm_q"])), *(q for _, q in models)]) * 1.03
    frame = Frame(_LEFT, 8, _WIDTH - _LEFT - 70, len(models) * _ROW, (0.0, top), (0.0, 1.0))
    parts = [grid(frame, ticks(0, top, 8), [])]
    for n, (model, value) in enumerate(models):
        y = frame.top + (n + 0.5) * _ROW
        ends = model.intervals["epm_q"]
        label = f"{model.model}: {value:.1f}" + (f" ({ends[0]:.1f} to {ends[1]:.1f})" if ends else "")
        parts += [
            words(model.model, _LEFT - 10, y + 4, class_="label", text_anchor="end"),
            line((frame.x(ends[0]), y), (frame.x(ends[1]), y), class_="whisker") if ends else "",
            tag("circle", hint(label), cx=frame.x(value), cy=y, r=5, class_="mean"),
            words(f"{value:.1f}", frame.right + 12, y + 4, class_="figure"),
        ]
    parts.append(words("EPM-Q", frame.right, frame.bottom + 30, class_="name", text_anchor="end"))
    return picture(_WIDTH, frame.bottom + 38, "EPM-Q by model with 95 % intervals over cases", *parts)
