"""Steps -> the path through the deficit space, and what each step gained."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from .parameters import Parameters
from .space import Floats


@dataclass(frozen=True)
class Trajectories:
    """N paths of T+1 points; point 0 is the start. Padding steps are zero, so padded points repeat the last one.

    start       (N, D)       P_0, points below 0 are deficits
    steps       (N, T, D)    v
    position    (N, T+1, D)  P_t = P_{t-1} + v_t
    radius      (N, T+1)     r_t = |P_t|
    distance    (N, T+1)     d(P_t): to the half-space target, or |P_t|, as the profile says; never negative
    cosine      (N, T+1)     alignment of the step with the ideal direction, -1..1; 0 at the start and for a zero step
    gain        (N, T+1)     dE_t, the step's length along the ideal direction; 0 at the start
    energy      (N, T+1)     sum of the gains so far
    projection  (N, T+1)     P_t along the *initial* ideal direction; -|P_0| at the start

    With a fixed direction energy = projection + |P_0| at every point.
    """

    start: Floats
    steps: Floats
    position: Floats
    radius: Floats
    distance: Floats
    cosine: Floats
    gain: Floats
    energy: Floats
    projection: Floats

    def only(self, n: int) -> Trajectories:
        """The n-th path alone, still with a leading dimension of 1."""
        return Trajectories(**{f.name: getattr(self, f.name)[n : n + 1] for f in fields(self)})


def trace(start: Floats, steps: Floats, parameters: Parameters) -> Trajectories:
    """Follow `steps` (N, T, D) from `start` (N, D). A zero deficit has no direction: gains and cosines are 0."""
    position = np.concatenate([start[:, None, :], steps], axis=1).cumsum(axis=1)
    radius = np.linalg.norm(position, axis=-1)
    if parameters.direction == "fixed":
        toward, length = start[:, None, :], radius[:, :1]
    else:
        toward, length = position[:, :-1], radius[:, :-1]
    # Dotted before it is divided: with whole-number components the sign of a gain is exact.
    gain = _ratio(-(steps * toward).sum(-1), length)
    cosine = _ratio(gain, np.linalg.norm(steps, axis=-1))
    gain, cosine = (np.concatenate([np.zeros((len(start), 1)), a], axis=1) for a in (gain, cosine))
    return Trajectories(
        start=start,
        steps=steps,
        position=position,
        radius=radius,
        distance=_distance(position, radius, parameters),
        cosine=np.clip(cosine, -1, 1),
        gain=gain,
        energy=gain.cumsum(axis=1),
        projection=_ratio(-(position * start[:, None, :]).sum(-1), radius[:, :1]),
    )


def _distance(position: Floats, radius: Floats, parameters: Parameters) -> Floats:
    if parameters.distance == "norm":
        return radius
    return np.asarray(np.linalg.norm(np.maximum(0.0, -parameters.zone - position), axis=-1))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """numerator / denominator, and 0 where the denominator is 0 (no length, no direction)."""
    top, bottom = np.broadcast_arrays(numerator, denominator)
    return np.asarray(np.divide(top, bottom, out=np.zeros(top.shape), where=bottom > 0))
