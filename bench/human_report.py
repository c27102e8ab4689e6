"""What the bench prints and writes: a table a cell, and who won where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .human_cells import Cell, Regret
from .human_figures import FIGURES
from .human_methods import BLEND, BY_FAMILY, P_FAIL

HEADS = {"rmse": "RMSE", "mae": "MAE", "spearman": "Spearman", "tail_auc": "tail AUC", "tail_recall": "tail recall"}
# What is held to the aim, and by which figure.
AIMS = ((BLEND, "rmse"), (P_FAIL, "tail_auc"))
EXTRA = ((BLEND, "mae"), (BLEND, "spearman"), (P_FAIL, "tail_recall"), (BY_FAMILY, "rmse"))


def cell_lines(cell: Cell) -> Iterator[str]:
    """One cell: every method, the test items a draw that it has a value of, five figures, regret in RMSE and in tail
    AUC."""
    yield (
        f"{cell.metric}: {cell.anchors} anchors of {cell.items} rated items, {len(cell.draws[BLEND])} draws, tested on "
        f"{cell.tested:.0f} a draw, {cell.prevalence:.1%} in the tail"
    )
    heads = " ".join(f"{HEADS[f]:>11}" for f in FIGURES)
    yield f"  {'':34}{'n':>5} {heads}   RMSE - best rival's (SE)"
    for method in cell.draws:
        row = " ".join(f"{_number(cell.mean(method, f)):>11}" for f in FIGURES)
        yield f"  {method[:33]:34}{cell.scored[method]:>5.0f} {row}   {_regret(cell.regret(method, 'rmse'))}"
    for method, figure in AIMS:
        if (regret := cell.regret(method, figure)) is not None:
            yield f"  {method}, {HEADS[figure]}: {_verdict(regret)} {_regret(regret)} than {regret.rival}"
    yield ""


def summary_lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Wins and losses against the best rival of each cell, chosen with hindsight."""
    yield "Against the best rival of each cell, chosen with hindsight; lost or won: by more than one paired SE"
    for method, figure in (*AIMS, *EXTRA):
        counted = [(c, r) for c in cells if (r := c.regret(method, figure)) is not None]
        if not counted:
            continue
        yield f"  {method}, {HEADS[figure]}: {_tally([r for _, r in counted])}"
        for n in sorted({c.anchors for c, _ in counted}):
            yield f"    {n:>4} anchors: {_tally([r for c, r in counted if c.anchors == n])}"
        if (method, figure) in AIMS:
            for cell, regret in counted:
                if regret.lost:
                    yield f"    lost: {cell.metric}, {cell.anchors} anchors, to {regret.rival}: {_regret(regret)}"


def to_dict(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The same as data; None where a figure is undefined in every draw."""
    return [
        {
            "metric": c.metric,
            "anchors": c.anchors,
            "items": c.items,
            "tested": c.tested,
            "scored": c.scored,
            "tail_prevalence": c.prevalence,
            "draws": len(c.draws[BLEND]),
            "methods": {m: {f: c.mean(m, f) for f in FIGURES} for m in c.draws},
            "regret": {m: {f: _regret_dict(c.regret(m, f)) for f in FIGURES} for m in c.draws},
        }
        for c in cells
    ]


def _regret_dict(regret: Regret | None) -> dict[str, Any] | None:
    if regret is None:
        return None
    return {"rival": regret.rival, "mean": regret.mean, "se": regret.se, "lost": regret.lost, "won": regret.won}


def _tally(regrets: Sequence[Regret]) -> str:
    lost, won = sum(r.lost for r in regrets), sum(r.won for r in regrets)
    mean = sum(r.mean for r in regrets) / len(regrets)
    return (
        f"lost {lost}, won {won} of {len(regrets)}; mean regret {mean:+.4f}, worst {max(r.mean for r in regrets):+.4f}"
    )


def _verdict(regret: Regret) -> str:
    return "worse by" if regret.lost else "better by" if regret.won else "level,"


def _regret(regret: Regret | None) -> str:
    return "" if regret is None else f"{regret.mean:+.4f} ({regret.se:.4f})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
