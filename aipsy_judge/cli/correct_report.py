"""A correction as terminal tables: out-of-fold figures first, the in-sample one only beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..correction.record import Correction, Figure, FlagRecord, MetricRecord

OTHER_HEADS = {
    "mae": "MAE",
    "spearman": "Spearman",
    "failure_auc": "failure AUC",
    "failure_recall": "recall",
    "failure_precision": "precision",
}


def print_correction(correction: Correction) -> None:
    """Every metric: figures, blend, weights, direction, warnings."""
    from rich.console import Console

    console = Console()
    who = f"{len(correction.judges)} judges" if len(correction.judges) > 1 else correction.judges[0]
    bound = f"rubric {correction.rubric.name}" if correction.rubric is not None else "bound to no rubric"
    _say(console, f"Correction of {who} against {', '.join(correction.experts)}; {bound}; {correction.profile}")
    for note in correction.notes:
        _say(console, f"note: {note}")
    for record in correction.metrics.values():
        _metric(console, record)
    for flag in correction.flags.values():
        _flag(console, flag)


def _metric(console: Console, record: MetricRecord) -> None:
    from rich.text import Text

    console.print()
    console.print(
        Text(
            f"{record.metric}: {record.anchors} anchors in {record.conversations} conversations, {record.items} items",
            style="bold",
        )
    )
    for warning in record.warnings:
        _say(console, f"  warning: {warning}")
    if record.out_of_fold:
        console.print(_errors(record))
        console.print(_in_full(record))
    for line in _words(record):
        _say(console, f"  {line}")


def _errors(record: MetricRecord) -> Table:
    """Every way to a value: its share in the blend and its error."""
    table = _table("RMSE out of fold [95 % interval]")
    table.add_column("", overflow="fold", max_width=44)
    table.add_column("share in blend", justify="right")
    table.add_column("RMSE", justify="right")
    shares = {f"rung: {r.name}": f"{r.blend:.2f}" for r in record.rungs}
    for way, found in record.out_of_fold.items():
        if "rmse" in found:
            table.add_row(*map(_text, (way, shares.get(way, ""), _cell(found["rmse"]))))
    return table


def _in_full(record: MetricRecord) -> Table:
    """The other figures of the few ways that have them."""
    table = _table("other figures out of fold")
    table.add_column("")
    shown = {way: found for way, found in record.out_of_fold.items() if len(found) > 1}
    for way in shown:
        table.add_column(_text(way), justify="right", overflow="fold", max_width=18)
    for name, head in OTHER_HEADS.items():
        cells = [_cell(found[name]).replace(" [", "\n[") if name in found else "" for found in shown.values()]
        if any(cells):
            table.add_row(*map(_text, (head, *cells)))
    return table


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")


def _text(words: str) -> Text:
    from rich.text import Text

    return Text(words)


def _words(record: MetricRecord) -> Iterator[str]:
    if record.moved is not None:
        yield record.moved.sentence
    weights = ", ".join(f"{judge} {_with_range(record, judge, w)}" for judge, w in record.combined.judges.items())
    yield f"weights: {weights}; at the centre {_with_range(record, 'at_centre', record.combined.at_centre)}"
    if record.in_sample_rmse is not None and "blend" in record.out_of_fold:
        outside = record.out_of_fold["blend"]["rmse"].value
        yield f"blend RMSE: {outside:.3f} out of fold ({record.in_sample_rmse:.3f} on the anchors it was fitted to)"
    yield from _failure_words(record)
    if record.families:
        yield "bias by family: " + ", ".join(f"{name} {bias:+.2f}" for name, bias in record.families.items())
    if record.tail is not None and "blend, tail-aware" in record.out_of_fold:
        yield _exchange(record)


def _failure_words(record: MetricRecord) -> Iterator[str]:
    failure = record.failure
    if failure is None:
        yield "no critical threshold, no p_fail"
        return
    if record.no_p_fail is not None:
        yield f"p_fail is undefined: {record.no_p_fail}"
        return
    rest = "the anchors" if failure.basis == "anchors" else "its prior: nothing here checks it"
    yield (
        f"p_fail: expert {'at or below' if failure.or_at else 'below'} {failure.below:g}; {failure.failures} of "
        f"{record.anchors} anchors fail; rests on {rest}; flags from {failure.flag_from:.2f}"
    )


def _exchange(record: MetricRecord) -> str:
    assert record.tail is not None
    plain, aware = record.out_of_fold["blend"], record.out_of_fold["blend, tail-aware"]

    def pair(name: str) -> str:
        return f"{_value(plain[name])} to {_value(aware[name])}"

    return (
        f"tail-aware, an error on a failure counts {record.tail.price:g} times: RMSE {pair('rmse')}, recall of the "
        f"value {pair('failure_recall')}, precision {pair('failure_precision')} (out of fold)"
    )


def _flag(console: Console, flag: FlagRecord) -> None:
    votes = ", ".join(f"{judge} {vote:.2f}" for judge, vote in flag.votes.items())
    _say(console, f"\n{flag.flag} (flag): votes {votes}; {flag.anchors} anchors")
    for warning in flag.warnings:
        _say(console, f"  warning: {warning}")


def _with_range(record: MetricRecord, name: str, value: float) -> str:
    found = record.weight_intervals.get(name)
    if found is None or found.low is None or found.high is None:
        return f"{value:.2f}"
    return f"{value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _cell(figure: Figure) -> str:
    if figure.value is None:
        return "–"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.2f}, {figure.high:.2f}]"


def _value(figure: Figure) -> str:
    return "–" if figure.value is None else f"{figure.value:.2f}"


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False)
