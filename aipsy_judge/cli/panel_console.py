"""A panel on the terminal: what it will cost, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..panel import RATINGS, Count, Estimate, JudgeReport, PanelResult, Prices, Silence
from ..panel.tokens import RULE
from ..ratings import Ratings
from ..report.text import coverage_words
from ..report.visible import visible
from ..report.wording import number, percent, plural
from ..runs_key import RETRYABLE
from ..served_judge import MAX_TOKENS

HERE = "on this machine"


def print_estimates(console: Console, estimates: Sequence[Estimate], prices: Prices | None) -> None:
    """A row a judge; with prices, what the tokens cost and what they may cost at most."""
    table = _table("judge", "to ask", "tokens in", "tokens out", *(("price", "at most") if prices else ()))
    for found in estimates:
        table.add_row(*map(Text, _estimate_cells(found, prices)))
    console.print(table)
    if any(e.input_tokens is not None for e in estimates):
        console.print(f"Tokens are estimated: {RULE}. A question may be asked twice where its answer was cut off.")
        console.print(f"At most: every answer uses its budget of {MAX_TOKENS:,} tokens, as models that think aloud do.")
    if prices is None:
        return
    total = [(e.cost(p), e.most(p)) for e in estimates if (p := prices.of(e.member)) is not None]
    cost, most = sum(c or 0.0 for c, _ in total), sum(m or 0.0 for _, m in total)
    console.print(f"Together about {_money(cost)} {prices.currency}, at most {_money(most)} {prices.currency}.")
    for name in prices.unused(tuple(e.member for e in estimates)):
        console.print(visible(f"note: a price for {name}, which is none of these judges"))


def _estimate_cells(found: Estimate, prices: Prices | None) -> list[str]:
    cells = [visible(found.member.name, keep_newlines=False), f"{found.items:,}"]
    if found.input_tokens is None or found.output_tokens is None:
        return [*cells, HERE, "–", *(("–", "–") if prices else ())]
    cells += [f"{found.input_tokens:,}", f"{found.output_tokens:,}"]
    if prices is None:
        return cells
    price = prices.of(found.member)
    if price is None:
        return [*cells, "no price", "no price"]
    return [*cells, _money(found.cost(price)), _money(found.most(price))]


def print_result(
    console: Console,
    result: PanelResult,
    items: int,
    prices: Prices | None,
    folder: Path,
    ratings: Ratings | None,
) -> None:
    """Each judge, who was silent where, and where the ratings are."""
    console.print()
    for judge in result.judges:
        _print_judge(console, judge, items, prices)
    print_silence(console, result.silences)
    if ratings is None:
        console.print("No judge gave a score: there are no ratings to write.")
    else:
        where = visible(str(folder / RATINGS), keep_newlines=False)
        console.print(f"{plural(len(ratings), 'rating')} of {len(ratings.judges)} judges in {where}")


def print_silence(console: Console, silences: Sequence[Silence]) -> None:
    """Refusals by crisis status; nothing where no judge was refused anything."""
    if not any(s.blocked for s in silences):
        return
    table = _table("refused by the provider's filter", "crisis", "no crisis", "not known")
    for found in silences:
        cells = (found.crisis, found.no_crisis, found.unknown)
        table.add_row(Text(visible(found.judge, keep_newlines=False)), *(Text(_share(c)) for c in cells))
    console.print(table)
    console.print(
        "Crisis: another judge of the panel flags one. Where a judge is refused more often in a crisis, its figures "
        "and its weight in a correction rest on the easier items: compare judges on items that all of them scored."
    )


def _print_judge(console: Console, judge: JudgeReport, items: int, prices: Prices | None) -> None:
    console.print(Text(visible(judge.member.name, keep_newlines=False), style="bold"))
    lines = [f"{judge.verdicts:,} of {items:,} items; {coverage_words(judge.coverage)}"]
    lines += [f"{note}: {plural(n, 'item')}" for note, n in judge.notes.items()]
    if judge.usage is not None:
        used = judge.usage
        price = prices.of(judge.member) if prices is not None else None
        cost = (
            f", {_money(price.of(used.input_tokens, used.output_tokens))} {prices.currency}" if price and prices else ""
        )
        of = f"{plural(used.verdicts, 'answer')}, as the server counts"
        lines.append(f"used {used.input_tokens:,} tokens in, {used.output_tokens:,} out{cost} ({of})")
    if any(judge.coverage.reasons.get(reason) for reason in RETRYABLE):
        lines.append("what was lost to the server is asked for again by the same command with --resume")
    if judge.error is not None:
        lines.append(f"given up: {judge.error}")
    if judge.is_missing:
        lines.append("it gave no score to any item and is not in the ratings")
    for line in lines:
        console.print(Text(f"  {visible(line, keep_newlines=False)}"))


def _share(found: Count) -> str:
    return f"{found.blocked} of {found.items} ({percent(found.share_blocked)})" if found.items else "no items"


def _money(amount: float | None) -> str:
    """Two digits after the point, or as many as show that it is not nothing."""
    if amount is None:
        return "–"
    return f"{amount:,.2f}" if amount >= 0.1 or amount == 0 else number(amount) if amount >= 0.01 else f"{amount:.2g}"


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for n, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if n else "left", overflow="fold")
    return table
