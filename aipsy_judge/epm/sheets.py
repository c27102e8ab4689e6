"""Results as sheets of text: what the terminal's tables and the report's have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..report.visible import visible
from .cases import Case
from .compare import Comparison, Interval, ModelSummary
from .epmq import SCORE_NAMES
from .indices import GROUPS, NAMES
from .perturbation import Differences, PairedStatistics
from .space import Space
from .stop import KINDS, UNFINISHED

if TYPE_CHECKING:
    from rich.table import Table

SCORE_TITLES = {"outcome": "Outcome", "efficiency": "Efficiency", "stability": "Stability", "epm_q": "EPM-Q"}
NONE = "–"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A title, column heads, and rows of text. The first `names` columns are names, the rest figures; `totals` are
    the numbers of rows that sum up those above them."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    totals: frozenset[int] = frozenset()


def leaderboard(comparison: Comparison) -> Sheet:
    """Models by EPM-Q with its 95 % interval over cases, the three parts, and the lead over the next."""
    head = ("model", "EPM-Q", "interval", "Outcome", "Efficiency", "Stability", "cases", "turns", "lead over next")
    rows = tuple(
        (
            m.model,
            number(m.scores["epm_q"]),
            between(m.intervals["epm_q"]),
            *(number(m.scores[n]) for n in SCORE_NAMES[:3]),
            str(m.cases),
            number(m.mean_turns),
            number(m.lead.difference) if m.lead else NONE,
            between(m.lead.interval) if m.lead else NONE,
        )
        for m in comparison.models
    )
    return Sheet("Leaderboard (95 % bootstrap intervals over cases)", (*head, "interval"), rows)


def index_sheet(comparison: Comparison) -> Sheet:
    """The nine indices of every model."""
    rows = tuple((m.model, *(number(m.indices[n]) for n in NAMES)) for m in comparison.models)
    return Sheet("Indices (mean over cases)", ("model", *NAMES), rows)


def ends_sheet(comparison: Comparison) -> Sheet:
    """How the cases of every model ended, in percent of its cases."""
    kinds = [k for k in (*KINDS, UNFINISHED) if any(m.stops.get(k) for m in comparison.models)]
    rows = tuple((m.model, *(_share(m, kind) for kind in kinds)) for m in comparison.models)
    return Sheet("How the dialogues ended (% of cases, count)", ("model", *(k.replace("_", " ") for k in kinds)), rows)


def breakdown_sheets(comparison: Comparison, space: Space) -> list[Sheet]:
    """Mean EPM-Q by dominant axis, and by threshold where the runs name it, with the number of cases."""
    axes = ", ".join(f"{a.id} {a.title}" for a in space.axes)
    by_axis = {m.model: m.by_axis for m in comparison.models}
    by_threshold = {m.model: m.by_threshold for m in comparison.models}
    sheets = []
    for title, parts in (
        (f"EPM-Q by dominant need ({axes}), cases in brackets", by_axis),
        ("EPM-Q by threshold, cases in brackets", by_threshold),
    ):
        names = sorted({name for found in parts.values() for name in found})
        if names:
            cells = {m: [found.get(n) for n in names] for m, found in parts.items()}
            rows = tuple((m, *(f"{c.epm_q:.1f} ({c.cases})" if c else NONE for c in row)) for m, row in cells.items())
            sheets.append(Sheet(title, ("model", *names), rows))
    return sheets


def dialogue_sheet(case: Case) -> Sheet:
    """One dialogue: raw metric and index, group by group, then EPM-Q."""
    rows: list[tuple[str, ...]] = []
    totals = set()
    for group, names in GROUPS.items():
        rows += [(SCORE_TITLES[group], n, number(case.raw[n], 3), number(case.indices[n])) for n in names]
        totals.add(len(rows))
        rows.append((SCORE_TITLES[group], "mean", "", number(case.scores[group])))
    totals.add(len(rows))
    rows.append(("EPM-Q", "", "", number(case.scores["epm_q"])))
    return Sheet(case.forms.title, ("", "metric", "raw", "index"), tuple(rows), names=2, totals=frozenset(totals))


def differences_sheet(title: str, statistics: Sequence[PairedStatistics], by: Literal["pairs", "cases"]) -> Sheet:
    """Perturbed minus original, metric by metric, over pairs or over the means of cases."""
    rows = []
    for s in statistics:
        d: Differences = getattr(s, by)
        figures = (number(d.mean, 3), between(d.interval, 3), number(d.median, 3))
        shares = (_percent(d.decreased, d.n), _percent(d.ties, d.n))
        rows.append((s.metric, str(d.n), *figures, *shares, _p_value(d.sign_p), _p_value(d.wilcoxon_p)))
    head = ("metric", "n", "mean", "interval", "median", "decreased", "ties", "sign test p", "Wilcoxon p")
    return Sheet(title, head, tuple(rows))


def as_table(sheet: Sheet) -> Table:
    """The sheet for a terminal, without its title. Hidden characters of names are shown as escapes."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for n, title in enumerate(sheet.head):
        table.add_column(title, justify="left" if n < sheet.names else "right", no_wrap=n < sheet.names)
    for n, row in enumerate(sheet.rows):
        # Text, not markup: a model may be called anything.
        cells = (Text(visible(cell, keep_newlines=False)) for cell in row)
        table.add_row(*cells, style="bold" if n in sheet.totals else None, end_section=n in sheet.totals)
    return table


def number(value: float | None, digits: int = 1) -> str:
    """A number, or a dash where there is none."""
    return NONE if value is None else f"{value:.{digits}f}"


def between(ends: Interval | None, digits: int = 1) -> str:
    return NONE if ends is None else f"{ends[0]:.{digits}f} .. {ends[1]:.{digits}f}"


def _share(model: ModelSummary, kind: str) -> str:
    count = model.stops.get(kind, 0)
    return f"{100 * count / model.cases:.0f} ({count})" if count else NONE


def _percent(count: int, n: int) -> str:
    return f"{100 * count / n:.1f} %" if n else NONE


def _p_value(p: float | None) -> str:
    return NONE if p is None else f"{p:.2g}"
