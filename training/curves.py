"""A run as a picture: the loss of every step, and what judging the validation part gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .validation import Round

FILE = "curves.png"
SMOOTH = 20  # steps that the smoothed loss goes back, about


def draw(path: Path, log: Sequence[Mapping[str, Any]], rounds: Sequence[Round]) -> None:
    """Write the PNG; without any step there is nothing to draw, and no file."""
    if not log:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True)
    steps, losses = [row["step"] for row in log], [row["loss"] for row in log]
    top.plot(steps, losses, color="#9bb8d3", linewidth=0.8, label="each step")
    top.plot(steps, smoothed(losses), color="#1f4e79", label="smoothed")
    top.set_ylabel("loss (nats per weight)")
    top.set_ylim(bottom=0)
    top.legend()
    for label, points in _series(rounds).items():
        known = [(step, value) for step, value in points if value is not None]
        if known:
            bottom.plot(*zip(*known, strict=True), marker="o", markersize=3, label=label)
    bottom.set_xlabel("optimiser steps")
    bottom.set_ylabel("validation part, judged")
    bottom.axhline(0, color="#cccccc", linewidth=0.8)
    if bottom.get_legend_handles_labels()[0]:
        bottom.legend()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def smoothed(values: Sequence[float]) -> list[float]:
    """Exponential mean over about SMOOTH values, begun without a bias towards 0."""
    out, total, weight = [], 0.0, 0.0
    keep = 1 - 1 / SMOOTH
    for value in values:
        total, weight = keep * total + value, keep * weight + 1
        out.append(total / weight)
    return out


def _series(rounds: Sequence[Round]) -> dict[str, list[tuple[int, float | None]]]:
    flags = list(rounds[0].measures["flags"]) if rounds else []
    return {
        "agreement (mean ICC(A,1))": [(r.step, r.agreement) for r in rounds],
        "tail recall": [(r.step, r.measures["tail_recall"]) for r in rounds],
        **{f"{name} recall": [(r.step, r.measures["flags"][name]["recall"]) for r in rounds] for name in flags},
    }
