"""Several tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Each adjusted for all, in the order given: compared with a level, some true null is rejected in at most that
    share of cases, however the tests hang together (Holm 1979, A Simple Sequentially Rejective Multiple Test
    Procedure, Scandinavian Journal of Statistics 6)."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for place, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        worst = max(worst, min(1.0, p_values[i] * (len(p_values) - place)))
        adjusted[i] = worst
    return adjusted
