"""EPM-Q of every case of every model, as a heatmap."""

from __future__ import annotations

from collections import defaultdict

from .cases import Case
from .compare import Comparison
from .end_marks import end_mark, legend
from .svg import hint, picture, tag, words

# Where the colour is full; EPM-Q is open above, few runs pass this.
FULL = 120.0
_ROW, _COLUMN, _LEFT, _TOP = 24.0, 96.0, 150.0, 56.0


def heatmap_picture(comparison: Comparison) -> str:
    """Cases (rows, the hardest for these models first) x models (columns, as on the leaderboard), each with its end."""
    found = {(c.forms.case, c.forms.model): c for c in comparison.cases if isinstance(c, Case)}
    models = [m.model for m in comparison.models]
    cases = _hardest_first(comparison)
    parts = [_column_name(model, n) for n, model in enumerate(models)]
    for row, case in enumerate(cases):
        y = _TOP + row * _ROW
        parts.append(words(_short(case, 22), _LEFT - 8, y + _ROW / 2 + 4, class_="label", text_anchor="end"))
        parts += [_cell(found.get((case, m)), case, m, _LEFT + n * _COLUMN, y) for n, m in enumerate(models)]
    bottom = _TOP + len(cases) * _ROW
    kinds = [c.stop for c in found.values()]
    parts += [legend(kinds, _LEFT, bottom + 24), _scale(_LEFT, bottom + 38)]
    # Never narrower than the page's other pictures, or its letters would be larger than theirs.
    width = max(_LEFT + len(models) * _COLUMN + 8, 900)
    return picture(width, bottom + 66, "EPM-Q by case and model", *parts)


def _cell(case: Case | None, name: str, model: str, x: float, y: float) -> str:
    box = {"x": x + 1, "y": y + 1, "width": _COLUMN - 2, "height": _ROW - 2}
    value = case.scores["epm_q"] if case else None
    if case is None or value is None:
        why = "no score" if case is None else "undefined"
        return tag("rect", hint(f"{name}, {model}: {why}"), class_="cell none", **box) + words(
            "–", x + _COLUMN / 2, y + _ROW / 2 + 4, class_="label quiet", text_anchor="middle"
        )
    share = min(max(value / FULL, 0.0), 1.0)
    label = f"{name}, {model}: EPM-Q {value:.1f}, {case.stop.replace('_', ' ')} at turn {case.turns}: {case.why}"
    return (
        tag("rect", class_="cell", **box)
        + tag("rect", hint(label), class_="cell heat", fill_opacity=0.06 + 0.9 * share, **box)
        + words(f"{value:.1f}", x + _COLUMN / 2 + 8, y + _ROW / 2 + 4,
                class_="label strong" if share > 0.55 else "label", text_anchor="middle")
        + tag("circle", cx=x + 15, cy=y + _ROW / 2, r=7, class_="seat")
        + end_mark(case.stop, x + 15, y + _ROW / 2, size=4)
    )  # fmt: skip


def _hardest_first(comparison: Comparison) -> list[str]:
    """Cases by their mean EPM-Q over the models that have one; those without any at the end."""
    values: dict[str, list[float]] = defaultdict(list)
    names: dict[str, None] = {}
    for c in comparison.cases:
        names.setdefault(c.forms.case)
        if isinstance(c, Case) and c.scores["epm_q"] is not None:
            values[c.forms.case].append(c.scores["epm_q"])
    return sorted(names, key=lambda n: (not values[n], sum(values[n]) / max(len(values[n]), 1), n))


def _column_name(model: str, n: int) -> str:
    x = _LEFT + n * _COLUMN + _COLUMN / 2
    # Two lines at most, broken at a hyphen: names of models are long and columns are not.
    first, second = _two_lines(model, 15)
    middle = {"text_anchor": "middle", "class_": "label"}
    return (words(first, x, _TOP - 24, **middle) if second else "") + words(second or first, x, _TOP - 10, **middle)


def _two_lines(text: str, length: int) -> tuple[str, str]:
    if len(text) <= length:
        return text, ""
    cut = text.rfind("-", 0, length + 1)
    cut = cut + 1 if cut > 2 else length
    return text[:cut], _short(text[cut:], length)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _scale(x: float, y: float) -> str:
    steps = [0, 20, 40, 60, 80, 100, 120]
    return "".join(
        tag("rect", x=x + n * 40, y=y, width=40, height=10, class_="heat", fill_opacity=0.06 + 0.9 * v / FULL)
        + words(f"{v}" if v < FULL else f"{v} and above", x + n * 40 + 2, y + 24, class_="small")
        for n, v in enumerate(steps)
    )
