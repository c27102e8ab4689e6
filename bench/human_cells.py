"""A cell is a metric and a number of anchors: figures over its draws, and the regret to the best rival."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.correction.design import thresholds
from aipsy_judge.correction.metric_data import MetricData
from aipsy_judge.correction.metric_fit import learn_basis

from .human_draws import draws
from .human_figures import FIGURES, LOWER_IS_BETTER, figures, scored
from .human_methods import LEAST_SCORED, all_methods, is_rival

Floats = NDArray[np.float64]
LARGEST_SHARE = 0.6  # anchors are at most this share of the rated items


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Figures of every method over the draws: method -> (D, 5) in the order of FIGURES, NaN where undefined.

    tested  test items a draw, their mean; scored: of these, method -> those that it has a value of
    """

    metric: str
    anchors: int
    items: int
    tested: float
    prevalence: float
    draws: dict[str, Floats]
    scored: dict[str, float]

    def mean(self, method: str, figure: str) -> float | None:
        """Mean over the draws where it is defined; None where it never is."""
        column = self.draws[method][:, FIGURES.index(figure)]
        known = column[~np.isnan(column)]
        return float(known.mean()) if len(known) else None

    def has_nearly_all(self, method: str) -> bool:
        """Else its figures are of items of its own."""
        return self.scored[method] >= LEAST_SCORED * self.tested

    def best_rival(self, figure: str) -> str | None:
        """The rival with the best mean, with hindsight, of those that have nearly all items."""
        sign = 1 if figure in LOWER_IS_BETTER else -1
        rivals = [m for m in self.draws if is_rival(m) and self.has_nearly_all(m)]
        known = {m: v for m in rivals if (v := self.mean(m, figure)) is not None}
        return min(known, key=lambda m: sign * known[m]) if known else None

    def regret(self, method: str, figure: str) -> Regret | None:
        """How much worse `method` is than the best rival, paired by draw; None where it lacks more than a few items."""
        best = self.best_rival(figure)
        if best is None or method not in self.draws or not self.has_nearly_all(method):
            return None
        place, sign = FIGURES.index(figure), 1 if figure in LOWER_IS_BETTER else -1
        paired = sign * (self.draws[method][:, place] - self.draws[best][:, place])
        paired = paired[~np.isnan(paired)]
        if len(paired) < 2:
            return None
        return Regret(best, float(paired.mean()), float(paired.std(ddof=1) / np.sqrt(len(paired))))


@dataclass(frozen=True, slots=True)
class Regret:
    """mean > 0: worse than `rival`; se: standard error of the mean of the paired differences over the draws."""

    rival: str
    mean: float
    se: float

    @property
    def lost(self) -> bool:
        return self.mean > self.se

    @property
    def won(self) -> bool:
        return self.mean < -self.se


def run_cells(
    tables: Sequence[MetricData], sizes: Iterable[int], *, count: int, seed: int, by_family: bool, workers: int
) -> list[Cell]:
    """One cell a table and size that fits; `workers` processes."""
    jobs = [
        (data, n, count, seed, by_family and bool((data.family >= 0).any()))
        for data in tables
        for n in sizes
        if n <= LARGEST_SHARE * int(data.anchors.sum())
    ]
    if workers <= 1:
        return [_cell(*job) for job in jobs]
    # The matrices are small: more threads inside a process only wait for each other.
    os.environ.update({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_cell, *zip(*jobs, strict=True)))


def _cell(data: MetricData, n: int, count: int, seed: int, by_family: bool) -> Cell:
    basis = learn_basis(data.panel, thresholds(*data.scale))
    rated = np.flatnonzero(data.anchors)
    found: dict[str, list[Any]] = {}
    counts: dict[str, list[int]] = {}
    tested = []
    for draw in draws(data.groups[rated], n, count, data.metric, seed):
        placed = type(draw)(draw.number, rated[draw.anchors], rated[draw.test])
        outcome = all_methods(data, basis, placed, by_family=by_family)
        span = data.scale[1] - data.scale[0]
        for name, row in figures(outcome, data.expert[placed.test], data.fails[placed.test], span).items():
            found.setdefault(name, []).append(row)
        for name, known in scored(outcome).items():
            counts.setdefault(name, []).append(known)
        tested.append(len(placed.test))
    return Cell(
        data.metric,
        n,
        len(rated),
        float(np.mean(tested)),
        float(data.fails[rated].mean()),
        {name: np.stack(rows) for name, rows in found.items()},
        {name: float(np.mean(of)) for name, of in counts.items()},
    )
