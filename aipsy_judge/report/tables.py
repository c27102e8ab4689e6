"""The tables of the terminal output: units by metrics, metrics by units where there are many, and the overview."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..rubric import Metric, Rubric
from ..summary import Brief, ConversationSummary, worst_first
from ..units import Unit, below_critical
from ..verdict import NotApplicable, Score, Scored, Unscored
from .visible import visible
from .wording import number

if TYPE_CHECKING:
    from ..correction.applied import CorrectedUnits
    from ..correction.corrected_verdict import CorrectedScore

OVERVIEW_ROWS = 20
CORRECTED = "corr"  # as wide as "turn"


def unit_table(
    rubric: Rubric,
    summary: ConversationSummary,
    *,
    width: int = 80,
    ascii_only: bool = False,
    corrected: CorrectedUnits | None = None,
) -> RenderableType:
    """The scores of one conversation. "–" is N/A, "?" unscored, "!" a failure.

    A turn a row; a metric a row where the headings would not fit `width`.
    `ascii_only` for a terminal that cannot show the dash: it must not come out as the "?" of an unscored metric.
    `corrected` adds the corrected value under (with a metric a row: beside the meaning of) every raw score.
    """
    if rubric.unit == "conversation":
        return _meanings(rubric, summary.units[0], ascii_only, corrected)
    headings = _headings(rubric, corrected is not None)
    for fit in (cell_len, _longest_word):  # no word of a heading is ever broken
        widths = [max(fit(heading), cells) for heading, cells in headings]
        if sum(widths) + len(widths) - 1 <= width:
            return _turn_rows(rubric, summary, [h for h, _ in headings], widths, ascii_only, corrected)
    beside = width - max(cell_len(heading) for heading, _ in headings)
    blocks = _blocks(summary.units, max(1, beside // (max(cells for _, cells in headings) + 1)))
    return Group(*(_metric_rows(rubric, block, ascii_only, corrected) for block in blocks))


def overview_table(briefs: Sequence[Brief], *, ascii_only: bool = False) -> Table:
    """A conversation a row, worst first, at most twenty."""
    table = plain_table()
    for name in ("worst", "turn", "mean", "failing", "flagged", "unscored"):
        table.add_column(name, justify="right")
    table.add_column("conversation", overflow="fold")
    dash = _dash(ascii_only)
    for found in worst_first(briefs)[:OVERVIEW_ROWS]:
        table.add_row(
            Text(_two_places(found.worst_composite, dash), style="bold red" if found.failing else ""),
            str(found.worst_turn) if found.worst_turn is not None else dash,
            _two_places(found.composite, dash),
            f"{found.failing} of {found.units}",
            str(found.flagged),
            str(found.coverage.unscored),
            Text(visible(" ".join(found.id.split()), keep_newlines=False)),
        )
    if len(briefs) > OVERVIEW_ROWS:
        table.caption = f"and {len(briefs) - OVERVIEW_ROWS} more, none worse"
    return table


def flag_words(rubric: Rubric, unit: Unit) -> list[str]:
    """The flags that are set, with their severity."""
    return [f"{visible(title)}: {visible(words)}" for title, words in _flags(rubric, unit) if words not in ("", "?")]


def legend(rubric: Rubric, summary: ConversationSummary, *, ascii_only: bool = False, corrected: bool = False) -> str:
    """What the marks in the table mean, of those that occur."""
    pairs = [(m, u.scores[m.name]) for u in summary.units for m in rubric.metrics]
    marks = [
        (_dash(ascii_only) + " not applicable", any(isinstance(s, NotApplicable) for _, s in pairs)),
        ("? unscored", any(isinstance(s, Unscored) for _, s in pairs)),
        ("! failure", any(u.failure for u in summary.units)),
        (f"{CORRECTED} corrected, ! where p_fail is at its limit or above", corrected),
    ]
    return "   ".join(words for words, occurs in marks if occurs)


def _headings(rubric: Rubric, corrected: bool) -> list[tuple[str, int]]:
    """Each heading, and how wide the widest cell below it may get."""
    more = 3 if corrected else 1  # "5!" or "4.9!"
    found = [("turn", 4)] + [(visible(m.title), max(3, len(str(m.scale.maximum)) + more)) for m in rubric.metrics]
    for spec in rubric.flags:
        levels = spec.severity.levels if spec.severity is not None else {}
        found.append((visible(spec.title), max(map(cell_len, ["yes", *levels]))))
    return found + ([("composite", 5)] if rubric.composite is not None else [])


def _longest_word(heading: str) -> int:
    return max(map(cell_len, heading.split()), default=1)


def _turn_rows(
    rubric: Rubric,
    summary: ConversationSummary,
    headings: Sequence[str],
    widths: Sequence[int],
    ascii_only: bool,
    corrected: CorrectedUnits | None,
) -> Table:
    table = plain_table()
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(Text(heading), justify="center", overflow="fold", width=width)
    for unit in summary.units:
        cells = [_cell(m, unit.scores[m.name], ascii_only) for m in rubric.metrics]
        cells += [Text(visible(words)) for _, words in _flags(rubric, unit)]
        if rubric.composite is not None:
            cells.append(_composite_cell(unit, ascii_only))
        table.add_row(str(unit.turn), *cells)
        if corrected is not None:
            table.add_row(CORRECTED, *(_corrected_cell(m.name, unit, corrected) for m in rubric.metrics))
    table.add_section()
    for row in _summary_rows(rubric, summary, _dash(ascii_only), corrected):
        table.add_row(*row, style="dim")
    return table


def _summary_rows(
    rubric: Rubric, summary: ConversationSummary, dash: str, corrected: CorrectedUnits | None
) -> Iterator[list[str]]:
    """Means, and how many scores each is of."""
    composite = rubric.composite is not None
    blank = [""] * len(rubric.flags)
    means = [f"{m.mean:.1f}" if m.mean is not None else dash for m in summary.metrics]
    counts = [str(m.coverage.scored) for m in summary.metrics]
    yield ["mean", *means, *blank, *([_two_places(summary.composite, dash)] if composite else [])]
    if corrected is not None:
        yield [CORRECTED, *(_corrected_mean(m.name, corrected) for m in rubric.metrics)]
    yield ["n", *counts, *blank, *([str(summary.composites)] if composite else [])]


def _metric_rows(rubric: Rubric, units: Sequence[Unit], ascii_only: bool, corrected: CorrectedUnits | None) -> Table:
    table = plain_table()
    table.add_column("turn", overflow="fold")
    for unit in units:
        table.add_column(str(unit.turn), justify="right")
    for metric in rubric.metrics:
        table.add_row(Text(visible(metric.title)), *(_cell(metric, u.scores[metric.name], ascii_only) for u in units))
        if corrected is not None:
            table.add_row(f"  {CORRECTED}", *(_corrected_cell(metric.name, u, corrected) for u in units))
    for n, spec in enumerate(rubric.flags):
        table.add_row(Text(visible(spec.title)), *(Text(visible(_flags(rubric, u)[n][1])) for u in units))
    if rubric.composite is not None:
        table.add_row("composite", *(_composite_cell(u, ascii_only) for u in units))
    return table


def _meanings(rubric: Rubric, unit: Unit, ascii_only: bool, corrected: CorrectedUnits | None) -> Table:
    table = plain_table()
    table.add_column("metric", overflow="fold")
    table.add_column("score", justify="right")
    if corrected is not None:
        table.add_column(CORRECTED, justify="right")
    table.add_column("what this score means", overflow="fold")
    for metric in rubric.metrics:
        score = unit.scores[metric.name]
        meaning = metric.anchor_for(score.value) if isinstance(score, Scored) else None
        beside = [] if corrected is None else [_corrected_cell(metric.name, unit, corrected)]
        table.add_row(
            Text(visible(metric.title)), _cell(metric, score, ascii_only), *beside, Text(visible(meaning or ""))
        )
    for title, words in _flags(rubric, unit):
        table.add_row(Text(visible(title)), Text(visible(words)), "")
    if rubric.composite is not None:
        table.add_row("composite", _composite_cell(unit, ascii_only), "")
    return table


def plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False, header_style="")


def _cell(metric: Metric, score: Score, ascii_only: bool) -> Text:
    match score:
        case Scored() if below_critical(metric, score):
            return Text(f"{number(score.value)}!", style="bold red")
        case Scored():
            return Text(number(score.value))
        case NotApplicable():
            return Text(_dash(ascii_only), style="dim")
        case _:
            return Text("?", style="bold yellow")


def _corrected_cell(metric: str, unit: Unit, corrected: CorrectedUnits) -> Text:
    """Empty where nothing could be corrected: the raw score beside it says whether it is N/A or unscored."""
    found = corrected.get(unit.key, {}).get(metric)
    if found is None or found.value is None:
        return Text("")
    return Text(corrected_words(found), style="bold red" if found.fails else "")


def corrected_words(found: CorrectedScore) -> str:
    """The corrected value, a "!" where the expert would see a failure likely enough; "" where there is no value."""
    return "" if found.value is None else f"{found.value:.1f}" + ("!" if found.fails else "")


def _corrected_mean(metric: str, corrected: CorrectedUnits) -> str:
    found = [s.value for scores in corrected.values() if (s := scores.get(metric)) and s.value is not None]
    return f"{fmean(found):.1f}" if found else ""


def _composite_cell(unit: Unit, ascii_only: bool) -> Text:
    value = unit.composite.value
    if value is None:
        return Text("?" if unit.composite.unscored else _dash(ascii_only))
    return Text(f"{value:.2f}" + ("!" if unit.composite.failure else ""), style="bold red" * bool(unit.failure))


def _flags(rubric: Rubric, unit: Unit) -> list[tuple[str, str]]:
    """(title, words) of each flag: "" where it is not set, its severity or "yes", "?" where it could not be read."""
    found = []
    for spec in rubric.flags:
        flag = unit.verdict.flags.get(spec.name) if unit.verdict is not None else None
        if flag is None or flag.value is None:
            found.append((spec.title, "?"))
        else:
            found.append((spec.title, (flag.severity or "yes") if flag.value else ""))
    return found


def _blocks(units: Sequence[Unit], size: int) -> Iterator[Sequence[Unit]]:
    for start in range(0, len(units), size):
        yield units[start : start + size]


def _two_places(value: float | None, dash: str) -> str:
    return dash if value is None else f"{value:.2f}"


def _dash(ascii_only: bool) -> str:
    return "-" if ascii_only else "–"
