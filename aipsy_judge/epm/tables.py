"""Results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from .cases import Case
from .compare import Comparison, Interval, ModelSummary
from .epmq import SCORE_NAMES
from .indices import GROUPS, NAMES
from .perturbation import Differences, PairedStatistics
from .stop import KINDS, UNFINISHED

if TYPE_CHECKING:
    from rich.table import Table

SCORE_TITLES = {"outcome": "Outcome", "efficiency": "Efficiency", "stability": "Stability", "epm_q": "EPM-Q"}
NONE = "–"


def leaderboard(comparison: Comparison) -> Table:
    """Models by EPM-Q with its 95 % interval over cases, the three parts, and the lead over the next."""
    table = _table("Leaderboard (95 % bootstrap interval over cases)", ["model"])
    for title in (
        "EPM-Q",
        "interval",
        "Outcome",
        "Efficiency",
        "Stability",
        "cases",
        "turns",
        "lead over next",
        "interval",
    ):
        table.add_column(title, justify="right")
    for m in comparison.models:
        lead = m.lead
        _row(
            table,
            m.model,
            number(m.scores["epm_q"]),
            between(m.intervals["epm_q"]),
            *(number(m.scores[n]) for n in SCORE_NAMES[:3]),
            str(m.cases),
            number(m.mean_turns),
            number(lead.difference) if lead else NONE,
            between(lead.interval) if lead else NONE,
        )
    return table


def index_table(comparison: Comparison) -> Table:
    """The nine indices of every model."""
    table = _table("Indices (mean over cases)", ["model"])
    for name in NAMES:
        table.add_column(name, justify="right")
    for m in comparison.models:
        _row(table, m.model, *(number(m.indices[n]) for n in NAMES))
    return table


def ends_table(comparison: Comparison) -> Table:
    """How the cases of every model ended, in percent of its cases."""
    kinds = [k for k in (*KINDS, UNFINISHED) if any(m.stops.get(k) for m in comparison.models)]
    table = _table("How the dialogues ended (% of cases)", ["model"])
    for kind in kinds:
        table.add_column(kind.replace("_", " "), justify="right")
    for m in comparison.models:
        _row(table, m.model, *(_share(m, kind) for kind in kinds))
    return table


def breakdown_table(comparison: Comparison, title: str, by: str) -> Table | None:
    """Mean EPM-Q by dominant axis (`by_axis`) or threshold (`by_threshold`), with n; None where nothing is known."""
    parts = sorted({name for m in comparison.models for name in getattr(m, by)})
    if not parts:
        return None
    table = _table(title, ["model"])
    for part in parts:
        table.add_column(part, justify="right")
    for m in comparison.models:
        cells = (getattr(m, by).get(part) for part in parts)
        _row(table, m.model, *(f"{c.epm_q:.1f} ({c.cases})" if c else NONE for c in cells))
    return table


def dialogue_table(case: Case) -> Table:
    """One dialogue: raw metric and index, group by group, then the scores."""
    table = _table(f"{case.forms.model} / {case.forms.case}", ["", "metric"])
    for title in ("raw", "index"):
        table.add_column(title, justify="right")
    for group, names in GROUPS.items():
        for name in names:
            _row(table, SCORE_TITLES[group], name, number(case.raw[name], 3), number(case.indices[name]))
        _row(table, SCORE_TITLES[group], "mean", "", number(case.scores[group]), style="bold", end_section=True)
    _row(table, "EPM-Q", "", "", number(case.scores["epm_q"]), style="bold")
    return table


def differences_table(title: str, statistics: Sequence[PairedStatistics], by: Literal["pairs", "cases"]) -> Table:
    """Perturbed minus original, metric by metric, over pairs or over the means of cases."""
    table = _table(title, ["metric"])
    for column in ("n", "mean", "interval", "median", "decreased", "ties", "sign test p", "Wilcoxon p"):
        table.add_column(column, justify="right")
    for s in statistics:
        d: Differences = getattr(s, by)
        _row(
            table,
            s.metric,
            str(d.n),
            number(d.mean, 3),
            between(d.interval, 3),
            number(d.median, 3),
            _percent(d.decreased, d.n),
            _percent(d.ties, d.n),
            _p_value(d.sign_p),
            _p_value(d.wilcoxon_p),
        )
    return table


def number(value: float | None, digits: int = 1) -> str:
    """A number, or a dash where there is none."""
    return NONE if value is None else f"{value:.{digits}f}"


def between(ends: Interval | None, digits: int = 1) -> str:
    return NONE if ends is None else f"{ends[0]:.{digits}f} .. {ends[1]:.{digits}f}"


def _percent(count: int, n: int) -> str:
    return f"{100 * count / n:.1f} %" if n else NONE


def _p_value(p: float | None) -> str:
    return NONE if p is None else f"{p:.2g}"


def _share(model: ModelSummary, kind: str) -> str:
    count = model.stops.get(kind, 0)
    return f"{100 * count / model.cases:.0f} ({count})" if count else NONE


def _table(title: str, columns: Iterable[str]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left", no_wrap=True)
    return table


def _row(table: Table, *cells: str, style: str | None = None, end_section: bool = False) -> None:
    from rich.text import Text

    from ..report.visible import visible

    # Text, not markup: a model may be called anything.
    table.add_row(*(Text(visible(c, keep_newlines=False)) for c in cells), style=style, end_section=end_section)
