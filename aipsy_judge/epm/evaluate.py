"""The whole way at once: levels -> vectors -> paths -> stops -> indices -> EPM-Q, for many dialogues together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .epmq import compose
from .indices import indices, raw_metrics, starting_distance
from .parameters import Parameters
from .space import Floats, Space
from .stop import Stops, find_stops
from .trajectory import Trajectories, trace
from .vectors import Levels, check_turn_levels, steps


@dataclass(frozen=True)
class Evaluation:
    """N dialogues, evaluated up to their stop.

    paths      all points, those after the stop too
    levels     (N, T, 2D) levels of the turn forms
    stops      where each ended and why
    raw        (N, 9) raw metrics, nan undefined; names in indices.NAMES
    indices    (N, 9)
    scores     (N, 4) Outcome, Efficiency, Stability, EPM-Q; nan undefined
    """

    paths: Trajectories
    levels: Levels
    stops: Stops
    raw: Floats
    indices: Floats
    scores: Floats


def evaluate(
    space: Space,
    start: Floats,
    turn_levels: ArrayLike,
    lengths: ArrayLike,
    parameters: Parameters,
    *,
    every: int = 1,
    names: Sequence[str] | None = None,
    imputed_scale: float | None = None,
) -> Evaluation:
    """Evaluate N dialogues that start at `start` (N, D) with levels (N, T, 2D), `lengths` (N,) ratings each.

    A rating covers `every` turns. `imputed_scale` stands for a z0 that is undefined; None leaves what hangs on it
    undefined (nan). InputError names the dialogue and turn of a level that is not legal.
    """
    _check_start(start, names)
    ratings = _check_lengths(lengths, np.asarray(turn_levels).shape, names)
    levels = check_turn_levels(space, turn_levels, ratings, names, every=every)
    paths = trace(start, steps(space, levels), parameters)
    stops = find_stops(paths, ratings, parameters, every=every)
    raw = raw_metrics(paths, levels, stops.rating, parameters)
    scale = starting_distance(paths)
    if imputed_scale is not None:
        undefined = np.isnan(scale)
        end = paths.distance[np.arange(len(scale)), stops.rating]
        scale = np.where(undefined, imputed_scale, scale)
        raw[:, 0] = np.where(undefined, -end / imputed_scale, raw[:, 0])
    index = indices(raw, scale, parameters)
    return Evaluation(paths, levels, stops, raw, index, compose(index, parameters))


def _check_start(start: Floats, names: Sequence[str] | None) -> None:
    wrong = ~(np.isfinite(start) & (start <= 0))
    if wrong.any():
        n, d = (int(k) for k in np.argwhere(wrong)[0])
        raise InputError(
            f"P_0 holds {start[n, d]:g}: a starting deficit is negative or zero",
            where=f"{names[n] if names is not None else f'dialogue {n + 1}'}, start",
        )


def _check_lengths(lengths: ArrayLike, shape: tuple[int, ...], names: Sequence[str] | None) -> NDArray[np.int64]:
    array = np.asarray(lengths, dtype=np.int64)
    if array.shape != shape[:1] or (len(shape) > 1 and (array > shape[1]).any()):
        raise InputError(f"lengths {array.shape} do not fit turn levels of shape {shape}")
    if (array < 1).any():
        n = int(np.argmax(array < 1))
        raise InputError("no turn was rated", where=names[n] if names is not None else f"dialogue {n + 1}")
    return array
