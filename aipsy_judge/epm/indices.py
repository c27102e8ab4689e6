"""Nine raw metrics of a path, and the nine indices they map to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .parameters import Parameters
from .space import Floats
from .trajectory import Trajectories
from .vectors import Levels

# The names of the published table, in its order.
NAMES = ("RDI", "E_tot", "S_net", "rho", "S_proj", "tau", "R_pos", "Align", "Pen")
GROUPS: dict[str, tuple[str, ...]] = {
    "outcome": NAMES[0:3],
    "efficiency": NAMES[3:6],
    "stability": NAMES[6:9],
}
# A path, displacement or deficit shorter than this is none.
_NOTHING = 1e-9
_TAU_WORST, _TAU_BEST = 3.0, 1.0
_PENALTY_WORST = 3.0


def raw_metrics(paths: Trajectories, turn_levels: Levels, ratings: NDArray[np.int64], parameters: Parameters) -> Floats:
    """Shape (N, 9), in the order of NAMES, over the first `ratings` (N,) ratings of each path.

    RDI     share of the starting distance that was closed: (d_0 - d_T) / d_0; nan (undefined) where d_0 = 0
    E_tot   energy at the end
    S_net   sum of all levels (harm levels are negative), or of the steps' components, as the profile says
    rho     energy a rating
    S_proj  mean gain; carries nothing that rho does not, kept because it is published
    tau     length of the path over its displacement, at least 1 by geometry
    R_pos   percent of points that gained
    Align   mean cosine
    Pen     mean of the harm levels' sizes, 0..2D

    Source: released code of EMPA (evaluation), checked against its published table; see parameters.py for profiles.
    """
    energy = paths.energy[np.arange(len(ratings)), ratings]
    gain, cosine = paths.gain[:, 1:], paths.cosine[:, 1:]
    points = ratings + 1 if parameters.count_start else ratings
    net = turn_levels if parameters.net == "levels" else paths.steps
    columns = [
        _closed(paths, ratings, parameters),
        energy,
        _until(net.sum(axis=-1), ratings),
        energy / ratings,
        _until(gain, ratings) / points,
        _tortuosity(paths, ratings, parameters),
        100 * _until(gain > 0, ratings) / points,
        _until(cosine, ratings) / points,
        _until(np.abs(turn_levels[..., 1::2]).sum(axis=-1), ratings) / points,
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def indices(raw: Floats, scale: Floats, parameters: Parameters) -> Floats:
    """Raw metrics (N, 9) -> indices (N, 9), 0 the worst; nan where undefined.

    `scale` (N,) is z0, the starting distance, nan where there is none. RDI, tau, R_pos, Align, Pen end at 100; E_tot,
    S_net, rho and S_proj are floored at 0 and open above, as published.
    """
    rdi, energy, net, rho, projected, tau, positive, align, penalty = raw.T
    z0 = scale + parameters.denominator_shift
    table = [
        np.clip((rdi + 1) * 50, 0, 100),
        100 * np.maximum(0, energy) / (parameters.energy_divisor * z0),
        100 * np.maximum(0, net) / (parameters.net_divisor * z0),
        100 * np.maximum(0, rho) / parameters.density_at_100,
        100 * np.maximum(0, projected) / parameters.density_at_100,
        100 * np.clip((_TAU_WORST - tau) / (_TAU_WORST - _TAU_BEST), 0, 1),
        positive,
        50 * (align + 1),
        100 * np.clip((_PENALTY_WORST - penalty) / _PENALTY_WORST, 0, 1),
    ]
    return np.stack(table, axis=1)


def starting_distance(paths: Trajectories) -> Floats:
    """z0 = d(P_0), shape (N,); nan where there was nothing to close, so that what divides by it is undefined."""
    return np.where(paths.distance[:, 0] > _NOTHING, paths.distance[:, 0], np.nan)


def _closed(paths: Trajectories, ratings: NDArray[np.int64], parameters: Parameters) -> Floats:
    start = starting_distance(paths)
    end = paths.distance[np.arange(len(ratings)), ratings]
    return np.asarray((start - end) / (start + parameters.denominator_shift))


def _tortuosity(paths: Trajectories, ratings: NDArray[np.int64], parameters: Parameters) -> Floats:
    path = _until(np.linalg.norm(paths.steps, axis=-1), ratings)
    end = paths.position[np.arange(len(ratings)), ratings]
    displacement = np.linalg.norm(end - paths.start, axis=-1)
    returned = np.where(path > _NOTHING, parameters.tau_of_return, 1.0)
    shifted = displacement + parameters.denominator_shift
    return np.asarray(np.divide(path, shifted, out=returned, where=displacement > _NOTHING))


def _until(values: NDArray[Any], ratings: NDArray[np.int64]) -> Floats:
    """Sum of each row's first `ratings` (N,) values, added one by one so that padding cannot move a last digit."""
    return np.asarray(values.cumsum(axis=1)[np.arange(len(ratings)), ratings - 1], dtype=np.float64)
