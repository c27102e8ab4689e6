"""Levels of the two forms -> the starting deficit P_0 and one step vector a rating.

Arrays over many dialogues at once: N dialogues, T ratings (padded to the longest), I indicators, D axes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .space import Floats, Space

Levels = NDArray[np.int64]


def check_start_levels(space: Space, levels: ArrayLike, names: Sequence[str] | None = None) -> Levels:
    """Levels of the starting form, shape (N, I), as whole numbers; InputError naming dialogue and indicator."""
    array = _numbers(levels, 2, len(space.indicators), "starting levels")
    wrong = ~((array >= 0) & (array <= space.top_level) & (array == np.floor(array)))
    if wrong.any():
        n, i = (int(k) for k in np.argwhere(wrong)[0])
        raise InputError(
            f"level {array[n, i]:g} of {space.indicator_ids[i]} is not a whole number in 0..{space.top_level}",
            where=f"{_name(n, names)}, start",
        )
    return array.astype(np.int64)


def check_turn_levels(
    space: Space, levels: ArrayLike, lengths: ArrayLike, names: Sequence[str] | None = None, *, every: int = 1
) -> Levels:
    """Levels of the turn forms, shape (N, T, 2D), as whole numbers, zeroed from `lengths` (N,) on.

    InputError names dialogue, turn (from 1) and channel of the first level that is not legal (NaN is not). A rating
    covers `every` turns.
    """
    array = _numbers(levels, 3, len(space.channel_ids), "turn levels")
    inside = np.arange(array.shape[1])[None, :] < np.asarray(lengths)[:, None]
    legal = np.stack([np.isin(array[..., c], list(s)) for c, s in enumerate(space.channel_scores)], axis=-1)
    wrong = ~legal & inside[..., None]
    if wrong.any():
        n, t, c = (int(k) for k in np.argwhere(wrong)[0])
        legal_levels = ", ".join(map(str, sorted(space.channel_scores[c])))
        raise InputError(
            f"level {array[n, t, c]:g} of {space.channel_ids[c]} is none of {legal_levels}",
            where=f"{_name(n, names)}, {turns_of(t, every)}",
        )
    return np.where(inside[..., None], array, 0).astype(np.int64)


def deficits(space: Space, start_levels: Levels) -> Floats:
    """P_0, shape (N, D): per axis the sum of level times points a level; never positive."""
    # + 0.0 turns -0.0 into 0.0, which would otherwise be shown.
    return np.asarray(start_levels, dtype=np.float64) @ space.deficit_matrix + 0.0


def steps(space: Space, turn_levels: Levels) -> Floats:
    """v, shape (N, T, D): per axis the score of its progress level plus the score of its harm level."""
    scores = np.empty(turn_levels.shape, dtype=np.float64)
    for channel, table in enumerate(space.channel_scores):
        low = min(table)
        lookup = np.array([table[level] for level in range(low, max(table) + 1)], dtype=np.float64)
        scores[..., channel] = lookup[turn_levels[..., channel] - low]
    return scores[..., 0::2] + scores[..., 1::2]


def turns_of(rating: int, every: int) -> str:
    """The turns, counted from 1, that a rating (counted from 0) covers, in words."""
    first = rating * every + 1
    return f"turn {first}" if every == 1 else f"turns {first} to {first + every - 1}"


def _numbers(levels: ArrayLike, dimensions: int, width: int, what: str) -> Floats:
    try:
        array = np.asarray(levels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are not numbers in rows of equal length: {error}") from error
    if array.ndim != dimensions or array.shape[-1] != width:
        raise InputError(f"{what} have shape {array.shape}; the last of {dimensions} dimensions must be {width}")
    return array


def _name(n: int, names: Sequence[str] | None) -> str:
    return names[n] if names is not None else f"dialogue {n + 1}"
