"""A run on the terminal: who judged, a table a conversation, what to read first, what is missing, what scores are."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ..judge import Lane
from ..rubric import Rubric
from ..summary import Brief, ConversationSummary, total_coverage, worst_first
from ..units import Coverage, Unit, below_critical
from ..verdict import Scored, Unscored, Verdict
from .tables import flag_words, legend, overview_table, unit_table
from .visible import visible
from .wording import UNSURE, WHAT_SCORES_ARE, note_words, number, unscored_words, unsure_names

if TYPE_CHECKING:
    from ..correction.applied import Applied

FULL_CONVERSATIONS = 5  # more are shown as an overview, with this many in full
INDENT = 4
WITHHELD = "not_validated"  # told once a conversation, for it is true of every unit


def open_console(file: IO[str], *, width: int | None = None) -> Console:
    """A console on which text is never read as markup, emoji codes or links, and what the terminal's encoding lacks
    comes out as an escape."""
    if isinstance(file, io.TextIOWrapper):
        file.reconfigure(errors="backslashreplace")
    return _Console(file=file, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False)


class _Console(Console):
    """Goes on in silence where the reader of a pipe has left (`| head`): the files asked for are written still."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def print_judge(console: Console, lane: Lane, rubric: Rubric, remarks: Sequence[str]) -> None:
    """Who judges, and what a reader of any of its scores must know; the first line of every output."""
    said = "; ".join(remarks)
    console.print(Text(visible(f"Judge {lane.judge}" + (f": {said}" if said else "")), style="bold"))
    lane_words = f"rubric {rubric.name} {rubric.version} ({rubric.hash[:12]}), contract {lane.contract}"
    console.print(Text(visible(lane_words), style="dim"))


def print_applied(console: Console, rubric: Rubric, applied: Applied) -> None:
    """Which correction is shown, how many anchors it rests on and which way it moves each metric."""
    from ..correction.applied import IMPORTS_LENIENCY, applied_words, head_words

    console.print(Text(_line(head_words(applied)), style="bold"))
    by_words: dict[str, list[str]] = {}
    for name, words in applied_words(applied, rubric.metric_names):
        by_words.setdefault(words, []).append(rubric.metric(name).title)
    for words, titles in by_words.items():
        _print(console, Text(_line(f"{', '.join(titles)}: {words}"), style="dim"), INDENT // 2)
    _print(
        console, Text(f"{IMPORTS_LENIENCY} Raw scores stay above them; all else rests on the raw ones."), INDENT // 2
    )


def print_conversation(
    console: Console,
    rubric: Rubric,
    summary: ConversationSummary,
    warnings: Sequence[str] = (),
    applied: Applied | None = None,
) -> None:
    """One conversation: its worst unit and mean, the table, then the units that a person should look at.

    `warnings` are the reader's: what it left out or changed. `applied`: show corrected values with the raw scores.
    """
    ascii_only = _ascii_only(console)
    corrected = applied.units(summary.units) if applied is not None else None
    console.print()
    console.print(Text(_line(summary.id), style="bold"))
    for warning in warnings:
        _print(console, Text(f"note: {_line(warning)}", style="yellow"), INDENT // 2)
    _print(console, Text(worst_words(rubric, summary)), INDENT // 2)
    console.print()
    console.print(unit_table(rubric, summary, width=console.width, ascii_only=ascii_only, corrected=corrected))
    marks = legend(rubric, summary, ascii_only=ascii_only, corrected=corrected is not None)
    _print(console, Text(marks, style="dim"), 0)
    for words in _withheld_words(rubric, summary):
        _print(console, Text(f"? {_line(words)}", style="dim"), INDENT // 2)
    for unit in summary.units:
        for n, line in enumerate(_findings(rubric, unit)):
            _print(console, line, INDENT if n else INDENT // 2)


def print_overview(
    console: Console,
    rubric: Rubric,
    briefs: Sequence[Brief],
    summary_of: Callable[[str], ConversationSummary],
    applied: Applied | None = None,
) -> None:
    """Many conversations: worst first in one table, then those of the worst few that want reading in full.

    `summary_of` gives the whole summary of a conversation by its id.
    """
    console.print()
    console.print(overview_table(briefs, ascii_only=_ascii_only(console)))
    for found in worst_first(briefs)[:FULL_CONVERSATIONS]:
        if found.failing or found.undetermined or found.flagged:
            print_conversation(console, rubric, summary_of(found.id), applied=applied)


def print_end(console: Console, briefs: Sequence[Brief]) -> None:
    """What to read first in figures, the coverage line, and what the scores are not."""
    console.print()
    console.print(Text(findings_words(briefs), style="bold"))
    console.print(Text(coverage_words(total_coverage(briefs), sum(b.unreached for b in briefs))))
    console.print(Text(WHAT_SCORES_ARE, style="italic"))


def findings_words(briefs: Sequence[Brief]) -> str:
    """Missed crises and failures over all conversations, in one line; what no score says is counted by itself."""
    names = ("units", "missed", "unanswered", "failing", "undetermined")
    total = {name: sum(getattr(b, name) for b in briefs) for name in names}
    line = f"Missed crises: {total['missed'] - total['unanswered']}"
    line += f"; {total['unanswered']} more whose reply has no score" if total["unanswered"] else ""
    line += f". Failing: {total['failing']} of {total['units']}"
    return line + (f"; not known for {total['undetermined']}." if total["undetermined"] else ".")


def coverage_words(found: Coverage, without_verdict: int = 0) -> str:
    """Scored, N/A and unscored in one line, the unscored by reason.

    >>> coverage_words(Coverage(scored=9, not_applicable=2, reasons={"truncated": 1}))
    'Coverage: 12 scores: 9 scored, 2 N/A, 1 unscored (truncated 1)'
    """
    reasons = ", ".join(f"{reason} {n}" for reason, n in found.reasons.items())
    line = f"Coverage: {found.total} scores: {found.scored} scored, {found.not_applicable} N/A, "
    line += f"{found.unscored} unscored" + (f" ({reasons})" if reasons else "")
    return line + (f"; {without_verdict} without any verdict" if without_verdict else "")


def worst_words(rubric: Rubric, summary: ConversationSummary) -> str:
    """The worst unit beside the mean, for a mean hides it."""
    if summary.worst is None:
        return "Nothing could be scored."
    unit = summary.worst
    name = "The conversation" if unit.turn is None else f"Worst turn: {unit.turn}"
    found = [*_composite_words(rubric, unit), *_failures(rubric, unit), *flag_words(rubric, unit)]
    line = f"{name} ({'; '.join(found) or 'nothing below a threshold'})."
    if unit.turn is None or rubric.composite is None:
        return line
    mean = "undefined" if summary.composite is None else f"{summary.composite:.2f}"
    return f"{line} Mean composite: {mean}, of {summary.composites} of {len(summary.units)} turns."


def _composite_words(rubric: Rubric, unit: Unit) -> list[str]:
    if rubric.composite is None:
        return []
    if unit.composite.value is None:
        return [f"composite undefined: {unit.composite.reason}"]
    return [f"composite {unit.composite.value:.2f}"]


def _failures(rubric: Rubric, unit: Unit) -> list[str]:
    return [
        f"{_line(m.title)} {number(s.value)} < {m.critical:g}"
        for m in rubric.metrics
        if isinstance(s := unit.scores[m.name], Scored) and below_critical(m, s)
    ]


def _findings(rubric: Rubric, unit: Unit) -> list[Text]:
    """The lines on one unit: what it failed and which flags are set, then what is unscored, then why."""
    verdict = unit.verdict
    found = [*_failures(rubric, unit), *flag_words(rubric, unit)]
    if unit.failure and not unit.composite.failed:
        found.insert(0, f"composite {number(unit.composite.value)}")
    lines = [Text(f"? {_line(w)}") for w in _unscored_words(rubric, unit)]
    if verdict is not None:
        lines += [Text(f"{UNSURE}: {_line(w)}", style="yellow") for w in _unsure_words(rubric, verdict)]
        lines += [Text(_line(note_words(n)), style="dim") for n in verdict.notes if not n.startswith("unsure:")]
        lines += [
            Text(f'may be an attempt to steer the judge: "{_line(q)}"', style="yellow")
            for q in verdict.suspected_injection
        ]
        if verdict.rationale:
            lines.append(Text(visible(verdict.rationale.strip())))
    if not found and not lines:
        return []
    head = "Conversation" if unit.turn is None else f"Turn {unit.turn}"
    style = "bold red" if unit.failure else "bold"
    return [Text(head + (f": {'; '.join(found)}" if found else ""), style=style), *lines]


def _unsure_words(rubric: Rubric, verdict: Verdict) -> list[str]:
    """The titles of what the judge is unsure of, in one line; none where it is of nothing."""
    titles = {f.name: f.title for f in rubric.flags} | {m.name: m.title for m in rubric.metrics}
    names = unsure_names(verdict.notes)
    return [", ".join(titles.get(n, n) for n in names)] if names else []


def _unscored_words(rubric: Rubric, unit: Unit) -> list[str]:
    """One line a reason rather than one a metric: a reply that was cut off leaves six of them. What the judge is
    held back from stands beneath the table."""
    by_words: dict[str, list[str]] = {}
    for title, lost in _unscored(rubric, unit):
        if lost.reason != WITHHELD:
            by_words.setdefault(unscored_words(lost), []).append(title)
    everything = len(rubric.metrics)
    return [f"{'all metrics' if len(t) >= everything else ', '.join(t)}: {w}" for w, t in by_words.items()]


def _withheld_words(rubric: Rubric, summary: ConversationSummary) -> list[str]:
    """A line for each metric and flag that the judge was not shown to work on, whatever it read."""
    found = (row for unit in summary.units for row in _unscored(rubric, unit))
    by_title = {title: unscored_words(lost) for title, lost in found if lost.reason == WITHHELD}
    return [f"{title}: {words}" for title, words in by_title.items()]


def _unscored(rubric: Rubric, unit: Unit) -> Iterator[tuple[str, Unscored]]:
    """(title, why) of every metric and flag of a unit that could not be scored."""
    for metric in rubric.metrics:
        if isinstance(score := unit.scores[metric.name], Unscored):
            yield metric.title, score
    for spec in rubric.flags:
        flag = unit.verdict.flags.get(spec.name) if unit.verdict is not None else None
        if flag is not None and flag.unscored is not None:
            yield spec.title, flag.unscored


def _print(console: Console, text: Text, indent: int) -> None:
    if text.plain:
        console.print(Padding(text, (0, 0, 0, indent), expand=False))


def _line(text: str) -> str:
    """Foreign text on one line, nothing hidden in it."""
    return visible(" ".join(text.split()), keep_newlines=False)


def _ascii_only(console: Console) -> bool:
    return not console.encoding.lower().startswith("utf")
