"""The deficit space: which axes there are, and what a level is worth on each. Data of a pack, not code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Indicator:
    """One question about the start. A level of 0..top opens a deficit of `per_level` points each (negative)."""

    id: str
    per_level: float


@dataclass(frozen=True, slots=True)
class Axis:
    """One need.

    progress and harm map every legal level to its score: progress levels rise from 0, harm levels fall from 0.
    """

    id: str
    title: str
    indicators: tuple[Indicator, ...]
    progress: Mapping[int, float]
    harm: Mapping[int, float]


@dataclass(frozen=True)
class Space:
    """The axes, in order, and the highest level of an indicator.

    `D` axes give `I` indicators, in the order of the axes, and `2D` channels: progress and harm of each axis in turn.
    """

    axes: tuple[Axis, ...]
    top_level: int

    @cached_property
    def axis_ids(self) -> tuple[str, ...]:
        return tuple(a.id for a in self.axes)

    @cached_property
    def indicators(self) -> tuple[Indicator, ...]:
        return tuple(i for a in self.axes for i in a.indicators)

    @cached_property
    def indicator_ids(self) -> tuple[str, ...]:
        return tuple(i.id for i in self.indicators)

    @cached_property
    def channel_ids(self) -> tuple[str, ...]:
        return tuple(f"{a.id}.{side}" for a in self.axes for side in ("prog", "neg"))

    @cached_property
    def channel_scores(self) -> tuple[Mapping[int, float], ...]:
        """Level -> score, for each of the 2D channels."""
        return tuple(scores for a in self.axes for scores in (a.progress, a.harm))

    @cached_property
    def deficit_matrix(self) -> Floats:
        """Shape (I, D): levels @ matrix = P_0."""
        matrix = np.zeros((len(self.indicators), len(self.axes)))
        row = 0
        for column, axis in enumerate(self.axes):
            for indicator in axis.indicators:
                matrix[row, column] = indicator.per_level
                row += 1
        return matrix
