"""When a dialogue ends, and why: after every rating, rules in a fixed order; the first that holds ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .parameters import Parameters
from .space import Floats
from .trajectory import Trajectories

Bools = NDArray[np.bool_]

# Order = precedence at one and the same point. A path that collapses and regresses at once is a collapse.
KINDS = (
    "success_geometric",
    "success_positional",
    "success_aligned",
    "collapse",
    "regression",
    "timeout",
    "oscillation",
)
UNFINISHED = "unfinished"
# Sums of rounded gains are compared with |P_0|; equality in exact arithmetic must count as equality.
_SLACK = 1e-9


@dataclass(frozen=True)
class Stops:
    """Where N paths end.

    rating  (N,)  number of ratings that count, 1..T: up to the stop, or all of them where no rule held
    kind    N names out of KINDS, or "unfinished": the dialogue ran out before any rule held
    """

    rating: NDArray[np.int64]
    kind: tuple[str, ...]


def find_stops(paths: Trajectories, lengths: NDArray[np.int64], parameters: Parameters, *, every: int = 1) -> Stops:
    """The first rating at which a rule holds. `lengths` (N,) ratings each; a rating covers `every` (K) turns.

    Order: success, failure (collapse before regression), timeout, oscillation. Windows count ratings; the least and
    the greatest number of turns count turns. Source: released code and run logs of EMPA (parameters.py).
    """
    points = np.arange(paths.energy.shape[1])
    turns = points * every
    holds = rules(paths, parameters, every=every)
    late = turns >= parameters.min_turns
    success = holds["energetic"] & late
    by_position = parameters.companionship == "position"
    fired = np.stack(
        [
            success & holds["geometric"],
            success & holds["companionship"] & by_position,
            success & holds["companionship"] & (not by_position),
            holds["collapse"] & late,
            holds["stagnant"] & holds["regressing"] & late,
            np.broadcast_to(turns >= parameters.max_turns, success.shape),
            holds["oscillating"] & ~holds["in_zone"],
        ]
    )
    fired &= (points >= 1) & (points <= lengths[:, None])
    any_rule: Bools = np.logical_or.reduce(fired, axis=0)
    stopped: Bools = np.logical_or.reduce(any_rule, axis=1)
    rating = np.where(stopped, any_rule.argmax(axis=1), lengths)
    which = fired[:, np.arange(len(rating)), rating].argmax(axis=0)
    kind = tuple(KINDS[k] if s else UNFINISHED for k, s in zip(which, stopped, strict=True))
    return Stops(rating=rating.astype(np.int64), kind=kind)


def rules(paths: Trajectories, parameters: Parameters, *, every: int = 1) -> dict[str, Bools]:
    """Each condition by name at each point, shape (N, T+1), whatever the turn."""
    reach = parameters.tolerance * paths.radius[:, :1]
    need = paths.radius[:, :1]
    if parameters.companionship == "position":
        companionship = _at_least(paths.projection, -reach, parameters)
    else:
        assert parameters.tau_align is not None
        companionship = _at_least(_mean_cosine(paths), np.array(parameters.tau_align), parameters)
    return {
        "geometric": _at_least(-paths.radius, -reach, parameters),
        "companionship": companionship,
        "energetic": _at_least(paths.energy, need, parameters),
        "in_zone": np.logical_and.reduce(paths.position >= -parameters.zone, axis=-1),
        "collapse": _trailing(
            paths.gain, parameters.collapse_window, lambda gains: np.logical_and.reduce(gains < 0, axis=-1)
        ),
        "stagnant": _stagnant(paths, parameters),
        "regressing": _regressing(paths, parameters),
        "oscillating": _oscillating(paths, parameters, every),
    }


def _at_least(value: Floats, threshold: Floats, parameters: Parameters) -> Bools:
    return np.asarray(value > threshold + _SLACK if parameters.strict else value >= threshold - _SLACK)


def _mean_cosine(paths: Trajectories) -> Floats:
    points = np.arange(paths.cosine.shape[1])
    return paths.cosine.cumsum(axis=1) / np.maximum(points, 1)


def _stagnant(paths: Trajectories, parameters: Parameters) -> Bools:
    def still(radii: Floats) -> Bools:
        return np.asarray(radii.std(axis=-1, ddof=1) < parameters.stagnation_deviation)

    return _trailing(paths.radius, parameters.stagnation_window, still)


def _regressing(paths: Trajectories, parameters: Parameters) -> Bools:
    most = parameters.regression_share * parameters.regression_window

    def falling(gains: Floats) -> Bools:
        return np.asarray(((gains < 0).sum(axis=-1) > most) & (gains.sum(axis=-1) < parameters.regression_sum))

    return _trailing(paths.gain, parameters.regression_window, falling)


def _oscillating(paths: Trajectories, parameters: Parameters, every: int) -> Bools:
    """Little movement, or little change of a distance that is still open, or much movement that cancels out."""
    if not parameters.oscillation:
        return np.zeros(paths.gain.shape, dtype=bool)
    window = max(parameters.oscillation_least_window, parameters.oscillation_window // every)
    change, net = total_and_net_change(paths, window)

    def stuck(distances: Floats) -> Bools:
        spread = distances.max(axis=-1) - distances.min(axis=-1)
        return np.asarray((spread < parameters.oscillation_range) & (distances.mean(axis=-1) > parameters.zone))

    little = parameters.oscillation_change
    moved_nowhere = (change < little) | ((change >= little) & (net < little))  # nan compares as False
    return moved_nowhere | _trailing(paths.distance, window, stuck)


def total_and_net_change(paths: Trajectories, window: int) -> tuple[Floats, Floats]:
    """L1 of all steps of the last `window` points, and L1 from the window's first point to its last.

    Both (N, T+1), nan where the window would reach the start. The first counts the step *into* the window's first
    point, the second does not: so the logs have it.
    """
    change, net = np.full(paths.gain.shape, np.nan), np.full(paths.gain.shape, np.nan)
    lengths = np.abs(paths.steps).sum(axis=-1).cumsum(axis=1)
    if window <= lengths.shape[1]:
        before = np.concatenate([np.zeros((len(lengths), 1)), lengths[:, :-window]], axis=1)
        change[:, window:] = lengths[:, window - 1 :] - before
        net[:, window:] = np.abs(paths.position[:, window:] - paths.position[:, 1 : -window + 1 or None]).sum(axis=-1)
    return change, net


def _trailing(values: Floats, window: int, test: Callable[[Floats], Bools]) -> Bools:
    """`test` over the last `window` points, at each point (N, T+1); False where the window would reach the start."""
    result = np.zeros(values.shape, dtype=bool)
    if window < values.shape[1]:
        result[:, window:] = test(sliding_window_view(values[:, 1:], window, axis=1))
    return result
