"""A heatmap: a table of cells with figure, interval, n, a plain sentence and a shade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..agreement.estimate import Estimate
from .mapping import CompetenceMap
from .wording import share

# Steps of a shade: worry (orange) 1..4, trust (teal) 1..4, strict (violet) 1..4, or none.
Shade = Literal["", "w1", "w2", "w3", "w4", "t1", "t2", "t3", "t4", "v1", "v2", "v3", "v4"]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """`text` the figure, "–" where there is none; `interval` its ends or ""; `found`: it is among the findings."""

    text: str
    interval: str
    n: int
    sentence: str
    shade: Shade
    found: bool = False


@dataclass(frozen=True, slots=True)
class Heatmap:
    """`lead` says what it shows, `colours` what the shades mean; rows are (name, one cell a column)."""

    id: str
    title: str
    lead: str
    colours: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]


def ramp(value: float, kind: Literal["w", "t", "v"]) -> Shade:
    """0..1 to a step, 0 to none."""
    step = min(4, int(value * 5))
    return f"{kind}{step}" if step > 0 else ""  # type: ignore[return-value]


def trust(estimate: Estimate, span: float) -> Shade:
    """0 and below: deepest worry, 0.5: none, 1: deepest trust."""
    value = min(1.0, max(0.0, estimate.value or 0.0))
    return ramp(1 - 2 * value, "w") if value < 0.5 else ramp(2 * value - 1, "t")


def trust_auc(estimate: Estimate, span: float) -> Shade:
    """0.5 is a coin: worry; from 0.75 on trust."""
    value = min(1.0, max(0.5, estimate.value or 0.5)) * 2 - 1
    return ramp(1 - 2 * value, "w") if value < 0.5 else ramp(2 * value - 1, "t")


def signed(estimate: Estimate, span: float) -> Shade:
    """A quarter of the scale and more is deepest; none where the interval holds 0, or there is none."""
    if estimate.value is None or estimate.interval is None or estimate.interval.holds(0.0):
        return ""
    return ramp(min(1.0, 0.2 + abs(estimate.value) / span * 4), "w" if estimate.value > 0 else "v")


def distance(estimate: Estimate, span: float) -> Shade:
    return ramp(min(1.0, (estimate.value or 0.0) / span * 4), "w")


def much(estimate: Estimate, span: float) -> Shade:
    return ramp(min(1.0, estimate.value or 0.0), "w")


TRUST = "Orange: little, teal: much. A figure near the middle is left white."
WAY = "Orange: lenient, violet: strict; white where the interval holds 0 or there is none."


def heat_cell(
    estimate: Estimate, sentence: str, shade: Shade, *, percent: bool = False, sign: bool = False, found: bool = False
) -> HeatCell:
    if estimate.value is None:
        return HeatCell("–", "", cases(estimate), sentence, "")

    def text(value: float) -> str:
        # Adding 0 turns a rounded -0.00 into 0.00.
        return share(value) if percent else f"{round(value, 2) + 0.0:{'+' if sign else ''}.2f}"

    ends = ""
    if estimate.interval is not None:
        known = estimate.low is not None and estimate.high is not None
        ends = f"{text(estimate.low or 0)} to {text(estimate.high or 0)}" if known else "?"
    return HeatCell(text(estimate.value), ends, cases(estimate), sentence, shade, found)


def cases(estimate: Estimate) -> int:
    """The n that a figure rests on: of a share, the cases it is a share of."""
    name = {"recall": "positive", "precision": "positive_rater"}.get(estimate.name.rpartition("_")[2], "")
    return int(estimate.beside.get(name) or 0) if name in estimate.beside else estimate.n


def span_of(drawn: CompetenceMap, metric: str) -> float:
    """Length of a metric's scale; the overall score's is that of the widest, or 1 where it is a share."""
    if metric in drawn.scales:
        return drawn.scales[metric][1] - drawn.scales[metric][0]
    if "share" in drawn.overall:
        return 1.0
    return max((span_of(drawn, m) for m in drawn.metrics), default=1.0)


def is_found(drawn: CompetenceMap, kind: str, judge: str, about: str | None) -> bool:
    return any((f.kind, f.judge, f.about) == (kind, judge, about) for f in drawn.findings)
