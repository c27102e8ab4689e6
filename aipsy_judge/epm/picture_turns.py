"""Energy and alignment over the ratings of one dialogue."""

from __future__ import annotations

from .cases import Case
from .end_marks import end_mark
from .parameters import Parameters
from .svg import Frame, grid, hint, line, picture, polyline, tag, ticks, words

_WIDTH, _LEFT, _RIGHT = 900.0, 62.0, 22.0
_ENERGY_TOP, _ENERGY_HEIGHT = 26.0, 210.0
_ALIGN_TOP, _ALIGN_HEIGHT = 274.0, 110.0


def turns_picture(case: Case, parameters: Parameters) -> str:
    """Above: the energy so far and the gate |P_0| it must pass. Below: each rating's alignment, -1 to 1."""
    last = len(case.path.energy) - 1
    across = (0.0, float(max(last, 1)) + 0.5)
    # Ratings are counted, so their marks are whole.
    marks = [t for t in ticks(0, last, 15) if t == int(t)]
    return picture(
        _WIDTH,
        _ALIGN_TOP + _ALIGN_HEIGHT + 38,
        f"Energy and alignment over the ratings of {case.forms.case}",
        _energy(case, parameters, across, marks),
        _alignment(case, across, marks),
        words("turn" if case.forms.every == 1 else f"rating (each of {case.forms.every} turns)",
              _WIDTH - _RIGHT, _ALIGN_TOP + _ALIGN_HEIGHT + 32, class_="name", text_anchor="end"),
    )  # fmt: skip


def _energy(case: Case, parameters: Parameters, across: tuple[float, float], marks: list[float]) -> str:
    energy, gate = case.path.energy, float(case.path.radius[0])
    low, high = min(float(energy.min()), 0.0), max(float(energy.max()), gate)
    margin = 0.07 * (high - low) or 1.0
    frame = Frame(_LEFT, _ENERGY_TOP, _WIDTH - _LEFT - _RIGHT, _ENERGY_HEIGHT, across, (low - margin, high + margin))
    points = [frame.at(t, float(e)) for t, e in enumerate(energy)]
    early = frame.x(min(parameters.min_turns / case.forms.every, across[1]))
    return "".join(
        [
            tag("rect", x=frame.left, y=frame.top, width=early - frame.left, height=frame.height, class_="early"),
            grid(frame, marks, ticks(*frame.y_range, 6), x_labels=False),
            line(frame.at(across[0], 0), frame.at(across[1], 0), class_="axis"),
            line(frame.at(across[0], gate), frame.at(across[1], gate), class_="gate"),
            words(f"gate |P₀| = {gate:.1f}", frame.left + 6, frame.y(gate) - 6, class_="note"),
            words("energy", frame.left, frame.top - 9, class_="name"),
            polyline(points, class_="course"),
            *(
                tag("circle", hint(f"rating {t}: {e:.2f}"), cx=x, cy=y, r=2.6, class_="dot course-dot")
                for t, ((x, y), e) in enumerate(zip(points, energy, strict=True))
            ),
            end_mark(case.stop, *points[-1], size=5.5),
        ]
    )  # fmt: skip


def _alignment(case: Case, across: tuple[float, float], marks: list[float]) -> str:
    frame = Frame(_LEFT, _ALIGN_TOP, _WIDTH - _LEFT - _RIGHT, _ALIGN_HEIGHT, across, (-1.0, 1.0))
    width = min(0.62 * (frame.x(1) - frame.x(0)), 24.0)
    bars = []
    for t, cosine in enumerate(case.path.cosine[1:].tolist(), start=1):
        top, bottom = frame.y(max(cosine, 0.0)), frame.y(min(cosine, 0.0))
        # A rating of nothing still stands there, as a hair on the zero line.
        height, kind = max(bottom - top, 1.2), "gain" if cosine > 0 else "loss" if cosine < 0 else "none"
        bars.append(
            tag("rect", hint(f"rating {t}: {cosine:+.2f}"), x=frame.x(t) - width / 2, y=top, width=width, height=height,
                class_=f"bar {kind}")
        )  # fmt: skip
    return "".join(
        [
            grid(frame, marks, [-1, 0, 1]),
            *bars,
            line(frame.at(across[0], 0), frame.at(across[1], 0), class_="axis"),
            words("alignment with the ideal direction", frame.left, frame.top - 9, class_="name"),
        ]
    )
